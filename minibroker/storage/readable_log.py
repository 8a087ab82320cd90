"""The reading half of a partition's log: Fetch, ListOffsets, OffsetForLeaderEpoch,
DescribeProducers.

First station of a Fetch on disk: floor of the ordered segments, floor in the offset index, forward
along batch headers, then a slice of the file (F3, F4). Nothing is decompressed; what is found goes
to the socket as it lies on disk. `PartitionLog` adds the writing half.

Source: Kafka UnifiedLog.read, LocalLog.read.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.clock import Clock
from minibroker.error_codes import ErrorCode
from minibroker.errors import CorruptionError, KafkaError, StorageError
from minibroker.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from minibroker.storage import lookups, producer_files
from minibroker.storage.disk import Disk
from minibroker.storage.epochs import LeaderEpochs
from minibroker.storage.partition_metadata import read_metadata
from minibroker.storage.producer_state import ProducerEntry, ProducerState
from minibroker.storage.segment import Segment
from minibroker.storage.segments import Segments
from minibroker.storage.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from minibroker.config.topic import TopicConfig

_NOTHING: Final = memoryview(b"")


class LogRead(NamedTuple):
    """What Fetch answers: bytes of whole batches, the last one perhaps cut.

    `segment_base_offset` and `position` say where in the files they begin; `is_first_batch_cut`:
    the bytes are fewer than their first batch, so a client that must make progress needs more.
    """

    records: memoryview
    segment_base_offset: int
    position: int
    is_first_batch_cut: bool


class LogPosition(NamedTuple):
    """A place in the files: the base offset of the segment, and bytes from its start."""

    segment_base_offset: int
    position: int


class ReadableLog:
    """A log as a reader sees it. `log_end_offset` is one beyond the last written record."""

    __slots__ = (
        "_active",
        "_clock",
        "_disk",
        "_opened_end_offset",
        "_producers",
        "_topic_id",
        "clean_offset",
        "config",
        "directory",
        "epochs",
        "is_deleted",
        "log_end_offset",
        "log_start_offset",
        "name",
        "recovery_point",
        "segments",
        "truncation_count",
    )

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        name: TopicPartition,
        directory: str,
        *,
        config: "TopicConfig",
        segments: Segments,
        epochs: LeaderEpochs,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
    ) -> None:
        """`segments` has at least one, the last is the active one."""
        self._disk = disk
        self._clock = clock
        self.name = name
        self.directory = directory
        self.config = config
        self.segments = segments
        self.epochs = epochs
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point
        self.is_deleted = False
        self.clean_offset: int | None = None
        """Compaction came up to here (`cleaner-offset-checkpoint`); None: it never ran."""
        self.truncation_count = 0
        """Who read segments a while ago and finds another number cannot trust what it read."""
        self._active = segments.last
        self._topic_id: TopicId | None = None
        self._producers: ProducerState | None = None
        self._opened_end_offset = log_end_offset

    @property
    def topic(self) -> str:
        return self.name.topic

    @property
    def partition(self) -> int:
        return self.name.partition

    @property
    def topic_id(self) -> TopicId:
        """The id in `partition.metadata`, sixteen zero bytes where there is none. Raises
        StorageError.
        """
        if self._topic_id is None:
            try:
                self._topic_id = read_metadata(self._disk.files, self.directory) or ZERO_TOPIC_ID
            except (OSError, CorruptionError) as error:
                raise self._failed("read partition.metadata of", error) from error
        return self._topic_id

    def is_of_other_topic(self, topic_id: TopicId) -> bool:
        """Does the directory belong to another topic, of the same name? Raises StorageError.

        A directory without an id (Kafka before 2.8) may be any topic's.
        """
        return ZERO_TOPIC_ID not in (topic_id, self.topic_id) and self.topic_id != topic_id

    def assign_topic_id(self, topic_id: TopicId) -> None:
        """Give the directory its topic's id. Raises KafkaError(INCONSISTENT_TOPIC_ID),
        StorageError.

        The file is written by the worker: an id that a crash takes is assigned again at the next
        start.
        """
        if topic_id == ZERO_TOPIC_ID:
            return
        known = self.topic_id
        if known == topic_id:
            return
        if known != ZERO_TOPIC_ID:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{self.directory} belongs to topic id {known.hex()}, not to {topic_id.hex()}",
            )
        self._topic_id = topic_id
        self._disk.run_later(self._write_topic_id)

    def _write_topic_id(self) -> None:
        """On the worker. Raises StorageError."""
        if self._topic_id is None or self.is_deleted:
            return
        try:
            self._disk.metadata.write(self.directory, self._topic_id)
        except OSError as error:
            if not self.is_deleted:
                raise self._failed("write partition.metadata of", error) from error

    @property
    def is_empty(self) -> bool:
        """Is there nothing to read? What is staged does not count."""
        return self.log_end_offset == self.log_start_offset

    @property
    def size_bytes(self) -> int:
        """Bytes in all `.log` files (R6), staged ones not counted. Raises OSError."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def active_segment(self) -> Segment:
        return self._active

    def _failed(self, what: str, error: Exception) -> StorageError:
        return StorageError(
            f"cannot {what} {self.name} in {self.directory}: {error}",
            log_directory=self.log_directory,
        )

    @property
    def log_directory(self) -> str:
        """The one of `log.dirs` that it is in."""
        return self.directory.rpartition("/")[0] or "/"

    def write_staged(self) -> None:
        """Make what was appended visible; there is nothing where nobody appends."""

    def read(self, offset: int, max_bytes: int, *, end_offset: int, min_one_batch: bool) -> LogRead:
        """Bytes from the batch that holds `offset`, at most `max_bytes`, nothing from `end_offset`
        on.

        With `min_one_batch` the first batch is whole even if larger. The slice is read-only and
        stays valid as long as it is kept. Raises KafkaError(OFFSET_OUT_OF_RANGE), StorageError.
        """
        self.write_staged()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.name} is not in {self.log_start_offset} … "
                f"{self.log_end_offset}",
            )
        if offset >= end_offset or offset == self.log_end_offset:
            return LogRead(_NOTHING, self._active.base_offset, self._active.size_bytes, False)
        try:
            return self._read(offset, max_bytes, end_offset, min_one_batch)
        except (OSError, CorruptionError) as error:
            raise self._failed("read", error) from error

    def _read(self, offset: int, max_bytes: int, end_offset: int, min_one_batch: bool) -> LogRead:
        segment = self._active
        if offset == segment.tail_offset and end_offset >= self.log_end_offset:
            position = segment.tail_position
            size = segment.size_bytes - position
            if size <= max_bytes:
                return LogRead(segment.read(position, size), segment.base_offset, position, False)
        segment, found = self._find(offset)
        if found is None:
            return LogRead(_NOTHING, segment.base_offset, segment.size_bytes, False)
        position, first_bytes, _ = found
        limit = segment.size_bytes
        if end_offset < self.log_end_offset:
            end = segment.find_batch(end_offset) if end_offset > segment.base_offset else found
            limit = limit if end is None else end[0]
        wanted = max(max_bytes, first_bytes) if min_one_batch else max_bytes
        size = max(min(wanted, limit - position), 0)
        records = segment.read(position, size) if size else _NOTHING
        return LogRead(records, segment.base_offset, position, size < first_bytes)

    def _find(self, offset: int) -> tuple[Segment, tuple[int, int, int] | None]:
        """The first batch that ends at `offset` or later, as `Segment.find_batch` gives it, and
        its segment; the last segment and None where compaction took every such batch.
        """
        segment = self.segments.floor(offset) or self.segments.first
        found = segment.find_batch(offset)
        while found is None:
            higher = self.segments.higher(segment.base_offset)
            if higher is None:
                break
            segment = higher
            found = segment.find_batch(offset)
        return segment, found

    def position_of(self, offset: int) -> LogPosition:
        """Return where the first batch begins that ends at `offset` or later.

        Without such a batch it is the end of the log. Raises StorageError.

        Source: Kafka LocalLog.convertToOffsetMetadataOrThrow.
        """
        if offset >= self.log_end_offset:
            return LogPosition(self._active.base_offset, self._active.size_bytes)
        try:
            segment, found = self._find(offset)
        except (OSError, CorruptionError) as error:
            raise self._failed("read", error) from error
        return LogPosition(segment.base_offset, segment.size_bytes if found is None else found[0])

    @property
    def last_stable_offset(self) -> int:
        """Up to where no transaction is undecided; the caller bounds it by the high watermark."""
        first_unstable = self.producer_state.first_unstable_offset
        return self.log_end_offset if first_unstable is None else first_unstable

    def note_high_watermark(self, high_watermark: int) -> None:
        """Transactions that ended below it are decided for readers: `last_stable_offset` moves."""
        if self._producers is not None:
            self._producers.on_high_watermark(high_watermark)

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with data in `start` ≤ offset < `end`. Raises StorageError."""
        found: list[AbortedTransaction] = []
        try:
            for segment in self.segments.since(start):
                entries, is_complete = segment.txn_index.overlapping(start, end)
                found += entries
                if is_complete:
                    break
        except (OSError, CorruptionError) as error:
            raise self._failed("read the transaction index of", error) from error
        return found

    def end_of(self, read: LogRead) -> int:
        """An offset at or behind the last one in `read`, for `aborted_transactions`. Cheap, not
        exact.
        """
        segment = self.segments.floor(read.segment_base_offset) or self._active
        above = segment.offset_index.lookup_above(read.position + len(read.records))
        if above is not None:
            return above
        higher = self.segments.higher(segment.base_offset)
        return self.log_end_offset if higher is None else higher.base_offset

    def offset_for_timestamp(self, timestamp: int) -> lookups.TimestampOffset | None:
        """The first record with a timestamp ≥ `timestamp` (ms), None if none (T7). Raises
        StorageError.
        """
        self.write_staged()
        try:
            return lookups.find_by_timestamp(self.segments, timestamp, self.log_start_offset)
        except (OSError, CorruptionError) as error:
            raise self._failed("look up a time in", error) from error

    def max_timestamp_offset(self) -> lookups.TimestampOffset | None:
        """The first record with the largest timestamp (ListOffsets -3). Raises StorageError."""
        self.write_staged()
        try:
            return lookups.find_max_timestamp(self.segments)
        except (OSError, CorruptionError) as error:
            raise self._failed("look up a time in", error) from error

    def offsets_before(self, timestamp: int, max_count: int) -> list[int]:
        """ListOffsets v0: offsets of segments, newest first (T8). Raises StorageError."""
        self.write_staged()
        try:
            return lookups.offsets_before(
                self.segments,
                timestamp,
                max_count,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                now_ms=self._clock.now_ms(),
            )
        except OSError as error:
            raise self._failed("look up a time in", error) from error

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest known epoch ≤ `epoch`, offset behind its last record); (-1, -1) when unknown."""
        self.write_staged()
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    @property
    def producer_state(self) -> ProducerState:
        """Loaded when first asked for: the newest snapshot, and a replay up to where the log ended
        when it was opened. What was appended since without a producer id changes nothing, and an
        append with one asks first. Raises StorageError.
        """
        if self._producers is None:
            state = ProducerState(self.name)
            self._load_producers(state)
            self._producers = state
        return self._producers

    def adopt_producers(self, producers: ProducerState | None) -> None:
        """Take over what recovery knows of the producers at the log's end; None: it is loaded when
        somebody asks.
        """
        self._producers = producers

    def _load_producers(self, state: ProducerState) -> None:
        try:
            producer_files.load_state(
                self._disk.files,
                self.directory,
                self.segments,
                state=state,
                log_start_offset=self.log_start_offset,
                end_offset=self._opened_end_offset,
                now_ms=self._clock.now_ms(),
                expiration_ms=self._disk.producer_expiration_ms,
            )
        except (OSError, CorruptionError) as error:
            raise self._failed("load the producers of", error) from error

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> Iterator[int]:
        """Forget producers silent for `expiration_ms`, in short steps.

        The last step yields the number of producers that stay in memory, the others 0.
        """
        if self._producers is not None:
            for _ in self._producers.remove_expired(now_ms, expiration_ms):
                yield 0
            yield len(self._producers.producers)

    def producers(self) -> dict[int, ProducerEntry]:
        """Producer id → what is known of it (DescribeProducers); not to be changed."""
        return self.producer_state.producers
