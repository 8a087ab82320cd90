"""A seed as a whole, checked before the first topic is made.

    items ─► batches, in memory or in a temporary file ─┐
    segment files, their headers walked ────────────────┴─► StagedSeed ─► load

So a seed with a wrong line loads nothing. It all runs on a thread: it knows no broker, but the
partitions that the topics have.
"""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.partitioner import partition_of
from minibroker.kafka.records.record import Record
from minibroker.seeds import json_lines, segments, yaml_file
from minibroker.seeds.errors import LoadedBeforeError, SeedError
from minibroker.seeds.items import PARTITIONS_MAX, SeedOffset, Topic
from minibroker.seeds.segments import StagedBatch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from minibroker.seeds.errors import LinePlace
    from minibroker.seeds.items import Item, SeedRecord
    from minibroker.seeds.segments import Scanned, SegmentPartition

JSON_LINES: Final = (".jsonl", ".ndjson")
YAML: Final = (".yaml", ".yml")
BATCH_BYTES: Final = 256 << 10
"""Bytes of keys and values of a batch, about; a larger record is alone."""
PENDING_BYTES: Final = 32 << 20
"""Bytes of the batches that are not full yet, of all partitions together."""
MEMORY_BYTES: Final = 64 << 20
"""Bytes of whole batches in memory; more of them go to a temporary file."""
TOPICS_MAX: Final = 10_000
OFFSETS_MAX: Final = 1_000_000
"""Topics and committed offsets of a seed: more of them are a mistake, and would take the memory."""
RECORD_BYTES_AROUND: Final = 100
"""Memory of a record beside its key and value, about."""


class Cluster(NamedTuple):
    """Facts of the brokers that a seed is for."""

    partitions: Mapping[str, int]
    """Partitions of each topic that exists."""
    default_partitions: int
    """Partitions of a topic that a seed does not declare."""
    now_ms: int
    used_topics: Collection[str] = frozenset()
    """Topics with records, now or earlier: a seed with records for one of them was loaded before,
    and is read no further."""


_ENTRY: Final = struct.Struct("<IIIII")
"""Before each batch in the temporary file: numbers of its topic and its file, its partition, the
line of its first record, its bytes."""


