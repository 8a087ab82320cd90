"""The writing half of a partition's log: append, write, roll.

Last station of a Produce request. `append` checks a batch (`validator`), asks the
producer state whether it is new, numbers it and *stages* it: no system call, the request's own
bytes are kept by reference. `write_staged`, once per socket read, hands everything staged to the
system in one call, and only then may a reader see it, and only then may the answers leave.

Invariants. `log_start_offset` ≤ `recovery_point` ≤ `log_end_offset` ≤ next offset to assign; the
last two differ by what is staged. Staged batches all belong to the active segment. A write that
fails or comes back short leaves no trace: the file is cut back, offsets and producer state return
to what is written, every staged entry is marked as lost, a later append may succeed.

In a crash everything behind `recovery_point` may be lost or torn; `recovery` restores the log from
what is there. One thread (the loop's) uses a log. Tasks run on others: those of `flush_task` change
nothing in it, the loop applies them.

Source: Kafka UnifiedLog, LocalLog; FORMAT.md.
"""

import logging
from typing import TYPE_CHECKING, Final, Literal

from minibroker.clock import Clock
from minibroker.errors import CorruptionError, HalfChangedError
from minibroker.ids import TopicPartition
from minibroker.records.batch import BatchHeader, iterate_headers
from minibroker.records.control import read_marker
from minibroker.storage.append_rules import AppendRules
from minibroker.storage.disk import Disk
from minibroker.storage.durable_log import SYNC_BYTES, DurableLog
from minibroker.storage.epochs import LeaderEpochs
from minibroker.storage.files import BUFFERS_MAX
from minibroker.storage.index_file import TAIL_ENTRIES
from minibroker.storage.producer_state import RecentBatch
from minibroker.storage.segment import Segment, roll_jitter_ms
from minibroker.storage.segments import Segments
from minibroker.storage.tasks import CreateTask
from minibroker.storage.txn_index import aborted_transaction
from minibroker.storage.validator import CheckedRecords, validate

if TYPE_CHECKING:
    from minibroker.config.topic import TopicConfig

_log = logging.getLogger(__name__)

STAGED_BYTES_MAX: Final = 1 << 20
"""More than this is written without waiting for the end of the socket read."""

_ALWAYS_ASK: Final = -2
"""`_roll_after` where the age of the segment has to be computed first."""


class AppendInfo:
    """The entry of one append, from staged to written: what Produce answers.

    Constant after construction, but for `is_lost`, which the log sets.
    """

    __slots__ = (
        "append_time_ms",
        "duplicate",
        "first_offset",
        "is_lost",
        "last_offset",
        "log_start_offset",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        append_time_ms: int,
        log_start_offset: int,
        duplicate: bool = False,
    ) -> None:
        """Offsets inclusive; `append_time_ms` -1 for CreateTime.

        `duplicate`: the batch was there already, nothing was appended, the offsets are the first
        append's, and `append_time_ms` is that one's largest timestamp (Kafka answers so).
        """
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.append_time_ms = append_time_ms
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate
        self.is_lost = False
        """The batch was staged, and the log took it back when a write failed; a later append may
        have its offsets."""


