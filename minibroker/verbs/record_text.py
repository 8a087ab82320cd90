"""Records as bytes for a terminal, a pipe or a file: as text, by a template, or as JSON lines.

    Fetched ─► RecordLayout.render ─► bytes, a line for each record

Null is shown as a word that the user may choose. On a terminal, bytes that are no text, and those
that would steer it, are shown as `\\xNN`; a pipe gets them as they are. The lines
of JSON are those of a seed (`minibroker.seeds`): nothing is lost in them.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from minibroker.cli.errors import UsageError
from minibroker.cli.kinds import near
from minibroker.kafka.records.batch import RECORDS_AT
from minibroker.kafka.records.bulk import values_of
from minibroker.kafka.records.compression import NONE, decompress
from minibroker.kafka.records.conversion import read_records
from minibroker.kafka.records.record import DECOMPRESSED_BYTES_MAX, Record
from minibroker.seeds.lines import lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minibroker.client.consume import Fetched
    from minibroker.kafka.ids import TopicPartition
    from minibroker.kafka.records.stored_batch import StoredBatch

DEFAULT_NULL: Final = "NULL"
PAIRS: Final = "{key}\\t{value}"
"""The template of a key, a tab and the value."""
_FIELD: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_ESCAPES: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_ESCAPED: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_STEERING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")
"""Characters that steer a terminal; a tab and a line feed do not."""
_HEADER: Final = "header."


class RecordLayout(NamedTuple):
    """The way in which records are shown."""

    template: str | None = None
    """See `template_of`; None: the value."""
    is_json: bool = False
    null: str = DEFAULT_NULL
    is_base64: bool = False
    """Keys and values are shown in base64."""
    is_terminal: bool = False


class Cut(NamedTuple):
    """The records of a partition that are shown."""

    start: int
    end: int | None
    """None: all that come."""


class Renderer:
    """Turns records into bytes. Constant after construction."""

    def __init__(self, layout: RecordLayout) -> None:
        """Raises UsageError for a template that cannot be."""
        self._layout = layout
        self._null = layout.null.encode()
        is_raw = not (layout.is_json or layout.is_base64 or layout.is_terminal)
        self._is_plain = is_raw and layout.template is None
        """Values go out as they are."""
        self._is_pairs = is_raw and layout.template == PAIRS
        """Keys and values do, with a tab between."""
        self._writers = template_of(layout.template or "{value}", layout)

    def render(self, fetched: Fetched, cut: Cut, most: int | None) -> tuple[bytes, int, int]:
        """Return the lines of the records of an answer, their number, and the offset behind them.

        Args:
            cut: the records of the partition that are to be shown.
            most: records, at most; None: all.

        Raises CorruptionError; SeedError for a record that is too large for a line of JSON.
        """
        parts: list[bytes] = []
        shown_count, behind = 0, fetched.start
        for batch in fetched.batches:
            remaining = None if most is None else most - shown_count
            if remaining is not None and remaining <= 0:
                return b"".join(parts), shown_count, behind
            behind = batch.header.last_offset + 1
            if self._is_plain and _is_whole(batch, cut, remaining):
                lines, count = self._values(batch), batch.header.count
            else:
                records = _records_of(batch, cut, remaining)
                lines, count = self._lines(fetched.place, records), len(records)
                if count == remaining:
                    behind = records[-1].offset + 1
            if lines:
                parts += (b"\n".join(lines), b"\n")
            shown_count += count
        is_cut = most is not None and shown_count >= most
        return b"".join(parts), shown_count, behind if is_cut else fetched.next_offset

    def _lines(self, place: TopicPartition, records: list[Record]) -> list[bytes]:
        if self._layout.is_json:
            return [lines_of(place, records)[:-1]] if records else []
        if self._is_pairs:
            null = self._null
            return [
                (null if record.key is None else record.key)
                + b"\t"
                + (null if record.value is None else record.value)
                for record in records
            ]
        return [self._line(place, record) for record in records]

    def _values(self, batch: StoredBatch) -> list[bytes]:
        """Return the values of a whole batch, null as its word."""
        values = values_of(_body_of(batch), batch.header.count, 0, 0)
        if None not in values:
            return cast("list[bytes]", values)
        return [self._null if value is None else value for value in values]

    def _line(self, place: TopicPartition, record: Record) -> bytes:
        return b"".join([write(place, record) for write in self._writers])


def _body_of(batch: StoredBatch) -> bytes:
    """Return the records of a v2 batch, uncompressed. Raises CorruptionError."""
    payload = batch.content[RECORDS_AT:]
    codec = batch.header.codec
    return bytes(payload) if codec == NONE else decompress(codec, payload, DECOMPRESSED_BYTES_MAX)


def _is_whole(batch: StoredBatch, cut: Cut, most: int | None) -> bool:
    """Return whether all records of a batch are shown, and it is one of format 2."""
    header = batch.header
    return (
        header.magic == 2
        and header.base_offset >= cut.start
        and (cut.end is None or header.last_offset < cut.end)
        and (most is None or header.count <= most)
    )


def _records_of(batch: StoredBatch, cut: Cut, most: int | None) -> list[Record]:
    """Return the records of a batch that are shown. Raises CorruptionError."""
    if _is_whole(batch, cut, most):
        return read_records(batch.content, 0, batch.header)
    return list(_shown_records(batch, cut, most))


def _shown_records(batch: StoredBatch, cut: Cut, most: int | None) -> Iterator[Record]:
    number = 0
    for record in read_records(batch.content, 0, batch.header):
        if record.offset < cut.start:
            continue
        if (cut.end is not None and record.offset >= cut.end) or number == most:
            return
        number += 1
        yield record


def template_of(text: str, layout: RecordLayout) -> list[Callable[[TopicPartition, Record], bytes]]:
    """Return the writers of the parts of a template, such as `{partition}:{offset} {key}={value}`.

    `{{` and `}}` are braces; `\\n`, `\\t`, `\\r`, `\\0`, `\\xNN` and `\\\\` are what they are in C.
    Raises UsageError for an unknown field, or a brace without its other one.
    """
    writers: list[Callable[[TopicPartition, Record], bytes]] = []
    at = 0
    for match in _FIELD.finditer(text):
        if match.start() > at:
            writers.append(_constant(unescaped(text[at : match.start()])))
        at = match.end()
        word = match.group()
        if word in ("{{", "}}"):
            writers.append(_constant(word[:1].encode()))
        elif match.group(1) is None:
            raise UsageError(f"{text!r} has a {word} without its other one; {word * 2} is a brace")
        else:
            writers.append(_field(match.group(1), text, layout))
    if at < len(text):
        writers.append(_constant(unescaped(text[at:])))
    return writers


def unescaped(text: str) -> bytes:
    """Return the bytes of a text with escapes of C. Raises UsageError for another escape."""

    def plain(match: re.Match[str]) -> str:
        code, letter = match.groups()
        if code is not None:
            return chr(int(code, 16))
        if letter not in _ESCAPED:
            escapes = ", ".join(f"\\{name}" for name in (*_ESCAPED, "xNN"))
            raise UsageError(f"{match.group()} is no escape: expected one of {escapes}")
        return _ESCAPED[letter].decode()

    out, at = b"", 0
    for match in _ESCAPES.finditer(text):
        out += text[at : match.start()].encode() + plain(match).encode("latin-1")
        at = match.end()
    return out + text[at:].encode()


def _constant(data: bytes) -> Callable[[TopicPartition, Record], bytes]:
    return lambda _place, _record: data


def _field(name: str, text: str, layout: RecordLayout) -> Callable[[TopicPartition, Record], bytes]:
    show = _shower(layout)
    plain = {
        "topic": lambda place, _: place.topic.encode(),
        "partition": lambda place, _: b"%d" % place.partition,
        "offset": lambda _, record: b"%d" % record.offset,
        "timestamp": lambda _, record: b"%d" % record.timestamp,
        "time": lambda _, record: time_text(record.timestamp).encode(),
        "key": lambda _, record: show(record.key),
        "value": lambda _, record: show(record.value),
        "headers": lambda _, record: b",".join(
            show(name.encode()) + b"=" + show(value) for name, value in record.headers
        ),
        "key_size": lambda _, record: b"%d" % _size(record.key),
        "value_size": lambda _, record: b"%d" % _size(record.value),
    }
    if name in plain:
        return plain[name]
    if name.startswith(_HEADER):
        header_name = name.removeprefix(_HEADER)
        return lambda _, record: show(
            next((value for key, value in reversed(record.headers) if key == header_name), None)
        )
    names = [*plain, f"{_HEADER}NAME"]
    hint = near(name, plain)
    raise UsageError(
        f"{text!r} has {{{name}}}, which is no field{hint}: expected one of {', '.join(names)}"
    )


def _shower(layout: RecordLayout) -> Callable[[bytes | None], bytes]:
    """Return the function that shows a key, a value or a header."""
    null = layout.null.encode()
    if layout.is_base64:
        return lambda data: null if data is None else base64.b64encode(data)
    if layout.is_terminal:
        return lambda data: null if data is None else for_terminal(data)
    return lambda data: null if data is None else data


def for_terminal(data: bytes) -> bytes:
    """Return bytes as a terminal shows them harmlessly: what is no text, or steers, as `\\xNN`."""
    text = data.decode("utf-8", "backslashreplace")
    return _STEERING.sub(lambda match: f"\\x{ord(match.group()):02x}", text).encode()


def time_text(timestamp_ms: int) -> str:
    """Return a timestamp as `2026-11-24T17:30:05.250Z`; `-` for none, the number if
    it is no date.
    """
    if timestamp_ms < 0:
        return "-"
    try:
        when = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03d}Z"


def _size(data: bytes | None) -> int:
    """Return the size in bytes, -1 for null."""
    return -1 if data is None else len(data)
