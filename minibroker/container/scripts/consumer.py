"""`kafka-console-consumer`: records of a topic become lines of standard output.

Source: Kafka ConsoleConsumer, DefaultMessageFormatter (3.9).
"""

from __future__ import annotations

import contextlib
import re
import signal
import time
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from minibroker.client import admin
from minibroker.client.consume import OffsetGoneError, PartitionReader
from minibroker.client.member import MemberSession
from minibroker.container.scripts.connecting import OPTIONS as CONNECTION
from minibroker.container.scripts.connecting import reader_of, settings_of
from minibroker.container.scripts.options import ScriptError, ScriptOption, Words, WordsError
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.java_formats.properties import read_properties
from minibroker.kafka.records.conversion import read_records
from minibroker.kafka.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from minibroker.client.client import Client
    from minibroker.client.consume import Fetched

_NAME: Final = "kafka-console-consumer"
DOES: Final = {_NAME: "show the records of a topic"}
OPTIONS: Final = {
    _NAME: {
        **CONNECTION,
        "topic": ScriptOption("TOPIC", "the topic"),
        "include": ScriptOption("PATTERN", "the topics with such names"),
        "whitelist": ScriptOption("PATTERN", "old name of --include"),
        "partition": ScriptOption("N", "the partition; without a group"),
        "offset": ScriptOption("OFFSET", "the first one: a number, earliest or latest"),
        "from-beginning": ScriptOption("", "from the start of the log on"),
        "max-messages": ScriptOption("N", "end after so many"),
        "timeout-ms": ScriptOption("MS", "end when nothing comes for so long"),
        "group": ScriptOption("GROUP", "read as a member of this group"),
        "consumer.config": ScriptOption("FILE", "settings of the client, in a properties file"),
        "consumer-property": ScriptOption("KEY=VALUE", "a setting of the client"),
        "command-property": ScriptOption("KEY=VALUE", "a setting of the client"),
        "property": ScriptOption("KEY=VALUE", "print.key, print.offset, key.separator …"),
        "formatter-property": ScriptOption("KEY=VALUE", "the same as --property"),
        "formatter-config": ScriptOption("FILE", "such properties in a file"),
        "isolation-level": ScriptOption("LEVEL", "read_committed or read_uncommitted"),
        "formatter": ScriptOption("CLASS", "only Kafka's default one is here"),
        "key-deserializer": ScriptOption("CLASS", "only texts and bytes are here"),
        "value-deserializer": ScriptOption("CLASS", "only texts and bytes are here"),
        "skip-message-on-error": ScriptOption("", "without effect"),
        "enable-systest-events": ScriptOption("", "without effect"),
        "new-consumer": ScriptOption("", "without effect"),
    }
}
_FORMATTERS: Final = ("DefaultMessageFormatter",)
_DESERIALIZERS: Final = ("StringDeserializer", "ByteArrayDeserializer", "BytesDeserializer")
_TIME_TYPES: Final = ("CreateTime", "LogAppendTime")
COMMIT_S: Final = 5.0
POLL_S: Final = 1.0


class RecordFormat(NamedTuple):
    """The parts of a record that are shown, in Kafka's order."""

    has_timestamp: bool
    has_partition: bool
    has_offset: bool
    has_epoch: bool
    has_headers: bool
    has_key: bool
    has_value: bool
    separator: bytes
    line_end: bytes
    headers_separator: bytes
    null: bytes

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> RecordFormat:
        """Return the format that the properties of a formatter say."""

        def is_true(name: str, default: str = "") -> bool:
            return properties.get(name, default).strip().lower() == "true"

        def part(name: str, default: str) -> bytes:
            return properties.get(name, default).encode()

        return cls(
            is_true("print.timestamp"),
            is_true("print.partition"),
            is_true("print.offset"),
            is_true("print.epoch"),
            is_true("print.headers"),
            is_true("print.key"),
            is_true("print.value", "true"),
            part("key.separator", "\t"),
            part("line.separator", "\n"),
            part("headers.separator", ","),
            part("null.literal", "null"),
        )

    def line(self, printed: ShownRecord) -> bytes:
        """Return a record as a line."""
        record = printed.record
        parts: list[bytes] = []
        if self.has_timestamp:
            kind = _TIME_TYPES[printed.is_append_time]
            text = f"{kind}:{record.timestamp}" if record.timestamp >= 0 else "NO_TIMESTAMP"
            parts.append(text.encode())
        if self.has_partition:
            parts.append(f"Partition:{printed.place.partition}".encode())
        if self.has_offset:
            parts.append(f"Offset:{record.offset}".encode())
        if self.has_epoch:
            epoch = printed.leader_epoch
            parts.append(f"Epoch:{epoch if epoch >= 0 else 'NOT_PRESENT'}".encode())
        if self.has_headers:
            pairs = (name.encode() + b":" + self._text(value) for name, value in record.headers)
            parts.append(self.headers_separator.join(pairs) or b"NO_HEADERS")
        if self.has_key:
            parts.append(self._text(record.key))
        if self.has_value:
            parts.append(self._text(record.value))
        return self.separator.join(parts) + self.line_end

    def _text(self, data: bytes | None) -> bytes:
        return self.null if data is None else bytes(data)


