"""From a directory to a consistent log.

After a clean stop nothing is read but names: the recovery point of the checkpoint is the log's end.
After anything else the segments from the recovery point on are walked batch by batch: lengths,
CRCs, ascending offsets (`recovery_walk`). What does not hold is a torn tail: the file is cut there
and later segments go. On the way the indexes, leader epochs, producers and transaction indexes are
filled again. Everything below the recovery point is trusted, for it was synced; an index that is
missing or cannot be right is made again when it is first used (`segment`).

Leftovers of interrupted work: `.deleted` files go; `.cleaned` files go, and the `.swap` files that
belong to them; other `.swap` files replace the segments they cover (the cleaner had finished them);
an index without its `.log` goes.

Source: Kafka LogLoader, LogSegment.recover; FORMAT.md section 8.
"""

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.storage import names, producer_files
from minibroker.broker.storage.append_rules import AppendRules
from minibroker.broker.storage.checked_batches import checked_batches
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.epochs import LeaderEpochs
from minibroker.broker.storage.epochs_rebuild import with_earlier_epochs
from minibroker.broker.storage.extent import clamped
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.broker.storage.partition_log import PartitionLog
from minibroker.broker.storage.recovery_walk import RecoveryWalk, WalkStart
from minibroker.broker.storage.segment import Segment, roll_jitter_ms
from minibroker.broker.storage.segment_files import finish_interrupted_work
from minibroker.broker.storage.segments import Segments
from minibroker.broker.storage.tasks import CreateTask
from minibroker.clock import Clock
from minibroker.kafka.errors import CorruptionError, StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicPartition
from minibroker.kafka.records.batch import LENGTH_FIELD_END

if TYPE_CHECKING:
    from minibroker.broker.config.topic import TopicConfig

logger = logging.getLogger(__name__)


class Checkpointed(NamedTuple):
    """The log directory's checkpoints of one partition; -1 for none."""

    recovery_point: int = -1
    log_start_offset: int = -1
    is_clean: bool = False
    """All that is in the files is whole, and the log ends at the recovery point."""
    high_watermark: int = -1
    clean_offset: int | None = None
    """End of compaction, None: it never ran."""
    synced_to: int | None = None
    """Offset below which a log that is clean is durable, None: all of it is."""


def load_log(
    disk: Disk,
    clock: Clock,
    name: TopicPartition,
    directory: str,
    *,
    config: "TopicConfig",
    rules: AppendRules,
    checkpointed: Checkpointed,
    is_new: bool = False,
) -> PartitionLog:
    """Open the log in `directory`, which exists; recover it if it was not closed cleanly.

    `is_new`: the directory was made just now and is empty; then nothing is looked for.

    Raises StorageError where files cannot be read or changed.
    """
    try:
        loader = _Loader(
            disk, clock, name, directory, config=config, checkpointed=checkpointed, is_new=is_new
        )
        return loader.load(rules)
    except (OSError, CorruptionError) as error:
        raise StorageError(
            f"cannot load {name} from {directory}: {error}",
            log_directory=directory.rpartition("/")[0] or "/",
        ) from error


