"""Lines of standard input or of files → records; the work behind `produce`.

    chunks of bytes ─► whole lines ─┬─ values alone ─────────► TopicWriter.add_values
                                    ├─ key<TAB>value ────────► TopicWriter.add_pair
                                    └─ JSON, headers, ... ───► TopicWriter.add

A chunk is at most `CHUNK_BYTES`, and a line at most `LINE_BYTES_MAX`, so memory is bounded. When no
more input is there, what has come is sent.
"""

from __future__ import annotations

import base64
import binascii
import os
import select
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cli.errors import CommandError
from minibroker.clock import SystemClock
from minibroker.kafka.records.record import Header, Record
from minibroker.seeds.errors import LinePlace, SeedError
from minibroker.seeds.items import record_of
from minibroker.seeds.json_lines import fields_of_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from minibroker.client.write import TopicWriter

CHUNK_BYTES: Final = 1 << 20
LINE_BYTES_MAX: Final = 64 << 20
"""Bytes of a line: a record of that size is larger than any broker takes by default."""


class LineRules(NamedTuple):
    """The way in which lines are records."""

    has_keys: bool = False
    """Each line is a key, the separator and a value."""
    separator: bytes = b"\t"
    key: bytes | None = None
    """The key of every record."""
    null: bytes | None = None
    """A key or a value that is exactly this is null; None: there is no such word."""
    is_base64: bool = False
    is_json: bool = False
    headers: tuple[Header, ...] = ()
    partition: int | None = None

    @property
    def is_plain(self) -> bool:
        """Return whether a line is a value and nothing else."""
        return self[:1] + self[2:] == LineRules()[:1] + LineRules()[2:]


def _words_of(separator: bytes) -> str:
    """Return a separator as a person reads it."""
    return "tab" if separator == b"\t" else repr(separator.decode("utf-8", "replace"))


class RecordPace:
    """The times at which records may be written. Used by one thread."""

    def __init__(self, per_second: int | None, now_s: float) -> None:
        """`per_second`: records, at most; None: as fast as it goes. `now_s` is a monotonic time."""
        self._per_second = per_second
        self._due_s = now_s

    @property
    def step(self) -> int:
        """Return how many records may be written at once: those of a tenth of a second."""
        return 1 << 30 if self._per_second is None else max(1, self._per_second // 10)

    def pause(self, count: int, now_s: float) -> float:
        """Return the seconds until so many more records may be written, and count them.

        Records that nobody wrote in time are not made up for.
        """
        if self._per_second is None:
            return 0.0
        start_s = max(self._due_s, now_s)
        self._due_s = start_s + count / self._per_second
        return start_s - now_s

    def wait(self, count: int) -> None:
        """Wait until so many more records may be written."""
        pause_s = self.pause(count, time.monotonic())
        if pause_s > 0:
            threading.Event().wait(pause_s)


def chunks_of(descriptor: int, on_idle: Callable[[], None]) -> Iterator[bytes]:
    """Yield the bytes of a file or a pipe; call `on_idle` before a wait for more.

    Raises OSError.
    """
    look = select.poll() if hasattr(select, "poll") else None  # Windows cannot tell
    try:
        if look is not None:
            look.register(descriptor, select.POLLIN)
        may_wait = True
    except PermissionError:  # a plain file: there is always more, or its end
        may_wait = False
    while True:
        if may_wait and not (look and look.poll(0)):
            on_idle()
        chunk = os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


def lines_of(chunks: Iterator[bytes], name: str) -> Iterator[list[bytes]]:
    """Yield the whole lines of chunks, without their line feeds; the last one may have none.

    Raises CommandError for a line that is too long.
    """
    pieces: list[bytes] = []
    size_bytes = 0
    for chunk in chunks:
        lines = chunk.split(b"\n")
        pieces.append(lines[0])
        size_bytes += len(lines[0])
        if size_bytes > LINE_BYTES_MAX:
            raise CommandError(
                f"{name} has a line of more than {LINE_BYTES_MAX >> 20} MB: a line is one record"
            )
        if len(lines) > 1:
            lines[0] = b"".join(pieces)
            pieces, size_bytes = [lines[-1]], len(lines[-1])
            del lines[-1]
            yield lines
    if rest := b"".join(pieces):
        yield [rest]


def write_lines(
    writer: TopicWriter,
    batches: Iterator[list[bytes]],
    rules: LineRules,
    pace: RecordPace,
    name: str,
) -> None:
    """Write the lines of `batches` as records.

    Args:
        batches: lines, some at a time.
        rules: how a line is a record.
        name: of the input, for messages.

    Raises CommandError for a line that is no record, and as `TopicWriter.flush`.
    """
    number = 0
    is_plain, step = rules.is_plain, pace.step
    for batch in batches:
        for start in range(0, len(batch), step):
            lines = batch[start : start + step]
            pace.wait(len(lines))
            if is_plain:
                writer.add_values(lines)
            else:
                _write(writer, lines, rules, LinePlace(name, number + start))
            if step < len(batch):
                writer.push()
        number += len(batch)


def write_whole(writer: TopicWriter, data: bytes, rules: LineRules) -> None:
    """Write bytes as the value of one record. Raises KafkaError, OSError, ProtocolError,
    ConfigError.
    """
    _add(writer, rules, rules.key, data)


def _write(
    writer: TopicWriter, lines: Sequence[bytes], rules: LineRules, last_place: LinePlace
) -> None:
    """Write lines; `last_place` is the place of the line before the first one."""
    for number, line in enumerate(lines, last_place.line + 1):
        place = last_place._replace(line=number)
        if rules.is_json:
            if line and not line.isspace():
                _add_json(writer, line, rules, place)
            continue
        key, value = rules.key, line
        if rules.has_keys:
            key, separator, value = line.partition(rules.separator)
            if not separator:
                raise CommandError(
                    f"{place}: the line has no {_words_of(rules.separator)} between a key and a "
                    "value: add it, give another --separator, or leave --keys out"
                )
        _add(writer, rules, _content(key, rules, place), _content(value, rules, place))


def _add(writer: TopicWriter, rules: LineRules, key: bytes | None, value: bytes | None) -> None:
    if rules.headers or rules.partition is not None:
        record = Record(0, SystemClock().now_ms(), key, value, rules.headers)
        writer.add(record, rules.partition)
    else:
        writer.add_pair(key, value)


def _content(data: bytes | None, rules: LineRules, place: LinePlace) -> bytes | None:
    if data is None or (rules.null is not None and data == rules.null):
        return None
    if not rules.is_base64:
        return data
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise CommandError(f"{place}: {data[:80]!r} is no base64 ({error})") from None


def _add_json(writer: TopicWriter, line: bytes, rules: LineRules, place: LinePlace) -> None:
    now_ms = SystemClock().now_ms()
    try:
        fields = fields_of_line(line, place)
        item = record_of({**fields, "topic": writer.topic}, place, now_ms)
    except SeedError as error:
        raise CommandError(str(error)) from None
    record = Record(
        0,
        now_ms if item.timestamp is None else item.timestamp,
        rules.key if item.key is None and rules.key is not None else item.key,
        item.value,
        (*item.headers, *rules.headers),
    )
    writer.add(record, item.partition if rules.partition is None else rules.partition)
