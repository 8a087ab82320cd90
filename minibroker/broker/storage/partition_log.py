"""The log of one partition: Produce appends to it, Fetch reads it, retention shortens it.

Made by `recovery.load_log`, owned by the log manager. It is composed of parts; each has one noun:

    place        `PartitionDirectory`  the directory, its topic, whether the log is in service
    segments     `Segments`            the files with all written records; the last one is active
    tail         `Tail`                staged batches, and the room that the active segment has
    epochs       `LogEpochs`           where each leader epoch began
    producers    `LogProducers`        idempotent producers, open transactions, snapshots
    durability   `Durability`          how much is on the disk, and the work that gets it there

This module changes a log. Functions beside it read one (`log_reads`, `log_reads`), say which of its
segments go (`retention`), and put compacted ones in their place (`compaction`).

The log is the last station of a Produce request. `append_as_leader` checks a batch (`validator`),
asks the producer state whether it is new, numbers it and stages it. `write_staged` comes once per
socket read. It hands everything staged to the system in one call. Only after that readers see the
batches, and answers leave. A write that fails or comes back short leaves no trace: the file is cut
back, offsets and producer state return to the last written record, and every staged entry is
marked as lost. A later append may succeed. `append_as_follower` takes batches as the leader
numbered them (`follower_records`).

A change of many steps is whole, or the log's directory goes offline (`HalfChangedError`), whatever
came between. `write_staged` has one such: nothing may be left out once the bytes are in the file.

A crash may lose or tear everything behind the recovery point; `recovery` restores the log from the
files. One thread (the loop's) uses a log. Tasks run on others: those of `durability` change nothing
in it, the loop applies them. `check_invariant` says what holds between two calls.

How far a log goes (`LogExtent`) are the offsets that have to agree with each other:

    log start ≤ recovery point ≤ log end          log start ≤ high watermark ≤ log end

A log takes all of them at once, when it is opened and whenever it is cut or starts later. So a
checkpoint or a caller that says something else changes nothing. Kafka checks some of it in each
setter.

Source: Kafka UnifiedLog, LocalLog; FORMAT.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from minibroker.broker.storage import segment_files
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.durability import Durability
from minibroker.broker.storage.epochs import LeaderEpochs, LogEpochs
from minibroker.broker.storage.files import BUFFERS_MAX, Files
from minibroker.broker.storage.follower_records import ReplicatedBatch, batches_to_append
from minibroker.broker.storage.indexes import TAIL_ENTRIES
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.broker.storage.producer_state import RecentBatch
from minibroker.broker.storage.producers import LogProducers
from minibroker.broker.storage.record_checks import AppendRules, Checked
from minibroker.broker.storage.removals import RemoveDirectoryTask
from minibroker.broker.storage.segment import Segment, Segments, roll_jitter_ms
from minibroker.broker.storage.tail import ALWAYS_ASK, AppendInfo, Tail
from minibroker.broker.storage.tasks import CreateTask
from minibroker.broker.storage.txn_index import aborted_transaction
from minibroker.broker.storage.validator import check
from minibroker.clock import Clock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, HalfChangedError, KafkaError, StorageError
from minibroker.kafka.records.batch import BatchHeader, iterate_headers
from minibroker.kafka.records.control import read_marker

if TYPE_CHECKING:
    from minibroker.broker.config.topic import TopicConfig

logger = logging.getLogger(__name__)


class LogExtent(NamedTuple):
    """The offsets of one log. Made by `clamped`."""

    log_start_offset: int
    """The first offset that a reader may ask for."""
    recovery_point: int
    """Everything below is durable, or below the log's start."""
    high_watermark: int
    """A reader may see everything below."""
    log_end_offset: int
    """One beyond the last written record."""
    clean_offset: int | None
    """Compaction came up to here; None: it never ran."""