class StagedSeed:
    """Everything that a seed brings. Used by one thread at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.topics: dict[str, Topic] = {}
        """The topics that the seed declares."""
        self.undeclared: dict[str, int] = {}
        """Topics to make that the seed does not declare, with their partitions."""
        self.offsets: list[SeedOffset] = []
        self.records: dict[str, int] = {}
        """Records of each topic that the seed names."""
        self._unlike: list[SeedError] = []
        """Used topics that are not as declared: wrong, unless the seed was loaded before."""
        self._pending: dict[tuple[str, int], list[Record]] = {}
        self._pending_bytes: dict[tuple[str, int], int] = {}
        self._pending_places: dict[tuple[str, int], LinePlace] = {}
        self._all_pending_bytes = 0
        self._names: dict[str, int] = {}
        """Topics and files of the entries in the temporary file → their numbers."""
        self._spool: IO[bytes] = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115  until `close`
        self._is_closed = False
        """True if nobody wants the seed any more; set by another thread, too."""
        self._parts: list[tuple[SegmentPartition, Scanned]] = []

    def close(self) -> None:
        """Forget the batches. A thread that reads files for the seed ends with an error."""
        self._is_closed = True
        self._spool.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise SeedError("nobody waits for the seed any more")

    def take(self, item: Item) -> None:
        """Take the next item.

        Raises:
            SeedError: it does not fit to those before it.
            LoadedBeforeError: it is a record of a used topic.
        """
        self._check_open()
        if isinstance(item, Topic):
            self._declare(item)
        elif isinstance(item, SeedOffset):
            self._check_partition(item.place, item.topic, item.partition)
            self.offsets.append(item)
            if len(self.offsets) > OFFSETS_MAX:
                raise SeedError(f"{item.place}: more than {OFFSETS_MAX} offsets of groups")
        else:
            self._take_record(item)

    def take_segments(self, part: SegmentPartition) -> None:
        """Take the segment files of a partition. Raises the errors of `take`, OSError."""
        self._check_open()
        topic, partition, files = part
        self._check_unused(topic)
        directory = files[0].parent
        if partition >= PARTITIONS_MAX:
            raise SeedError(
                f"{directory}: partition {partition}: expected a number below {PARTITIONS_MAX}"
            )
        partition_count = self._count(topic)
        if partition_count is None or topic in self.undeclared:
            # A directory has its partitions in any order.
            self.undeclared[topic] = max(partition + 1, self.undeclared.get(topic, 1))
        self._check_partition(directory, topic, partition)
        scanned = segments.scan(part)
        self.records[topic] = self.records.get(topic, 0) + scanned.records
        self._parts.append((part, scanned))

    def finish(self) -> None:
        """Put the batches that are not full yet behind the others. Raises SeedError for a topic
        that is not as declared.
        """
        for error in self._unlike:
            raise error
        self._spool_pending()

    def batches(self) -> Iterator[StagedBatch]:
        """Yield all batches, those of a partition in their order. Raises SeedError, OSError."""
        names = list(self._names)
        self._spool.seek(0)
        while entry := self._spool.read(_ENTRY.size):
            topic, file, partition, line, size_bytes = _ENTRY.unpack(entry)
            batch = bytearray(self._spool.read(size_bytes))
            yield StagedBatch(names[topic], partition, batch, f"{names[file]}:{line}")
        for part, scanned in self._parts:
            yield from segments.read(part, scanned)

    def _declare(self, topic: Topic) -> None:
        name, place = topic.name, topic.place
        if name in self.topics:
            raise SeedError(
                f"{place}: topic {name} is declared twice, first at {self.topics[name].place}"
            )
        if name in self.records:
            raise SeedError(
                f"{place}: topic {name} is declared after its first record: put it before"
            )
        count = self.cluster.partitions.get(name)
        if count is not None and topic.partitions not in (-1, count):
            error = SeedError(
                f"{place}: partitions: {topic.partitions}: topic {name} exists with {count}: "
                "give the same number, or delete the topic"
            )
            if name not in self.cluster.used_topics:
                raise error
            self._unlike.append(error)
        self.topics[name] = topic
        self._check_topics(place)

    def _check_unused(self, topic: str) -> None:
        """Raise LoadedBeforeError if the topic has had records before the seed."""
        if topic in self.cluster.used_topics:
            raise LoadedBeforeError(f"topic {topic} has records, or had some")

    def _check_topics(self, place: object) -> None:
        """Raise SeedError if the seed has too many topics."""
        if len(self.topics) + len(self.undeclared) > TOPICS_MAX:
            raise SeedError(f"{place}: more than {TOPICS_MAX} topics")

    def _count(self, topic: str) -> int | None:
        """Return the partitions that a topic has, or will have; None: nobody named it yet."""
        count = self.cluster.partitions.get(topic, self.undeclared.get(topic))
        if count is None and (declared := self.topics.get(topic)) is not None:
            count = declared.partitions
            if count == -1:
                count = self.cluster.default_partitions
        return count

    def _check_partition(self, place: object, topic: str, partition: int | None) -> int:
        """Return the partitions of a topic. Raises SeedError if this one is none of them."""
        count = self._count(topic)
        if count is None:
            count = self.undeclared[topic] = self.cluster.default_partitions
            self._check_topics(place)
        if partition is not None and partition >= count:
            numbers = "0" if count == 1 else f"0 to {count - 1}"
            raise SeedError(
                f"{place}: partition: {partition}: topic {topic} has {numbers}: expected one of "
                f"them, or a line before it that declares the topic with more partitions"
            )
        return count

    def _take_record(self, record: SeedRecord) -> None:
        topic, partition, when, key, value, headers, place = record
        records_before = self.records.get(topic, 0)
        if not records_before:
            self._check_unused(topic)
        count = self._check_partition(place, topic, partition)
        if partition is None:
            partition = partition_of(key, count)
        name = (topic, partition)
        size_bytes = len(key or b"") + len(value or b"") + RECORD_BYTES_AROUND
        for header, content in headers:
            size_bytes += len(header) + len(content or b"")
        if self._pending_bytes.get(name, 0) + size_bytes > BATCH_BYTES:
            self._spool_batch(name)
        pending = self._pending.get(name)
        if pending is None:
            pending = self._pending[name] = []
            self._pending_bytes[name] = 0
            self._pending_places[name] = place
        timestamp = self.cluster.now_ms if when is None else when
        pending.append(Record(0, timestamp, key, value, headers))
        self._pending_bytes[name] += size_bytes
        self._all_pending_bytes += size_bytes
        self.records[topic] = records_before + 1
        if self._all_pending_bytes > PENDING_BYTES:
            self._spool_pending()

    def _spool_pending(self) -> None:
        for name in list(self._pending):
            self._spool_batch(name)

    def _spool_batch(self, name: tuple[str, int]) -> None:
        records = self._pending.pop(name, None)
        if records is None:
            return
        self._all_pending_bytes -= self._pending_bytes.pop(name)
        batch = build_batch(records)
        topic, partition = name
        file, line = self._pending_places.pop(name)
        entry = _ENTRY.pack(self._number(topic), self._number(file), partition, line, len(batch))
        self._spool.write(entry)
        self._spool.write(batch)

    def _number(self, name: str) -> int:
        """Return the number of a topic or a file in the entries of the temporary file."""
        return self._names.setdefault(name, len(self._names))


def stage(path: Path, name: str, seed: StagedSeed) -> None:
    """Read a seed whole, and check it.

    Args:
        path: a file, or a directory, see `load.load`.
        name: of the path, for messages.
        seed: takes it, empty before.

    Raises SeedError, LoadedBeforeError.
    """
    try:
        _stage(path, name, seed)
        seed.finish()
    except OSError as error:
        raise SeedError(f"{error.filename or name} cannot be read: {error.strerror}") from None


def _stage(path: Path, name: str, seed: StagedSeed) -> None:
    """Raises SeedError, LoadedBeforeError, OSError."""
    if path.is_dir():
        _stage_directory(path, name, seed)
    elif segments.is_segment(path):
        seed.take_segments(segments.partition_of_file(path))
    elif path.suffix in JSON_LINES + YAML:
        _stage_items(path, name, seed)
    else:
        path.stat()
        raise SeedError(
            f"{name} is no seed: expected a file that ends in {', '.join(JSON_LINES + YAML)} or is "
            "a segment file (00000000000000000000.log), or a directory of these"
        )


def _stage_directory(path: Path, name: str, seed: StagedSeed) -> None:
    """Raises SeedError, OSError."""
    files = sorted(file for file in path.iterdir() if file.suffix in JSON_LINES + YAML)
    parts = segments.partitions_in(path)
    if not files and not parts:
        raise SeedError(
            f"{name} has no seed in it: expected .jsonl or .yaml files, or directories such as "
            "orders-0 with segment files"
        )
    for file in files:
        _stage_items(file, f"{name.rstrip('/')}/{file.name}", seed)
    for part in parts:
        seed.take_segments(part)


def _stage_items(path: Path, name: str, seed: StagedSeed) -> None:
    """Raises SeedError, OSError."""
    read_items = yaml_file.read_items if path.suffix in YAML else json_lines.read_items
    with path.open("rb") as file:
        for item in read_items(file, name, seed.cluster.now_ms):
            seed.take(item)
