"""The log directories of brokers of Kafka 0.7, and the messages of each partition in their order.

A log directory has a directory `TOPIC-PARTITION` for each partition. In it are segments, files
named `%020d.kafka` by the position of their first byte; the next segment begins where one ends. The
directory does not say which broker it belongs to, and each broker counts its partitions from 0. So
a partition of 0.7 is `BROKER-PARTITION`, as ZooKeeper has it.

The last message of the last segment may be torn by a power cut: it ends the log, as a broker of 0.7
would have cut it at its next start. All other damage is refused, or left out with a note.

Source: Kafka 0.7 LogManager, Log, FileMessageSet, Partition.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.log_07 import (
    LENGTH,
    SHORTEST,
    UNPACKED_BYTES_MAX,
    Message07,
    read_message,
    values_of,
)
from minibroker.tools.import_07.errors import ImportRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import BinaryIO

SUFFIX: Final = ".kafka"
_SEGMENT: Final = re.compile(r"([0-9]{1,20})\.kafka")
_PARTITION: Final = re.compile(r"(.+)-([0-9]{1,9})", re.DOTALL)
_POSITION_MAX: Final = 2**63 - 1
_BUFFER_BYTES: Final = 1 << 20


class BrokerDirectory(NamedTuple):
    """The log directory of a broker, `log.dir` in its settings."""

    broker: int
    """Its `brokerid`."""
    path: str


class Segment07(NamedTuple):
    """A file of a log."""

    path: Path
    start: int
    """The position of its first byte."""
    size_bytes: int
    """At the begin of the import; what is written later is not read."""


class Log07(NamedTuple):
    """The log of a partition."""

    topic: str
    broker: int
    number: int
    segments: tuple[Segment07, ...]

    @property
    def name(self) -> str:
        """Return `BROKER-PARTITION`, as ZooKeeper names it."""
        return f"{self.broker}-{self.number}"

    @property
    def start(self) -> int:
        """Return the position of its first message that is there."""
        return self.segments[0].start if self.segments else 0


class PlacedMessage(NamedTuple):
    """A message and its place in the log."""

    position: int
    end: int
    """The position of the next message."""
    message: Message07 | None
    """None: it is damaged, and left out."""
    segment: Segment07

    def values(self, notes: LogNotes) -> list[bytes]:
        """Return the values of the message, none if it is damaged. Raises CorruptionError, as
        `notes` decides; KafkaError UNSUPPORTED_COMPRESSION_TYPE.
        """
        if self.message is None:
            return []
        try:
            return values_of(self.message)
        except CorruptionError as error:
            notes.damaged(self.segment.path, self.position - self.segment.start, str(error))
            return []


class LogNotes:
    """Takes what a reader of logs has to say; by default it refuses damage."""

    def torn(self, path: Path, at: int, size_bytes: int) -> None:
        """Take the message at the end that was not written whole: it is no part of the log."""

    def damaged(self, path: Path, at: int, reason: str) -> None:
        """Take damage at a byte of a file. A return has it left out; the default raises
        CorruptionError.
        """
        raise CorruptionError(
            f"{path}, byte {at}: {reason} (--skip-damaged leaves out what cannot be read)"
        )


def partition_logs(
    directories: Iterable[BrokerDirectory], topics: Sequence[str] = ()
) -> list[Log07]:
    """Return the partitions in log directories, in the order of topic, broker and number.

    `topics`: only theirs; empty: all. Raises ImportRefusedError for a directory or a topic without
    segments, and for a name that cannot be printed; OSError.
    """
    logs: list[Log07] = []
    for directory in directories:
        logs += _logs_in(directory)
    missing = sorted(set(topics) - {log.topic for log in logs})
    if missing:
        raise ImportRefusedError(
            f"topic {missing[0]} has no partition in the directories: they have "
            f"{', '.join(sorted({log.topic for log in logs}))}"
        )
    chosen = (log for log in logs if not topics or log.topic in topics)
    return sorted(chosen, key=lambda log: (log.topic, log.broker, log.number))


def _logs_in(directory: BrokerDirectory) -> list[Log07]:
    logs = []
    for path in sorted(Path(directory.path).iterdir()):
        match = _PARTITION.fullmatch(path.name)
        if match is not None and path.is_dir() and (segments := _segments_in(path)):
            if not path.name.isprintable():  # of bytes that are no UTF-8, too
                raise ImportRefusedError(
                    f"{directory.path} has the directory {path.name!r}: expected a name of "
                    "printable characters; rename it"
                )
            logs.append(Log07(match[1], directory.broker, int(match[2]), segments))
    if not logs:
        raise ImportRefusedError(
            f"{directory.path} is no log directory of Kafka 0.7: expected directories "
            f"TOPIC-PARTITION with files {0:020d}{SUFFIX}, as log.dir of the broker has them"
        )
    return logs


def _segments_in(directory: Path) -> tuple[Segment07, ...]:
    """Return the segments of a partition in their order, of numbers that a position can have."""
    segments = []
    for path in directory.iterdir():
        match = _SEGMENT.fullmatch(path.name)
        if match is not None and int(match[1]) <= _POSITION_MAX and path.is_file():
            segments.append(Segment07(path, int(match[1]), path.stat().st_size))
    return tuple(sorted(segments, key=lambda segment: segment.start))


def check_unchanged(log: Log07) -> None:
    """Raise ImportRefusedError if the segments of a log are others than at the begin; OSError.

    A broker that still runs has written then, and the import lacks its messages.
    """
    if log.segments and _segments_in(log.segments[0].path.parent) != log.segments:
        raise ImportRefusedError(
            f"{log.segments[0].path.parent} has changed meanwhile: its broker still runs. Stop it, "
            "delete the topic and import again"
        )


def messages_of(log: Log07, notes: LogNotes) -> Iterator[PlacedMessage]:
    """Yield the messages of a log in their order, and a place for each part that is left out.

    Raises CorruptionError, as `notes` decides; OSError.
    """
    position = log.start
    for segment in log.segments:
        if segment.start != position:
            notes.damaged(
                segment.path,
                0,
                f"the segment begins at position {segment.start}, the one before it ends at "
                f"{position}",
            )
            if segment.start < position:
                continue  # its bytes are read already, or two files claim them
            yield PlacedMessage(position, segment.start, None, segment)
        with segment.path.open("rb", buffering=_BUFFER_BYTES) as file:
            reader = _SegmentReader(file, segment, notes, is_last=segment is log.segments[-1])
            yield from reader.messages()
        position = segment.start + segment.size_bytes


class _SegmentReader:
    """Reads the messages of one segment. Used by one thread."""

    def __init__(
        self, file: BinaryIO, segment: Segment07, notes: LogNotes, *, is_last: bool
    ) -> None:
        self._file = file
        self._segment = segment
        self._notes = notes
        self._is_last = is_last

    def messages(self) -> Iterator[PlacedMessage]:
        """Yield its messages. Raises CorruptionError, as the notes decide; OSError."""
        segment = self._segment
        path, start, size_bytes = segment
        at = 0
        while at < size_bytes:
            length = self._length(at)
            if length is None:
                if not self._is_torn(at):
                    self._notes.damaged(path, at, self._reason(at))
                    yield PlacedMessage(start + at, start + size_bytes, None, segment)
                return
            end = at + LENGTH.size + length
            yield PlacedMessage(start + at, start + end, self._message(at, length), segment)
            at = end

    def _length(self, at: int) -> int | None:
        """Return the length of the message at a byte, None where no whole message can stand."""
        prefix = self._file.read(min(LENGTH.size, self._segment.size_bytes - at))
        if len(prefix) < LENGTH.size:
            return None
        length: int = LENGTH.unpack(prefix)[0]
        room = self._segment.size_bytes - at - LENGTH.size
        return length if SHORTEST <= length <= room else None

    def _message(self, at: int, length: int) -> Message07 | None:
        """Return the message behind its length, None if it is damaged and is to be left out."""
        path = self._segment.path
        if length > UNPACKED_BYTES_MAX:
            reason = f"a message declares {length} bytes, expected {UNPACKED_BYTES_MAX} at most"
            self._notes.damaged(path, at, reason)
            self._file.seek(length, 1)
            return None
        content = self._file.read(length)
        if len(content) < length:
            raise ImportRefusedError(f"{path} became shorter while it was read: stop the broker")
        try:
            return read_message(content)
        except CorruptionError as error:
            self._notes.damaged(path, at, str(error))
            return None

    def _is_torn(self, at: int) -> bool:
        """Return whether the rest of the segment is a write that a power cut has ended.

        That is a part of a message, or zeros that took the place of one.
        """
        left_bytes = self._segment.size_bytes - at
        if not self._is_last:
            return False
        self._file.seek(at)
        prefix = self._file.read(LENGTH.size)
        is_part = len(prefix) < LENGTH.size or (
            left_bytes - LENGTH.size < LENGTH.unpack(prefix)[0] <= UNPACKED_BYTES_MAX
        )
        if not (is_part or self._has_zeros_from(at)):
            return False
        self._notes.torn(self._segment.path, at, left_bytes)
        return True

    def _has_zeros_from(self, at: int) -> bool:
        self._file.seek(at)
        pieces = iter(lambda: self._file.read(_BUFFER_BYTES), b"")
        return all(not piece.strip(b"\0") for piece in pieces)

    def _reason(self, at: int) -> str:
        self._file.seek(at)
        prefix = self._file.read(LENGTH.size)
        left_bytes = self._segment.size_bytes - at
        if len(prefix) < LENGTH.size:
            return "the segment ends in the length of a message, and another segment follows"
        return (
            f"a message declares {LENGTH.unpack(prefix)[0]} bytes, expected {SHORTEST} to "
            f"{left_bytes - LENGTH.size}"
        )