def clamped(
    *,
    log_start_offset: int,
    recovery_point: int,
    high_watermark: int,
    log_end_offset: int,
    clean_offset: int | None,
) -> LogExtent:
    """Return the offsets, those in the middle put between the log's start and its end.

    Raises ValueError for a log that ends before it starts.
    """
    if log_end_offset < log_start_offset:
        raise ValueError(f"a log from {log_start_offset} cannot end at {log_end_offset}")
    return LogExtent(
        log_start_offset,
        min(max(recovery_point, log_start_offset), log_end_offset),
        min(max(high_watermark, log_start_offset), log_end_offset),
        log_end_offset,
        None if clean_offset is None else min(clean_offset, log_end_offset),
    )


__all__ = ["AppendInfo", "OnUnsynced", "PartitionLog"]

OnUnsynced = Callable[["PartitionLog", bool], object]
"""Gets a log that was appended to since its last sync, and whether that was much since it asked
last."""


def _ignore() -> None:
    """Do nothing: no partition has this log."""


def _sync_never(_log: PartitionLog, _has_grown_much: bool) -> None:
    """Do nothing: the `on_unsynced` of tools and tests, where nothing is synced by itself."""


class PartitionLog:
    """One partition's log. Its fields belong to the loop, except where they say otherwise."""

    __slots__ = (
        "_tail",
        "_unsaved_cut",
        "clean_offset",
        "clock",
        "config",
        "disk",
        "durability",
        "epochs",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "name",
        "on_start_moved",
        "on_unsynced",
        "place",
        "producers",
        "rules",
        "segments",
    )

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        place: PartitionDirectory,
        *,
        config: TopicConfig,
        rules: AppendRules,
        segments: Segments,
        epochs: LeaderEpochs,
        extent: LogExtent,
        snapshot_offset: int,
    ) -> None:
        """`rules` are those of `config`. `segments` has at least one, the last is the active one.

        `snapshot_offset`: of the newest producer snapshot, 0: none.
        """
        self.disk = disk  # constant after construction, as `clock` and `name`
        self.clock = clock
        self.name = place.name
        self.place = place
        """Directory and name of the log. Work beside the loop gets this, not the log."""
        self.config = config
        self.rules = rules
        """Rules that `config` sets for records; an object that does not change."""
        self.log_start_offset = extent.log_start_offset
        self.on_start_moved: Callable[[], None] = _ignore
        """Told when the log starts later; set by the partition that has the log."""
        self.on_unsynced: OnUnsynced = _sync_never
        """Told of the first append since the last sync, and when much was appended; set by the log
        manager."""
        self.log_end_offset = extent.log_end_offset
        """One beyond the last written record."""
        self.high_watermark = extent.high_watermark
        """Everything below it is on all replicas in sync: what a reader may see. With
        one replica the leader moves it with every write."""
        self.clean_offset = extent.clean_offset
        """Compaction came up to here (`cleaner-offset-checkpoint`); None: it never ran."""
        self._unsaved_cut: Callable[[], None] | None = None
        # Writes the checkpoints that follow a truncation; None: they are written.
        # The parts.
        self.segments = segments
        self._tail = Tail(extent.log_end_offset)
        self.epochs = LogEpochs(disk, place, epochs)
        self.producers = LogProducers(
            disk,
            clock,
            place,
            segments,
            self,
            log_end_offset=extent.log_end_offset,
            snapshot_offset=snapshot_offset,
        )
        self.durability = Durability(
            disk,
            clock,
            place,
            self,
            segments=segments,
            producers=self.producers,
            recovery_point=extent.recovery_point,
        )

    def _take_extent(self, extent: LogExtent) -> None:
        """Let the log be from here to there from now on."""
        self.log_start_offset = extent.log_start_offset
        self.log_end_offset = extent.log_end_offset
        self.high_watermark = extent.high_watermark
        self.clean_offset = extent.clean_offset
        self.durability.recovery_point = extent.recovery_point

    def check_invariant(self) -> bool:
        """Return True; what holds after every change of the log is asserted. O(1), touches no file.

        Called as `assert log.check_invariant()`: with `python -O` it costs nothing. It is a step of
        the change, so a log that is not as it should be goes offline. A write, which only moves the
        end forward, asserts no more than that.
        """
        start, end, next_offset = self.log_start_offset, self.log_end_offset, self._tail.next_offset
        recovery_point = self.durability.recovery_point
        assert start <= recovery_point <= end <= next_offset, (
            f"{self.name}: {start} ≤ {recovery_point} ≤ {end} ≤ {next_offset} does not hold"
        )
        assert start <= self.high_watermark <= end, (
            f"{self.name}: {start} ≤ {self.high_watermark} ≤ {end} does not hold"
        )
        # A follower's segment may begin behind a gap that compaction left on the leader.
        assert self.segments.hold(start, next_offset), (
            f"{self.name}: {start} … {next_offset} in segments {self.segments.base_offsets}"
        )
        return True

    @property
    def topic(self) -> str:
        return self.name.topic

    @property
    def partition(self) -> int:
        return self.name.partition

    @property
    def directory(self) -> str:
        """Return the path of the directory of the files."""
        return self.place.path

    @property
    def log_directory(self) -> str:
        """Return the one of `log.dirs` that it is in."""
        return self.place.log_directory

    @property
    def files(self) -> Files:
        return self.disk.files

    def _failed(self, action: str, error: Exception) -> StorageError:
        return self.place.failed(action, error)

    def update_config(self, config: TopicConfig, rules: AppendRules) -> None:
        """`rules` are those of `config`. A log in message format 0 or 1 has no leader epochs.

        Source: Kafka 2.8 Log.updateConfig, initializeLeaderEpochCache.
        """
        self.config = config
        self.rules = rules
        self._tail.forget_room()
        if not self.has_epochs:
            self.epochs.clear()

    @property
    def has_epochs(self) -> bool:
        """Return whether records say their leader epoch. One epoch without records among others
        that have none would have followers compare what cannot be compared.
        """
        return self.config.message_magic >= 2

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to read. Staged batches do not count."""
        return self.log_end_offset == self.log_start_offset

    @property
    def size_bytes(self) -> int:
        """Return the bytes in all `.log` files, staged ones not counted. Raises OSError."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def active_segment(self) -> Segment:
        return self.segments.last

    @property
    def recovery_point(self) -> int:
        """Return the offset below which everything is durable."""
        return self.durability.recovery_point

    @property
    def last_stable_offset(self) -> int:
        """Return the offset below which no transaction is undecided; the caller bounds it by the
        high watermark. DeleteRecords may be beyond where a transaction began.

        Raises StorageError.
        """
        producers = self.producers.state or self.producers.loaded()
        first_unstable = producers.first_unstable_offset
        if first_unstable is None or first_unstable > self.log_end_offset:
            return self.log_end_offset
        return max(first_unstable, self.log_start_offset)

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark to `offset`, or to the log's start or end where that is outside;
        return it. A follower's may go back.

        Transactions that ended below it are decided for readers: `last_stable_offset` moves.
        Source: Kafka UnifiedLog.updateHighWatermark.
        """
        self.high_watermark = min(max(offset, self.log_start_offset), self.log_end_offset)
        if self.producers.state is not None:
            self.producers.state.on_high_watermark(self.high_watermark)
        return self.high_watermark

    def advance_high_watermark(self, offset: int) -> bool:
        """Move a leader's high watermark forward to `offset`; False: it is there or beyond already.

        Raises ValueError beyond the log's end.

        Source: Kafka UnifiedLog.maybeIncrementHighWatermark.
        """
        if offset > self.log_end_offset:
            raise ValueError(
                f"high watermark {offset} of {self.name} is beyond its end {self.log_end_offset}"
            )
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        producers = self.producers.state
        if producers is not None:
            producers.on_high_watermark(offset)
        return True

    def begin_leader_epoch(self, epoch: int) -> None:
        """Note that this broker leads from now on, in `epoch`, which begins at the log's end.

        Told even when nothing is appended: a reader may ask where the epoch began. The checkpoint
        follows on the worker, that of an empty log with its first record: until then it says
        nothing that is not told again at the next start. Source: Kafka Partition.makeLeader.
        """
        if self.has_epochs and epoch > self.epochs.history.latest_epoch:
            if self.is_empty:
                self.epochs.begin(epoch, self.log_end_offset)
                self._tail.forget_room()
            else:
                self.epochs.assign(epoch, self.log_end_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest known epoch ≤ `epoch`, and the offset behind its last record; (-1, -1)
        when unknown. Raises StorageError.
        """
        self.write_staged()
        return self.epochs.history.end_offset_for(epoch, self.log_end_offset)

    def check(
        self,
        records: memoryview,
        now_ms: int,
        origin: Literal["client", "coordinator"] = "client",
        is_bounded: bool = False,
        header: BatchHeader | None = None,
    ) -> Checked:
        """Check one batch for `append_as_leader`; `records` are writable, and may be patched.

        `header`: as `validator.check` takes it. Raises KafkaError (the batch is refused, see
        `validator`); with `is_bounded`, LargeBatchError, as `validator.check`, and ColdError and
        StorageError, as `LogProducers.require`.
        """
        if is_bounded and header is not None and header.producer_id >= 0:
            state = self.producers.state
            if state is None or header.producer_id in state.unsure:
                self.producers.require(header)
        return check(records, self.rules, now_ms, self.name, origin, is_bounded, header)

    def append_as_leader(
        self,
        checked: Checked,
        leader_epoch: int,
        origin: Literal["client", "coordinator"] = "client",
    ) -> AppendInfo:
        """Number and stage a batch, whose bytes are to stay valid until `write_staged`.

        Nothing is on disk and no reader sees it before `write_staged` returned. Raises KafkaError
        (the batch is refused, see `validator` and `producer_state`), StorageError.
        """
        tail, producers = self._tail, self.producers
        checked.number(tail.next_offset, leader_epoch)
        records, header = checked.records, checked.header
        last_offset = header.base_offset + header.last_offset_delta
        max_timestamp = header.max_timestamp
        if not tail.fits(last_offset, max_timestamp, header.size_bytes):
            self._make_room(header, checked.now_ms)
        if header.magic < 2:
            return self._append_message_set(records, header, checked.now_ms)
        if leader_epoch > self.epochs.history.latest_epoch:
            # Before producer state changes: this writes a file, which may fail.
            self.epochs.assign(leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            if header.is_control:
                entry = AppendInfo(header.base_offset, last_offset, -1, self.log_start_offset)
                self._append_marker(records, header, entry, "coordinator")
                return entry
            state = producers.state or producers.loaded()
            if header.producer_id in state.unsure:
                state = producers.loaded_for(header)
            repeated = state.append(header, origin)
            if repeated is not None:
                return self._repetition(repeated)
        append_time_ms = max_timestamp if self.rules.is_append_time else -1
        entry = AppendInfo(header.base_offset, last_offset, append_time_ms, self.log_start_offset)
        if tail.stage(records, entry, last_offset, max_timestamp):
            self.write_staged()
        return entry

    def _repetition(self, repeated: RecentBatch) -> AppendInfo:
        """Return the entry of a batch that the log has already; it shares the first one's fate."""
        entry = AppendInfo(
            repeated.first_offset,
            repeated.last_offset,
            # As Kafka: the first append's time, in a topic of CreateTime too.
            repeated.timestamp,
            self.log_start_offset,
            duplicate=True,
        )
        if repeated.last_offset < self.log_end_offset:
            entry.is_written = True
        else:
            self._tail.entries.append(entry)
        return entry

    def _append_message_set(
        self, records: memoryview, header: BatchHeader, now_ms: int
    ) -> AppendInfo:
        """Stage messages of format 0 or 1; `header` stands for all of them.

        Accounted in two parts, so that the time index names the first message with the largest
        timestamp, not the last one of the set (Kafka: shallowOffsetOfMaxTimestamp). Leader epochs
        end here, as these formats have none: a follower would go by the high watermark.
        """
        self.epochs.clear()
        largest = header.max_timestamp
        first_part = None
        if largest >= 0:
            for position, message in iterate_headers(records):
                if message.max_timestamp == largest:
                    first_part_bytes = position + message.size_bytes
                    if first_part_bytes < len(records):
                        first_part = message.base_offset, largest, first_part_bytes
                        largest = -1
                    break
        append_time_ms = now_ms if self.rules.is_append_time else -1
        entry = AppendInfo(
            header.base_offset, header.last_offset, append_time_ms, self.log_start_offset
        )
        if self._tail.stage(records, entry, header.last_offset, largest, first_part):
            self.write_staged()
        return entry

    def _append_marker(
        self,
        records: memoryview,
        header: BatchHeader,
        entry: AppendInfo,
        origin: Literal["coordinator", "replication"],
    ) -> None:
        """Write the control batch that ends a transaction, and note an abort in the index.

        Raises CorruptionError where a follower's is none.
        """
        self.write_staged()
        marker = read_marker(records, 0, header)
        completed = None
        if marker is not None:
            completed = self.producers.loaded().append_marker(header, marker, origin)
        self._tail.stage(records, entry, header.last_offset, header.max_timestamp)
        self.write_staged()
        if completed is not None and completed.is_aborted:
            # The marker is in the log. Without the entry readers would take the transaction for a
            # committed one, so nothing is read before a start has made the index again.
            with self.place.whole_change("write the transaction index of"):
                self.place.note_names_changed()  # the index may be a new file
                self.active_segment.append_aborted(aborted_transaction(completed))

    def append_as_follower(self, records: memoryview, leader_epoch: int) -> AppendInfo | None:
        """Append what the leader's log has, as it is: offsets and leader epochs stay. It is written
        when this returns.

        `records`: bytes of a Fetch answer. `leader_epoch`: the latest that the follower knows.
        Return the first and last offset that were appended; None: there is no whole batch (of that
        epoch). Raises KafkaError (`follower_records`; INVALID_TXN_STATE), StorageError; what was
        appended before is below `log_end_offset`, and the next fetch goes on there.

        Source: Kafka UnifiedLog.appendAsFollower.
        """
        self.write_staged()
        batches = batches_to_append(
            records,
            leader_epoch=leader_epoch,
            log_end_offset=self.log_end_offset,
            segment_bytes=self.rules.segment_bytes,
            partition=self.name,
        )
        if not batches:
            return None
        first, last = batches[0].header, batches[-1].header
        entry = AppendInfo(first.base_offset, last.last_offset, -1, self.log_start_offset)
        now_ms = self.clock.now_ms()
        try:
            for batch in batches:
                self._append_replicated(batch, entry, now_ms)
        except CorruptionError as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.name}: {error}") from error
        finally:
            self.write_staged()
        return entry

    def _append_replicated(self, batch: ReplicatedBatch, entry: AppendInfo, now_ms: int) -> None:
        """Stage one batch. Raises CorruptionError for a marker that is none."""
        records, header = batch
        last_offset = header.last_offset
        if not self._tail.fits(last_offset, header.max_timestamp, header.size_bytes):
            self._make_room(header, now_ms)
        epoch = header.leader_epoch
        if header.magic < 2:
            self.epochs.clear()
        elif epoch >= 0 and epoch != self.epochs.history.latest_epoch:
            self.epochs.assign(epoch, header.base_offset)
        if header.producer_id >= 0:
            if header.is_control:
                self._append_marker(records, header, entry, "replication")
                return
            self.producers.loaded().append(header, "replication")
        if self._tail.stage(records, entry, last_offset, header.max_timestamp):
            self.write_staged()

    def write_staged(self) -> None:
        """Write everything staged in one call; from here on readers see it.

        Raises StorageError (no room, an I/O error): then none of it was appended, the file ends
        where it ended, producers may send the same batches again. Raises HalfChangedError where
        something went wrong behind the write: the bytes are in the file, and the log does not know.
        """
        tail = self._tail
        buffers = tail.buffers
        if not buffers:
            return
        segment = self.segments.last
        try:
            handle = self.disk.handles.get(segment.log_path, create=True)
            position = segment.size_bytes
            if len(buffers) <= BUFFERS_MAX:
                count = self.disk.files.pwritev(handle, buffers, position)
            else:
                count = 0
            if count != tail.size_bytes:
                self.disk.files.write_rest(handle, buffers, position, count)
        except Exception as error:
            self._drop_staged()
            raise self._failed("append to", error) from error
        end_position = position + tail.size_bytes
        try:  # a block, not `whole_change`: this runs once per socket read
            segment.tail_offset = self.log_end_offset
            segment.tail_position = position
            new_entry_count = 0
            interval = self.config.index_interval_bytes
            for last_offset, max_timestamp, size in tail.batches:
                if segment.note_append(last_offset, max_timestamp, size, interval):
                    new_entry_count += 1
            # All else of the invariant holds as before, where the end only moves forward.
            assert self.log_end_offset <= tail.next_offset, f"{self.name}: its end would move back"
            self.log_end_offset = tail.next_offset
            tail.note_written(new_entry_count)
            producers = self.producers.state
            if producers is not None:
                producers.commit()
            if new_entry_count and segment.unwritten_entry_count >= TAIL_ENTRIES:
                self._write_indexes(segment)
        except Exception as error:
            raise self.place.failed("append to", error, HalfChangedError) from error
        if self.durability.wants_sync(end_position):
            self.on_unsynced(self, self.durability.ask_for_sync(end_position))

    def _drop_staged(self) -> None:
        """Return to what is written: file, offsets, producers, epochs; what was staged is lost.
        Raises HalfChangedError.
        """
        with self.place.whole_change("take back an append to"):
            segment = self.segments.last
            # A follower's segment may begin behind the log's end. The next record belongs there.
            self._tail.drop(max(self.log_end_offset, segment.base_offset))
            if self.producers.state is not None:
                self.producers.state.rollback()
            self.epochs.truncate_from_end(self.log_end_offset)
            try:
                segment.cut(segment.size_bytes)
            except OSError as error:
                # The next append writes over the same place, and recovery cuts what it finds there.
                logger.warning("cannot cut %s after a failed append: %s", segment.log_path, error)
            assert self.check_invariant()

    def _write_indexes(self, segment: Segment) -> None:
        try:
            segment.write_indexes()
        except OSError as error:
            # The records are written; entries stay in memory and are tried again.
            logger.warning("cannot write the index of %s: %s", segment.log_path, error)

    def _make_room(self, header: BatchHeader, now_ms: int) -> None:
        """Roll if the batch of `header` does not belong into the active segment; count its room
        anew, and have the segment ready for the write.
        """
        self.write_staged()
        save_cut = self._unsaved_cut
        if save_cut is not None:  # the worker has not come to it
            save_cut()
            self.note_cut_saved(save_cut)
        segment = self.segments.last
        if self.is_empty:
            self.disk.worker.run_later(CreateTask(segment))
            if self.epochs.history.latest_epoch >= 0:
                self.epochs.store()
        config, segment_bytes = self.config, self.rules.segment_bytes
        try:
            used = segment.size_bytes
            age_ms_max = config.segment_age_ms_max - segment.roll_jitter_ms
            if (
                header.size_bytes > segment_bytes - used
                or (used > 0 and segment.age_ms(now_ms, header.max_timestamp) > age_ms_max)
                or segment.index_room(config.segment_index_bytes) <= 0
                or header.last_offset > segment.max_offset
            ):
                # The offset of a compressed message of an old format is that of its last record.
                segment = self.roll(header.base_offset if header.magic == 2 else None)
                used = 0
                age_ms_max = config.segment_age_ms_max - segment.roll_jitter_ms
            if used == 0:
                # Whatever was synced before, the file had no name then.
                self.place.note_names_changed()
            segment.prepare_append()
            first = segment.first_timestamp if used else header.max_timestamp
            self._tail.set_room(
                segment_bytes - used,
                segment.index_room(config.segment_index_bytes),
                roll_after_ms=first + age_ms_max if first >= 0 else ALWAYS_ASK,
                max_offset=segment.max_offset,
            )
        except (OSError, CorruptionError) as error:
            raise self._failed("append to", error) from error

    def roll(self, base_offset: int | None = None) -> Segment:
        """Begin a new segment at `base_offset` (the log's end if not given); it is returned.

        The old one's files get their final form, a producer snapshot is written, and the worker
        syncs both and moves the recovery point. An empty active segment that starts there stays.
        Raises StorageError.
        """
        self.write_staged()
        old = self.segments.last
        start = max(base_offset or 0, self.log_end_offset)
        if old.base_offset == start:
            return old
        try:
            old.become_inactive()
            self.producers.stage_snapshot(start)
        except OSError as error:
            raise self._failed("begin a segment of", error) from error
        with self.place.whole_change("begin a segment of"):
            new = self._begin_segment(start)
            self._tail.next_offset = start
            self.durability.note_roll()
        self.preallocate()
        self.disk.worker.run_later(CreateTask(new))
        self.durability.flush_later(start, old)
        return new

    def _begin_segment(self, base_offset: int) -> Segment:
        """Have a new, empty segment as the active one; the caller has its files made."""
        fresh = self.new_segment(base_offset)
        fresh.begin_empty()
        self.segments.add(fresh)
        self._tail.forget_room()
        self.place.note_names_changed()
        return fresh

    def preallocate(self) -> None:
        """Give an active `.log` that is empty a full segment's length where so configured. Raises
        StorageError.
        """
        if self.config.preallocate:
            try:
                self.active_segment.preallocate(self.rules.segment_bytes)
            except OSError as error:
                raise self._failed("preallocate a segment of", error) from error

    def new_segment(self, base_offset: int) -> Segment:
        """Return a segment in the log's directory that is not in service; no file is touched."""
        return Segment(
            self.disk,
            self.directory,
            base_offset,
            created_ms=self.clock.now_ms(),
            roll_jitter_ms=roll_jitter_ms(self.config),
        )

    def truncate_to(self, offset: int) -> bool:
        """Remove everything from `offset` on; False: there was nothing. Raises HalfChangedError,
        ValueError below 0.

        A new generation begins: results of workers that are under way are dropped. The recovery
        point goes back, so the checkpoint has to be written next (`LogManager.truncate` does both).

        Source: Kafka UnifiedLog.truncateTo.
        """
        if offset < 0:
            raise ValueError(f"{self.name} cannot be truncated to offset {offset}")
        self.write_staged()
        if offset >= self.log_end_offset:
            # An epoch that this broker began as leader, and appended nothing in, goes.
            self.epochs.truncate_from_end(self.log_end_offset)
            return False
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        with self.place.whole_change("truncate"):
            beyond = [segment for segment in self.segments if segment.base_offset > offset]
            self._take_out_all(beyond)
            self.segments.last.truncate_to(offset, self.clock.now_ms())
            self._ended_at(offset, min(self.log_start_offset, offset))
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything, epochs and producers too, and begin again at `offset`, empty. Raises
        StorageError, HalfChangedError.

        Source: Kafka UnifiedLog.truncateFullyAndStartAt.
        """
        self.write_staged()
        with self.place.whole_change("truncate"):
            self._take_out_all(list(self.segments))
            fresh = self._begin_segment(offset)
            self.epochs.clear()
            self._ended_at(offset, offset)
        self.preallocate()
        self.disk.worker.run_later(CreateTask(fresh))

    def hold_until_saved(self, save_cut: Callable[[], None]) -> None:
        """Append nothing before `save_cut` has run once, on any thread: it has the checkpoints
        follow a truncation. An old recovery point beyond the cut would vouch for bytes that were
        never synced.
        """
        self._unsaved_cut = save_cut

    @property
    def unsaved_cut(self) -> Callable[[], None] | None:
        """Return what has the checkpoints follow the last truncation, None where they do. It raises
        StorageError.
        """
        return self._unsaved_cut

    def note_cut_saved(self, save_cut: Callable[[], None]) -> None:
        """Note that this has run."""
        if self._unsaved_cut is save_cut:
            self._unsaved_cut = None

    def _ended_at(self, offset: int, log_start_offset: int) -> None:
        """Have producers, epochs and all offsets follow a log that is from `log_start_offset` to
        `offset` now.
        """
        self._take_extent(
            clamped(
                log_start_offset=log_start_offset,
                recovery_point=self.recovery_point,
                high_watermark=self.high_watermark,
                log_end_offset=offset,
                clean_offset=self.clean_offset,
            )
        )
        self._tail.drop(offset)
        self.place.note_names_changed()
        self.place.generation += 1
        self.epochs.truncate_from_end(offset)
        self.producers.truncate_to(offset, log_start_offset)
        assert self.check_invariant()

    def remove_segments(self, segments: Sequence[Segment]) -> None:
        """Take closed segments out of service, their producer snapshots too: renamed now, removed
        after `file.delete.delay.ms`. The active one is none of them. Raises StorageError: those
        behind the one that could not be renamed are in service. Raises HalfChangedError.
        """
        assert self.active_segment not in segments, f"{self.name}: the active segment stays"
        with self.place.whole_change("remove segments of"):
            refusal = self._take_out(segments, with_snapshots=True)
        if refusal is not None:
            raise self._failed("remove segments of", refusal) from refusal

    def _take_out_all(self, segments: Sequence[Segment]) -> None:
        """Do `_take_out`. Raises OSError where a disk refused."""
        refusal = self._take_out(segments)
        if refusal is not None:
            raise refusal

    def _take_out(
        self, segments: Sequence[Segment], *, with_snapshots: bool = False
    ) -> OSError | None:
        """Take segments out of the list. They are renamed to `….deleted` now, and removed after the
        delay. Return the error of the disk where it refused one: that and those behind it stay.
        """
        paths: list[str] = []
        refusal = None
        for segment in segments:
            try:
                paths += segment_files.mark_deleted(
                    self.disk, self.directory, [segment], with_snapshots=with_snapshots
                )
            except OSError as error:
                refusal = error
                break
            self.segments.remove(segment.base_offset)
            if with_snapshots:
                self.producers.forget_snapshot(segment.base_offset)
        self.place.note_names_changed()
        segment_files.remove_later(self.disk, paths, self.config.file_delete_delay_ms)
        return refusal

    def advance_log_start(self, offset: int, high_watermark: int | None = None) -> None:
        """Have readers begin at `offset`; `retention` takes the segments below it. Do nothing where
        the log starts there or behind it already.

        Raises KafkaError(OFFSET_OUT_OF_RANGE) beyond the high watermark (None: the log's end),
        StorageError, HalfChangedError. Source: Kafka UnifiedLog.maybeIncrementLogStartOffset.
        """
        self.write_staged()
        limit = self.log_end_offset if high_watermark is None else high_watermark
        if offset > limit:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.name} is beyond its high watermark {limit}",
            )
        if offset <= self.log_start_offset:
            return
        with self.place.whole_change("move the start of"):
            self._take_extent(
                clamped(
                    log_start_offset=offset,
                    recovery_point=self.recovery_point,
                    high_watermark=self.high_watermark,
                    log_end_offset=self.log_end_offset,
                    clean_offset=self.clean_offset,
                )
            )
            self.update_high_watermark(self.high_watermark)
            self.epochs.truncate_from_start(offset)
            assert self.check_invariant()
        self.on_start_moved()

    def note_cleaned(self, offset: int) -> None:
        """Note that compaction came up to `offset`, at most the log's end: it may have been
        truncated meanwhile.
        """
        self.clean_offset = min(offset, self.log_end_offset)

    def abandon(self) -> None:
        """Read and write nothing any more. Staged batches are lost, files stay as they are.

        Waits for no worker, for the disk may hang. A file that a worker makes now is one in a
        directory that is offline; who renames the log's directory holds `names_lock`.
        """
        self._tail.drop(self.log_end_offset)
        self.place.is_deleted = True
        for segment in self.segments:
            segment.release()

    def return_to_service(self, directory: str) -> None:
        """Be in service again in `directory`, where the log was before `mark_deleted`. Raises
        HalfChangedError.
        """
        with self.place.whole_change("take back"):
            self.place.take_back(directory)
            for segment in self.segments:
                segment.return_to_service()

    def mark_deleted(self, directory: str) -> Callable[[], None]:
        """Rename the directory to `directory`; the returned task removes it, on any thread.

        Raises StorageError. The log is of no use afterwards.
        """
        self.place.rename(directory, self.abandon)
        return RemoveDirectoryTask(self.files, directory)