class _Loader:
    """One load. Lives as long as `load_log` runs."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        name: TopicPartition,
        directory: str,
        *,
        config: "TopicConfig",
        checkpointed: Checkpointed,
        is_new: bool,
    ) -> None:
        self.is_new = is_new
        self.disk = disk
        self.files = disk.files
        self.now_ms = clock.now_ms()
        self.clock = clock
        self.name = name
        self.directory = directory
        self.config = config
        self.checkpointed = checkpointed
        self.segments = Segments()
        self.epochs = LeaderEpochs()
        self.has_new_names = not checkpointed.is_clean
        self.has_new_epochs = False
        self.walk: RecoveryWalk | None = None

    def load(self, rules: AppendRules) -> PartitionLog:
        found = [] if self.is_new else self.files.list_files(self.directory)
        if any(name.endswith((names.DELETED, names.CLEANED, names.SWAP)) for name in found):
            finish_interrupted_work(self.disk, self.directory)
            found = self.files.list_files(self.directory)
        self._find_segments(found)
        if names.LEADER_EPOCHS in found:
            self._read_epochs()
        log_start = max(self.checkpointed.log_start_offset, 0)
        log_end = self._recover()
        begins_empty = len(self.segments) == 0 or log_end < log_start
        if begins_empty:
            log_end = self._start_empty(log_start, log_end)
        log_start = max(log_start, self.segments.first.base_offset)
        if self.epochs.truncate_from_end(log_end) | self.epochs.truncate_from_start(log_start):
            self.has_new_epochs = True
        if not self._is_clean:
            self._add_earlier_epochs(log_start, log_end)
        snapshots = self._clean_snapshots(found, log_end)
        place = PartitionDirectory(
            self.disk,
            self.name,
            self.directory,
            ZERO_TOPIC_ID if self.is_new else None,
            # A clean stop syncs nothing of a log that never had a record.
            has_new_names=(
                self.has_new_names or log_end == 0 or self.checkpointed.synced_to is not None
            ),
        )
        log = PartitionLog(
            self.disk,
            self.clock,
            place,
            config=self.config,
            rules=rules,
            segments=self.segments,
            epochs=self.epochs,
            extent=clamped(
                log_start_offset=log_start,
                recovery_point=self._recovery_point(log_end),
                high_watermark=self.checkpointed.high_watermark,
                log_end_offset=log_end,
                clean_offset=self.checkpointed.clean_offset,
            ),
            snapshot_offset=snapshots,
        )
        if self.has_new_epochs:
            log.epochs.store()
        if begins_empty:
            log.preallocate()
        if self.walk is not None and log_end > log_start:
            log.producers.adopt(self.walk.producers_at(log_end))
        return log

    @property
    def _is_clean(self) -> bool:
        return self.checkpointed.is_clean

    def _recovery_point(self, log_end: int) -> int:
        """Return the offset below which the log is durable, as far as it reaches."""
        if self._is_clean:
            synced_to = self.checkpointed.synced_to
            return log_end if synced_to is None else synced_to
        known = self.checkpointed.recovery_point
        if known > log_end:  # of a log that was truncated since: says nothing of what is there now
            return self.segments.last.base_offset
        return known

    def _new_segment(self, base_offset: int) -> Segment:
        return Segment(
            self.disk,
            self.directory,
            base_offset,
            created_ms=self.now_ms,
            roll_jitter_ms=roll_jitter_ms(self.config),
        )

    def _find_segments(self, found: list[str]) -> None:
        bases = set()
        for name in found:
            base_offset = names.base_offset_of(name)
            if base_offset is not None and name.endswith(names.LOG):
                self.segments.add(self._new_segment(base_offset))
                bases.add(base_offset)
        for name in found:
            base_offset = names.base_offset_of(name)
            is_index = name.endswith(names.SEGMENT_SUFFIXES[1:])
            if is_index and base_offset is not None and base_offset not in bases:
                logger.warning("%s/%s has no .log beside it and is removed", self.directory, name)
                self.disk.remove(f"{self.directory}/{name}")

    def _start_empty(self, log_start: int, log_end: int) -> int:
        """Begin a log without segments, or one that ends before it starts, at its start offset.

        A directory without a segment is a log at offset 0, for Kafka too: its files are made with
        the first record. A file is some 0.1 ms of the kernel's time, and most of what a new
        partition would cost.
        """
        if len(self.segments):
            logger.warning(
                "%s ends at offset %d, before its start at %d: its segments are removed",
                self.name,
                log_end,
                log_start,
            )
            for segment in list(self.segments):
                self._remove(segment)
            self.epochs.clear()
        fresh = self._new_segment(log_start)
        fresh.begin_empty()
        if log_start:
            self.disk.run_later(CreateTask(fresh))
        self.segments.add(fresh)
        self.has_new_names = True
        return log_start

    def _remove(self, segment: Segment) -> None:
        for path in segment.mark_deleted():
            self.files.remove(path)
        self.segments.remove(segment.base_offset)

    # --- recovery -------------------------------------------------------------------------------

    def _recover(self) -> int:
        """Return the log's end offset; 0 where there is no segment. Raises OSError,
        CorruptionError.
        """
        if len(self.segments) == 0:
            return 0
        recovery_point = self.checkpointed.recovery_point
        if self._is_clean:
            if recovery_point >= self.segments.last.base_offset:
                return recovery_point
            return self.segments.last.read_next_offset()
        unsynced = self.segments.since(max(recovery_point, 0))
        if self.config.preallocate:
            self._trim_before(unsynced[0], recovery_point)
        self._finish_before(unsynced[0], recovery_point)
        walk = self.walk = RecoveryWalk(self.disk, self.name, self.segments, self.epochs)
        start = self._walk_start(unsynced[0], recovery_point)
        walk.begin(
            unsynced[0],
            start,
            log_start_offset=max(self.checkpointed.log_start_offset, 0),
            index_interval_bytes=self.config.index_interval_bytes,
            now_ms=self.now_ms,
        )
        for index, segment in enumerate(unsynced):
            if index:
                start = WalkStart(0, segment.base_offset)
            cut_bytes = walk.recover(segment, start)
            if cut_bytes:
                logger.warning(
                    "%s: %d bytes behind offset %d were torn and are cut off",
                    segment.log_path,
                    cut_bytes,
                    walk.next_offset,
                )
                for later in unsynced[index + 1 :]:
                    self._remove(later)
                break
            if segment is not unsynced[-1]:
                segment.become_inactive()
        self.has_new_epochs |= walk.has_new_epochs
        return walk.next_offset

    def _trim_before(self, first: Segment, recovery_point: int) -> None:
        """Trim the segment before `first`, which may have its preallocated length again: its
        records were synced, the trimming was not.
        """
        for segment in self.segments:
            if self.segments.higher(segment.base_offset) is first:
                start = self._walk_start(segment, recovery_point)
                end = start.position
                for position, fields in checked_batches(
                    self.disk,
                    segment.log_path,
                    start.position,
                    segment.size_bytes,
                    expected_offset=start.offset,
                    max_offset=segment.max_offset,
                ):
                    end = position + fields[1] + LENGTH_FIELD_END
                if end < segment.size_bytes:
                    segment.cut(end)

    def _finish_before(self, first: Segment, recovery_point: int) -> None:
        """Give the segment before `first` the last entry of its time index, if it has none.

        A roll adds it and syncs it later. The records may have been synced before: then the
        recovery point is behind them, and the walk does not come here.
        """
        before = self.segments.floor(first.base_offset - 1)
        if before is None or first.base_offset != recovery_point:
            return
        with suppress(CorruptionError):  # who reads the damaged batch is told of it
            before.read_max_timestamp()
            before.become_inactive()
            self.files.sync_path(before.path(names.TIME_INDEX))

    def _walk_start(self, segment: Segment, recovery_point: int) -> WalkStart:
        """Return where checking begins.

        That is the newest index entry below the recovery point: bytes and entries there were
        synced. Where an index is unsound or points elsewhere it is the file's start, and everything
        is checked.
        """
        nothing = WalkStart(0, segment.base_offset)
        if recovery_point <= segment.base_offset:
            return nothing
        try:
            if not segment.open_sound_indexes():
                return nothing
            _ = segment.txn_index.read()
            offset, position = segment.offset_index.lookup(recovery_point - 1)
            if position == 0:
                return WalkStart(0, segment.base_offset, recovery_point)
            batches = checked_batches(
                self.disk,
                segment.log_path,
                position,
                segment.size_bytes,
                expected_offset=segment.base_offset,
                max_offset=segment.max_offset,
                trusted_below=recovery_point,
            )
            first = next(batches, None)
        except CorruptionError:
            return nothing
        if first is None:
            return nothing
        base_offset, last_delta = first[1][0], first[1][6]
        if not base_offset <= offset <= base_offset + last_delta:
            return nothing
        return WalkStart(position, base_offset, recovery_point)

    # --- the files beside the segments ----------------------------------------------------------

    def _read_epochs(self) -> None:
        """Read the checkpoint of leader epochs; where it is damaged, the batches have them.

        Kafka makes an empty file for a partition without records. Beside records an empty one has
        lost its content: a power cut kept its name only.
        """
        path = f"{self.directory}/{names.LEADER_EPOCHS}"
        text = self.files.read_all(path).decode("ascii", "replace")
        if not text and not any(segment.size_bytes for segment in self.segments):
            return
        try:
            self.epochs = LeaderEpochs.from_text(text)
        except CorruptionError as error:
            logger.warning("%s is ignored, all batches are looked at: %s", path, error)
            self.has_new_epochs = True
            self.checkpointed = self.checkpointed._replace(recovery_point=0, is_clean=False)

    def _add_earlier_epochs(self, log_start: int, log_end: int) -> None:
        """Add epochs of records that a power cut brought back. Raises OSError."""
        epochs = with_earlier_epochs(
            self.disk, self.segments, self.epochs, start_offset=log_start, end_offset=log_end
        )
        if epochs is not self.epochs:
            logger.warning(
                "%s: leader epochs from offset %d on are read again from the batches",
                self.name,
                epochs.entries[0][1],
            )
            self.epochs, self.has_new_epochs = epochs, True

    def _clean_snapshots(self, found: list[str], log_end: int) -> int:
        """Remove snapshots that nothing needs, and after a crash those that were torn. Return the
        newest one's offset, 0: there is none.
        """
        offsets = producer_files.offsets_in(found)
        if not self._is_clean:
            offsets = producer_files.remove_damaged(
                self.files, self.directory, offsets, max(self.checkpointed.recovery_point, 0)
            )
        kept = producer_files.remove_strays(
            self.files,
            self.directory,
            offsets,
            base_offsets=self.segments.base_offsets,
            recovery_point=max(self.checkpointed.recovery_point, 0),
            end_offset=log_end,
        )
        return kept[-1] if kept else 0