class ShownRecord(NamedTuple):
    """A record and where it stands."""

    place: TopicPartition
    record: Record
    leader_epoch: int
    is_append_time: bool


class _Ended(Exception):  # noqa: N818  it is an order, not a mistake
    """SIGTERM or Ctrl-C."""


def run(_: str, words: Words, out: TextIO, errors: TextIO) -> int:
    """Show the records; return the exit code. Raises ScriptError, KafkaError, OSError …"""
    _check(words)
    output = _Output(RecordFormat.of(_properties(words)), words, out)
    settings = settings_of(words)
    client = reader_of(words)
    try:
        with contextlib.suppress(_Ended), _ending_at_signals(output):
            if output.most != 0:
                _read(client, words, settings, output)
    finally:
        with contextlib.suppress(BrokenPipeError):
            out.flush()
        errors.write(f"Processed a total of {output.count} messages\n")
    return 0


class _Output:
    """Shows records until there are enough."""

    def __init__(self, form: RecordFormat, words: Words, out: TextIO) -> None:
        """Raises WordsError."""
        self._form = form
        self._out = out
        self.most = words.number("max-messages", -1)
        """Negative: as many as come."""
        self.count = 0
        timeout = words.number("timeout-ms", -1)
        self._timeout_s = None if timeout is None or timeout < 0 else timeout / 1000
        self._shown_s = time.monotonic()
        self._is_showing = False
        self._is_enough = False

    def begin(self) -> None:
        """Count the time without a record from now on."""
        self._shown_s = time.monotonic()

    def show(self, fetched: Fetched, behind: dict[TopicPartition, int]) -> bool:
        """Show records; return whether there are enough now.

        `behind` gets the offset behind each record that was shown. Raises BrokenPipeError.
        """
        self._is_showing = True
        for record in _records_of(fetched):
            if self._is_enough:
                break
            _write(self._out, self._form.line(record))
            behind[record.place] = record.record.offset + 1
            self._shown_s = time.monotonic()
            self.count += 1
            self._is_enough |= self.count == self.most
        self._is_showing = False
        return self._is_enough

    def pause_s(self) -> float:
        """Return how long a poll may wait; negative: nothing came for too long."""
        if self._timeout_s is None:
            return POLL_S
        return min(POLL_S, self._shown_s + self._timeout_s - time.monotonic())

    def end(self, *_: object) -> None:
        """End at a signal, behind the record that is being shown. Raises _Ended."""
        self._is_enough = True
        if not self._is_showing:
            raise _Ended


def _write(out: TextIO, line: bytes) -> None:
    """Write bytes as they are, where the stream takes them. Raises BrokenPipeError."""
    buffer = getattr(out, "buffer", None)
    if buffer is None:
        out.write(line.decode("utf-8", "replace"))
        return
    buffer.write(line)
    buffer.flush()


@contextlib.contextmanager
def _ending_at_signals(output: _Output) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the script as Kafka's: the count comes, and offsets are kept."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    try:
        old_handlers = [signal.signal(number, output.end) for number in numbers]
    except ValueError:  # a thread that is not the main one gets no signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in zip(numbers, old_handlers, strict=True):
            signal.signal(number, handler)


def _check(words: Words) -> None:
    """Raise WordsError for words that make no command."""
    if words.has("topic") == words.has("include", "whitelist"):
        raise WordsError("Exactly one of --include/--topic is required. ")
    if words.has("partition"):
        if not words.has("topic"):
            raise WordsError("The topic is required when partition is specified.")
        if words.has("from-beginning") and words.has("offset"):
            raise WordsError("Options from-beginning and offset cannot be specified together.")
        if words.has("group"):
            raise WordsError("Options group and partition cannot be specified together.")
    elif words.has("offset"):
        raise WordsError("The partition is required when offset is specified.")
    formatter = words.value("formatter").rpartition(".")[2]
    if formatter and formatter not in _FORMATTERS:
        raise ScriptError(f"--formatter {words.value('formatter')}: no Java class is loaded")


def _properties(words: Words) -> dict[str, str]:
    """Return the properties of the formatter. Raises ScriptError."""
    properties: dict[str, str] = {}
    try:
        for path in words.all("formatter-config"):
            properties |= read_properties(path)
    except ConfigError as error:
        raise ScriptError(str(error)) from None
    for pair in words.all("property", "formatter-property"):
        key, _, value = pair.partition("=")
        properties[key] = value
    properties |= {
        f"{part}.deserializer": words.value(f"{part}-deserializer")
        for part in ("key", "value")
        if words.has(f"{part}-deserializer")
    }
    for name, value in properties.items():
        if name.endswith(".deserializer") and value.rpartition(".")[2] not in _DESERIALIZERS:
            raise ScriptError(f"{name}={value}: no Java class is loaded; texts and bytes are shown")
    return properties