class WritableLog(DurableLog):
    """One partition's log. Made by `recovery.load_log` (also for a new, empty directory)."""

    __slots__ = (
        "_index_room",
        "_next_offset",
        "_roll_after",
        "_room",
        "_staged",
        "_staged_appends",
        "_staged_bytes",
        "_staged_entries",
        "is_preallocated",
        "rules",
    )

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        name: TopicPartition,
        directory: str,
        *,
        config: "TopicConfig",
        rules: AppendRules,
        segments: Segments,
        epochs: LeaderEpochs,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        snapshot_offset: int,
        has_new_names: bool,
    ) -> None:
        """`rules` are those of `config`; the rest is `DurableLog`'s."""
        super().__init__(
            disk,
            clock,
            name,
            directory,
            config=config,
            segments=segments,
            epochs=epochs,
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            recovery_point=recovery_point,
            snapshot_offset=snapshot_offset,
            has_new_names=has_new_names,
        )
        self.rules = rules
        """Rules that `config` sets for records; an object that does not change."""
        self._next_offset = log_end_offset
        self._staged: list[memoryview] = []
        self._staged_appends: list[tuple[int, int, int]] = []
        self._staged_bytes = 0
        self._staged_entries: list[AppendInfo] = []
        """One for each staged batch, and one for each repetition of a batch that is staged."""
        self.is_preallocated = False
        """Is the active `.log` longer than what is written to it?"""
        self._forget_room()

    def _forget_room(self) -> None:
        """Make the next append look at the active segment again."""
        self._room = self._index_room = 0
        self._roll_after = _ALWAYS_ASK

    def update_config(self, config: "TopicConfig", rules: AppendRules) -> None:
        self.config = config
        self.rules = rules
        self._forget_room()

    # --- append ---------------------------------------------------------------------------------

    def append(
        self,
        records: memoryview,
        leader_epoch: int,
        now_ms: int,
        *,
        origin: Literal["client", "coordinator"] = "client",
        is_bounded: bool = False,
        checked: CheckedRecords | None = None,
    ) -> AppendInfo:
        """Number and stage the batch in `records` (writable; valid until `write_staged`).

        Nothing is on disk and no reader sees it before `write_staged` returned. `checked`: the
        validator has seen these records. Raises KafkaError (the batch is refused, see `validator`
        and `producer_state`), StorageError; with `is_bounded`, LargeBatchError, as `validate`.
        """
        if checked is None:
            records, header = validate(
                records,
                self.rules,
                self._next_offset,
                leader_epoch,
                now_ms,
                self.name,
                origin,
                is_bounded,
            )
        else:
            records, header = checked.number(self._next_offset, leader_epoch)
            now_ms = checked.now_ms
        last_offset = header.base_offset + header.last_offset_delta
        max_timestamp = header.max_timestamp
        size = header.size_bytes
        if (
            size > self._room
            or max_timestamp > self._roll_after
            or len(self._staged_appends) >= self._index_room
            or last_offset > self._active.max_offset
        ):
            self._make_room(header.base_offset, last_offset, max_timestamp, size, now_ms)
        if header.magic < 2:
            return self._append_message_set(records, header, now_ms)
        if leader_epoch > self.epochs.latest_epoch:
            # Before producer state changes: this writes a file, which may fail.
            self.epochs.assign(leader_epoch, header.base_offset)
            self.store_epochs()
        if header.producer_id >= 0:
            if header.is_control:
                return self._append_marker(records, header)
            repeated = (self._producers or self.producer_state).append(header, origin)
            if repeated is not None:
                return self._repetition(repeated)
        append_time_ms = max_timestamp if self.rules.is_append_time else -1
        entry = AppendInfo(header.base_offset, last_offset, append_time_ms, self.log_start_offset)
        self._staged.append(records)
        self._staged_appends.append((last_offset, max_timestamp, size))
        self._staged_entries.append(entry)
        self._next_offset = last_offset + 1
        self._room -= size
        self._staged_bytes += size
        if self._staged_bytes > STAGED_BYTES_MAX:
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
        if repeated.last_offset >= self.log_end_offset:
            self._staged_entries.append(entry)
        return entry

    def _append_message_set(
        self, records: memoryview, header: BatchHeader, now_ms: int
    ) -> AppendInfo:
        """Stage messages of format 0 or 1; `header` stands for all of them.

        Accounted in two parts, so that the time index names the first message with the largest
        timestamp, not the last one of the set (Kafka: shallowOffsetOfMaxTimestamp). Leader epochs
        end here, as these formats have none: a follower would go by the high watermark.
        """
        if self.epochs.clear():
            self.store_epochs()
        last_offset = header.last_offset
        largest = header.max_timestamp
        first_part_bytes = 0
        if largest >= 0:
            for position, message in iterate_headers(records):
                if message.max_timestamp == largest:
                    first_part_bytes = position + message.size_bytes
                    if first_part_bytes < len(records):
                        appended = message.base_offset, largest, first_part_bytes
                        self._staged_appends.append(appended)
                        largest = -1
                    break
        rest_bytes = len(records) - (first_part_bytes if largest < 0 else 0)
        append_time_ms = now_ms if self.rules.is_append_time else -1
        entry = AppendInfo(header.base_offset, last_offset, append_time_ms, self.log_start_offset)
        self._staged_appends.append((last_offset, largest, rest_bytes))
        self._staged_entries.append(entry)
        self._staged.append(records)
        self._next_offset = last_offset + 1
        self._room -= len(records)
        self._staged_bytes += len(records)
        if self._staged_bytes > STAGED_BYTES_MAX:
            self.write_staged()
        return entry

    def _append_marker(self, records: memoryview, header: BatchHeader) -> AppendInfo:
        """Write the control batch that ends a transaction, and note an abort in the index."""
        self.write_staged()
        marker = read_marker(records, 0, header)
        completed = None
        if marker is not None:
            completed = self.producer_state.append_marker(header, marker, "coordinator")
        offset = header.base_offset
        self._staged.append(records)
        self._staged_appends.append((offset, header.max_timestamp, header.size_bytes))
        self._next_offset = offset + 1
        self._room -= header.size_bytes
        self._staged_bytes += header.size_bytes
        self.write_staged()
        if completed is not None and completed.is_aborted:
            self._names_changed += 1  # the index may be a new file
            try:
                self._active.txn_index.append(aborted_transaction(completed))
            except OSError as error:
                # The marker is in the log. Without the entry readers would take the transaction
                # for a committed one, so nothing is read before a start has made the index again.
                raise HalfChangedError(
                    f"cannot write the transaction index of {self.name}: {error}",
                    log_directory=self.log_directory,
                ) from error
        return AppendInfo(offset, offset, -1, self.log_start_offset)

    def write_staged(self) -> None:
        """Write everything staged in one call; from here on readers see it.

        Raises StorageError (no room, an I/O error): then none of it was appended, the file ends
        where it ended, producers may send the same batches again.
        """
        buffers = self._staged
        if not buffers:
            return
        segment = self._active
        try:
            segment.prepare_append()
            handle = self._disk.handles.get(segment.log_path, create=True)
            position = segment.size_bytes
            if len(buffers) <= BUFFERS_MAX:
                written = self._disk.files.pwritev(handle, buffers, position)
            else:
                written = 0
            if written != self._staged_bytes:
                self._disk.files.write_rest(handle, buffers, position, written)
        except (OSError, CorruptionError) as error:
            self._drop_staged()
            raise self._failed("append to", error) from error
        # The bytes are in the file: nothing below may fail.
        segment.tail_offset = self.log_end_offset
        segment.tail_position = position
        end_position = position + self._staged_bytes
        new_entry_count = 0
        for last_offset, max_timestamp, size in self._staged_appends:
            if segment.note_append(
                last_offset, max_timestamp, size, self.config.index_interval_bytes
            ):
                new_entry_count += 1
        self.log_end_offset = self._next_offset
        self._forget_staged()
        if self._producers is not None:
            self._producers.commit()
        if new_entry_count:
            # At least this is left; `_make_room` counts anew when it looks like nothing.
            self._index_room -= new_entry_count
            if segment.unwritten_entry_count >= TAIL_ENTRIES:
                self._write_indexes(segment)
        if end_position > self._sync_above:
            self._ask_for_sync(end_position)

    def _forget_staged(self) -> None:
        self._staged = []
        self._staged_appends = []
        self._staged_bytes = 0
        self._staged_entries = []

    def _drop_staged(self) -> None:
        """Return to what is written: file, offsets, producers, epochs; what was staged is lost."""
        for entry in self._staged_entries:
            entry.is_lost = True
        self._forget_staged()
        self._next_offset = self.log_end_offset
        self._forget_room()
        if self._producers is not None:
            self._producers.rollback()
        if self.epochs.truncate_from_end(self.log_end_offset):
            self.store_epochs()
        segment = self._active
        try:
            segment.cut(segment.size_bytes)
        except OSError as error:
            # The next append writes over the same place, and recovery cuts what it finds there.
            _log.warning("cannot cut %s after a failed append: %s", segment.log_path, error)

    def _write_indexes(self, segment: Segment) -> None:
        try:
            segment.write_indexes()
        except OSError as error:
            # The records are written; entries stay in memory and are tried again.
            _log.warning("cannot write the index of %s: %s", segment.log_path, error)

    # --- roll -----------------------------------------------------------------------------------

    def _make_room(
        self, base_offset: int, last_offset: int, max_timestamp: int, size: int, now_ms: int
    ) -> None:
        """Roll if the next append does not belong into the active segment; count its room anew."""
        self.write_staged()
        segment = self._active
        if self.is_empty:
            self._disk.run_later(CreateTask(segment))
            if self.epochs.latest_epoch >= 0:
                self.store_epochs()
        config = self.config
        try:
            used = segment.size_bytes
            room = self.rules.segment_bytes - used
            index_room = segment.index_room(config.segment_index_bytes)
            age_ms_max = config.segment_age_ms_max - segment.roll_jitter_ms
            is_old = used > 0 and segment.age_ms(now_ms, max_timestamp) > age_ms_max
            if size > room or is_old or index_room <= 0 or last_offset > segment.max_offset:
                segment = self.roll(base_offset)
                used, room = 0, self.rules.segment_bytes
                index_room = segment.index_room(config.segment_index_bytes)
                age_ms_max = config.segment_age_ms_max - segment.roll_jitter_ms
            if used == 0:
                self._names_changed += 1  # whatever was synced before, the file had no name then
            first = segment.first_timestamp if used else max_timestamp
        except (OSError, CorruptionError) as error:
            raise self._failed("append to", error) from error
        self._room = room
        self._index_room = index_room
        self._roll_after = first + age_ms_max if first >= 0 else _ALWAYS_ASK

    def roll(self, base_offset: int | None = None) -> Segment:
        """Begin a new segment at `base_offset` (the log's end if not given); it is returned.

        The old one's files get their final form, a producer snapshot is written, and the worker
        syncs both and moves the recovery point. An empty active segment that starts there stays.
        Raises StorageError.
        """
        self.write_staged()
        old = self._active
        start = max(base_offset or 0, self.log_end_offset)
        if old.base_offset == start:
            return old
        new = self._new_segment(start)
        try:
            old.become_inactive()
            self.trim()
            self._write_snapshot(start)
        except OSError as error:
            raise self._failed("begin a segment of", error) from error
        self.segments.add(new)
        self._active = new
        self.preallocate()
        self._names_changed += 1
        self._sync_above = min(self._sync_above, SYNC_BYTES)
        self._forget_room()
        new.begin_empty()
        self._disk.run_later(CreateTask(new))
        self.flush_later(start, old)
        return new

    def preallocate(self) -> None:
        """Give a new active `.log` a full segment's length where so configured. Raises
        StorageError.
        """
        if not self.config.preallocate:
            return
        try:
            handle = self._disk.handles.get(self._active.log_path, create=True)
            self._disk.files.truncate(handle, self.rules.segment_bytes)
        except OSError as error:
            raise self._failed("preallocate a segment of", error) from error
        self.is_preallocated = True

    def trim(self) -> None:
        """Cut the active `.log` to what is written, before it is closed. Raises OSError."""
        if self.is_preallocated:
            self._active.cut(self._active.size_bytes)
            self.is_preallocated = False

    def _new_segment(self, base_offset: int) -> Segment:
        return Segment(
            self._disk,
            self.directory,
            base_offset,
            created_ms=self._clock.now_ms(),
            roll_jitter_ms=roll_jitter_ms(self.config),
        )