def _read(client: Client, words: Words, settings: Mapping[str, str], output: _Output) -> None:
    """Show records until there are enough, or none came for `--timeout-ms`."""
    group = words.value("group", default=settings.get("group.id", ""))
    level = words.value("isolation-level", default=settings.get("isolation.level", ""))
    is_committed = level == "read_committed"
    begins = words.has("from-beginning") or settings.get("auto.offset.reset") == "earliest"
    if group:
        member = MemberSession(client.settings, group, _topics(client, words))
        reading = _GroupReading(client, member, begins=begins, is_committed=is_committed)
        reading.show_all(output)
        return
    starts = _starts(client, words, begins=begins)
    reader = PartitionReader(client, starts, is_committed=is_committed, rack=client.rack)
    output.begin()
    try:
        while (pause_s := output.pause_s()) >= 0:
            for fetched in _polled(client, reader, pause_s, begins=begins):
                if output.show(fetched, {}):
                    return
    finally:
        reader.close()


def _polled(
    client: Client, reader: PartitionReader, timeout_s: float, *, begins: bool
) -> Sequence[Fetched]:
    """Return what the reader has; an offset that is gone is reset as auto.offset.reset says."""
    try:
        return reader.poll(timeout_s)
    except OffsetGoneError as gone:
        moment = -2 if begins else -1
        reader.positions[gone.place] = admin.offsets_at(
            client, [gone.place], moment, is_committed=False
        )[gone.place]
        return ()


def _topics(client: Client, words: Words) -> list[str]:
    """Return the topics to read. Raises KafkaError, OSError."""
    if words.has("topic"):
        return [words.value("topic")]
    pattern = re.compile(words.value("include", "whitelist").replace(",", "|"))
    return [
        name
        for name, topic in admin.describe(client).topics.items()
        if pattern.fullmatch(name) and not topic.is_internal
    ]


def _starts(client: Client, words: Words, *, begins: bool) -> dict[TopicPartition, int]:
    """Return the first offset of each partition. Raises WordsError, KafkaError, OSError."""
    places = [
        TopicPartition(name, number)
        for name in _topics(client, words)
        for number in range(client.partition_count(name))
    ]
    if not words.has("partition"):
        return admin.offsets_at(client, places, -2 if begins else -1, is_committed=False)
    place = TopicPartition(words.value("topic"), words.number("partition") or 0)
    text = words.value("offset", default="earliest" if begins else "latest").lower()
    if text in ("earliest", "latest"):
        return admin.offsets_at(
            client, [place], -2 if text == "earliest" else -1, is_committed=False
        )
    if not text.isdecimal():
        raise WordsError(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest',"
            " 'latest', or a non-negative long."
        )
    return {place: int(text)}


def _records_of(fetched: Fetched) -> Iterator[ShownRecord]:
    """Yield the records of an answer from its first offset on."""
    for batch in fetched.batches:
        header = batch.header
        for record in read_records(batch.content, 0, header):
            if record.offset >= fetched.start:
                yield ShownRecord(fetched.place, record, header.leader_epoch, header.is_append_time)


class _GroupReading:
    """Records read as a member of a group; offsets are committed behind records that were shown."""

    def __init__(
        self, client: Client, member: MemberSession, *, begins: bool, is_committed: bool
    ) -> None:
        self._client = client
        self._member = member
        self._begins = begins
        self._is_committed = is_committed
        self._behind: dict[TopicPartition, int] = {}
        """Offsets behind records that were shown, and are not committed."""
        self._committed_s = time.monotonic()

    def show_all(self, output: _Output) -> None:
        """Show as `_read`, through rebalances; then leave the group."""
        try:
            while not self._show_assigned(output):
                self._commit()
        finally:
            try:
                self._commit()
            finally:
                self._member.leave()

    def _show_assigned(self, output: _Output) -> bool:
        """Show the records of one assignment; return whether that was all."""
        assigned = self._member.join()
        starts = admin.offsets_at(
            self._client, assigned, -2 if self._begins else -1, is_committed=False
        )
        starts |= self._member.committed(assigned)
        client = self._client
        reader = PartitionReader(client, starts, is_committed=self._is_committed, rack=client.rack)
        output.begin()
        try:
            while not self._member.must_rejoin():
                pause_s = output.pause_s()
                if pause_s < 0:
                    return True
                for fetched in _polled(self._client, reader, pause_s, begins=self._begins):
                    if output.show(fetched, self._behind):
                        return True
                if time.monotonic() - self._committed_s >= COMMIT_S:
                    self._commit()
        finally:
            reader.close()
        return False

    def _commit(self) -> None:
        """Commit; offsets that the group does not take are read again by who has them now."""
        self._committed_s = time.monotonic()
        self._member.commit(self._behind)
        self._behind = {}
