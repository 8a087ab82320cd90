"""From a directory to a consistent log.

After a clean stop nothing is read but names: the recovery point of the checkpoint is the log's end.
A file may have been changed since (an editor, a backup, a repaired file system). The times of the
directory and of the last segment tell that, and then the end of that segment is looked at. Where
the log does not end there, it is recovered as after a kill.

After anything else the segments from the recovery point on are walked batch by batch, one look at
each: lengths, CRCs, ascending offsets (`RecoveryWalk`). Bytes that do not pass are a torn tail: the
file is cut there and later segments go. Everything below the recovery point is trusted, for it was
synced; an index that is missing or cannot be right is made again when it is first used (`segment`).

On the way the indexes, leader epochs, producers and transaction indexes become what the batches
say. All of them are right up to where the walk begins: index entries and transaction indexes were
synced with the records, the producers come from the newest snapshot (a sync writes one for the
recovery point) and the headers behind it.

An abort marker is in the log before its entry is in the transaction index, and a crash may come
between. Without its entry an aborted transaction would be read as if it were committed. So entries
from where the walk begins are made again from the markers.

A truncated batch may be back, too, while the epoch of what took its place is durable in the
checkpoint. The batch is right then: a follower asks its leader by it, and truncates once more.
Kafka believes the checkpoint.

A segment without aborted transactions has no transaction index, so one that was removed is not
noticed by its absence. Where a producer of the log had a transaction, the markers of the segment
are read again.

Leftovers of interrupted work: `.deleted` files go; `.cleaned` files go, and the `.swap` files that
belong to them; other `.swap` files replace the segments they cover (the cleaner had finished them);
an index without its `.log` goes.

Source: Kafka LogLoader, LogSegment.recover, UnifiedLog.rebuildProducerState; FORMAT.md section 8.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.storage import names, producer_files
from minibroker.broker.storage.batch_walks import Fields, checked_batches, header_of
from minibroker.broker.storage.checkpoints import Checkpointed
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.epochs import LeaderEpochs, with_earlier_epochs
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.broker.storage.partition_log import LogExtent, PartitionLog, clamped
from minibroker.broker.storage.producer_state import BATCHES_KEPT, ProducerState
from minibroker.broker.storage.record_checks import AppendRules
from minibroker.broker.storage.segment import Segment, Segments, roll_jitter_ms
from minibroker.broker.storage.segment_files import finish_interrupted_work
from minibroker.broker.storage.tasks import CreateTask
from minibroker.broker.storage.txn_index import AbortedTransaction, aborted_transaction
from minibroker.clock import Clock
from minibroker.kafka.errors import CorruptionError, StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from minibroker.kafka.records.batch import CONTROL_FLAG, LENGTH_FIELD_END, TRANSACTIONAL_FLAG

if TYPE_CHECKING:
    from minibroker.broker.config.topic import TopicConfig

logger = logging.getLogger(__name__)


_TRANSACTION_FLAGS: Final = TRANSACTIONAL_FLAG | CONTROL_FLAG
_EPOCH_FIELD: Final = 10
"""Place of the producer's epoch in `Fields`."""


class WalkStart(NamedTuple):
    """Start of the walk over a segment: a position in `.log`, and the offset of the batch there.

    Of batches that end below `trusted_below` headers are enough.
    """

    position: int
    offset: int
    trusted_below: int = 0


class RecoveryWalk:
    """One log's. Lives as long as a load runs. Methods raise CorruptionError, OSError."""

    __slots__ = (
        "_aborted",
        "_disk",
        "_epochs",
        "_index_interval_bytes",
        "_producers",
        "_producers_from",
        "_recent",
        "_segments",
        "has_new_epochs",
        "next_offset",
    )

    def __init__(
        self, disk: Disk, name: TopicPartition, segments: Segments, epochs: LeaderEpochs
    ) -> None:
        """`segments` and `epochs` as the files have them; epochs of batches are added."""
        self._disk = disk
        self._segments = segments
        self._epochs = epochs
        self._index_interval_bytes = 0
        self._producers = ProducerState(name)
        self._producers_from = 0
        self._recent: dict[int, deque[Fields]] = {}
        """Producer id → its last batches, of one epoch, that `_producers` does not know yet."""
        self._aborted: list[AbortedTransaction] = []
        self.has_new_epochs = False
        self.next_offset = -1
        """The offset behind the last batch."""

    def begin(
        self,
        first: Segment,
        start: WalkStart,
        *,
        log_start_offset: int,
        index_interval_bytes: int,
        now_ms: int,
    ) -> None:
        """Load the producers as they were where the walk begins: at `start` in segment `first`."""
        self._index_interval_bytes = index_interval_bytes
        known_to = max(start.trusted_below, first.base_offset, log_start_offset)
        self._producers_from = known_to
        producer_files.load_state(
            self._disk.files,
            first.directory,
            self._segments,
            state=self._producers,
            log_start_offset=log_start_offset,
            end_offset=known_to,
            now_ms=now_ms,
            expiration_ms=self._disk.producer_expiration_ms,
        )

    @property
    def has_transactions(self) -> bool:
        """Return whether a producer has ended a transaction before the walk begins."""
        return self._producers.has_transactions

    def recover(self, segment: Segment, start: WalkStart) -> int:
        """Check batches, fill the indexes, cut the file behind the last sound batch. Return how
        many bytes were cut.
        """
        file_size = segment.size_bytes
        segment.reset_indexes(start.offset if start.position else segment.base_offset)
        segment.assume_size(start.position)
        if start.position:
            segment.index_rule.bytes_since_entry = self._index_interval_bytes + 1
        self._aborted = []
        self.next_offset = start.offset
        self._walk(segment, start, file_size)
        end = segment.size_bytes
        if end < file_size:
            segment.cut(end)
        segment.create_indexes()
        self._write_aborted(segment)
        return file_size - end

    def _walk(self, segment: Segment, start: WalkStart, file_size: int) -> None:
        batches = checked_batches(
            self._disk,
            segment.log_path,
            start.position,
            file_size,
            expected_offset=start.offset,
            max_offset=segment.max_offset,
            trusted_below=start.trusted_below,
        )
        note_append, interval = segment.note_append, self._index_interval_bytes
        producers_from, latest_epoch = self._producers_from, self._epochs.latest_epoch
        for position, fields in batches:
            base_offset, length, epoch, magic, _, flags, delta, _, timestamp, producer = fields[:10]
            last_offset = base_offset + delta
            if magic == 2:
                if epoch > latest_epoch:
                    self._epochs.assign(epoch, base_offset)
                    self.has_new_epochs, latest_epoch = True, epoch
                elif 0 <= epoch < latest_epoch and self._epochs.correct(epoch, base_offset):
                    self.has_new_epochs, latest_epoch = True, self._epochs.latest_epoch
                if producer >= 0 and last_offset >= producers_from:
                    if flags & _TRANSACTION_FLAGS:
                        self._note_transaction(segment, position, fields)
                    else:
                        self._note_sequence(producer, fields)
            note_append(last_offset, timestamp, length + LENGTH_FIELD_END, interval)
            self.next_offset = last_offset + 1

    def _note_sequence(self, producer_id: int, fields: Fields) -> None:
        """Note a batch outside transactions: the last few of an epoch are all that counts."""
        recent = self._recent.get(producer_id)
        if recent is None or recent[-1][_EPOCH_FIELD] != fields[_EPOCH_FIELD]:
            recent = self._recent[producer_id] = deque(maxlen=BATCHES_KEPT)
        recent.append(fields)

    def _note_transaction(self, segment: Segment, position: int, fields: Fields) -> None:
        """Note a batch of a transaction, or its marker."""
        header, producers = header_of(fields), self._producers
        self._apply_recent(header.producer_id)
        completed = producer_files.note_batch(producers, segment, position, header)
        if completed is not None and completed.is_aborted:
            self._aborted.append(aborted_transaction(completed))

    def _apply_recent(self, producer_id: int) -> None:
        for fields in self._recent.pop(producer_id, ()):
            self._producers.append(header_of(fields), "replication")

    def _write_aborted(self, segment: Segment) -> None:
        """Make the transaction index say what the markers say."""
        limit = min(self._producers_from, self.next_offset)
        synced = segment.txn_index.read() if limit > segment.base_offset else []
        synced_entries = [entry for entry in synced if entry.last_offset < limit]
        segment.replace_aborted([*synced_entries, *self._aborted])

    def producers_at(self, end_offset: int) -> ProducerState | None:
        """Return the producers as they are at the log's end; None where the log ends before the
        offset that they are known for.
        """
        if end_offset != self.next_offset or end_offset < self._producers_from:
            return None
        for producer_id in list(self._recent):
            self._apply_recent(producer_id)
        self._producers.commit()
        return self._producers


_FILES_WITHOUT_RECORDS: Final = [names.PARTITION_METADATA]
"""The files of a partition that never had a record."""


def load_log(
    disk: Disk,
    clock: Clock,
    name: TopicPartition,
    directory: str,
    *,
    config: TopicConfig,
    rules: AppendRules,
    checkpointed: Checkpointed,
    is_new: bool = False,
    topic_id: TopicId | None = None,
) -> PartitionLog:
    """Open the log in `directory`, which exists; recover it if it was not closed cleanly.

    `is_new`: the directory was made just now and is empty; then nothing is looked for. `topic_id`:
    the id in its `partition.metadata`, None where it is read when somebody asks for it.

    Raises StorageError where files cannot be read or changed.
    """
    try:
        if is_new:
            file_names, topic_id = [], ZERO_TOPIC_ID
        else:
            file_names = disk.files.list_files(directory)
        if not file_names or file_names == _FILES_WITHOUT_RECORDS:
            place = PartitionDirectory(disk, name, directory, topic_id, has_new_names=True)
            return _empty_log(
                disk, clock, place, config=config, rules=rules, checkpointed=checkpointed
            )
        loader = _Loader(
            disk,
            clock,
            name,
            directory,
            config=config,
            checkpointed=checkpointed,
            topic_id=topic_id,
        )
        return loader.load(rules, file_names)
    except (OSError, CorruptionError) as error:
        raise StorageError(
            f"cannot load {name} from {directory}: {error}",
            log_directory=directory.rpartition("/")[0] or "/",
        ) from error


def _empty_log(
    disk: Disk,
    clock: Clock,
    place: PartitionDirectory,
    *,
    config: TopicConfig,
    rules: AppendRules,
    checkpointed: Checkpointed,
) -> PartitionLog:
    """Return a log that has no files, at its checkpointed start. Raises StorageError.

    Most logs of a broker with thousands have none, and nothing about them has to be recovered.
    """
    start, clean = max(checkpointed.log_start_offset, 0), checkpointed.clean_offset
    segments = Segments()
    segments.add(_begun_segment(disk, clock, place.path, start, config))
    log = PartitionLog(
        disk,
        clock,
        place,
        config=config,
        rules=rules,
        segments=segments,
        epochs=LeaderEpochs(),
        extent=LogExtent(start, start, start, start, None if clean is None else min(clean, start)),
        snapshot_offset=0,
    )
    log.preallocate()
    return log


def _begun_segment(
    disk: Disk, clock: Clock, directory: str, base_offset: int, config: TopicConfig
) -> Segment:
    """Return an empty segment.

    A directory without a segment is a log at offset 0, for Kafka too: its files are made with the
    first record. A file is some 0.1 ms of the kernel's time, and most of what a new partition would
    cost.
    """
    segment = Segment(
        disk,
        directory,
        base_offset,
        created_ms=clock.now_ms(),
        roll_jitter_ms=roll_jitter_ms(config),
    )
    segment.begin_empty()
    if base_offset:
        disk.worker.run_later(CreateTask(segment))
    return segment


class _Loader:
    """One load. Lives as long as `load_log` runs."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        name: TopicPartition,
        directory: str,
        *,
        config: TopicConfig,
        checkpointed: Checkpointed,
        topic_id: TopicId | None,
    ) -> None:
        self.topic_id = topic_id
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

    def load(self, rules: AppendRules, file_names: list[str]) -> PartitionLog:
        if any(name.endswith((names.DELETED, names.CLEANED, names.SWAP)) for name in file_names):
            finish_interrupted_work(self.disk, self.directory)
            file_names = self.files.list_files(self.directory)
        self._find_segments(file_names)
        if names.LEADER_EPOCHS in file_names:
            self._read_epochs()
        log_start = max(self.checkpointed.log_start_offset, 0)
        log_end = self._recover()
        begins_empty = len(self.segments) == 0 or log_end < log_start
        if begins_empty:
            log_end = self._start_empty(log_start, log_end)
        log_start = max(log_start, self.segments.first.base_offset)
        if self.epochs.truncate_from_end(log_end) | self.epochs.truncate_from_start(log_start):
            self.has_new_epochs = True
        if not self._is_clean and log_end > log_start:
            self._add_earlier_epochs(log_start, log_end)
        snapshots = self._clean_snapshots(file_names, log_end) if file_names else 0
        place = PartitionDirectory(
            self.disk,
            self.name,
            self.directory,
            self.topic_id,
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
        recovery_point = self.checkpointed.recovery_point
        if (
            recovery_point > log_end
        ):  # of a log that was truncated since: says nothing of what is there now
            return self.segments.last.base_offset
        return recovery_point

    def _new_segment(self, base_offset: int) -> Segment:
        return Segment(
            self.disk,
            self.directory,
            base_offset,
            created_ms=self.now_ms,
            roll_jitter_ms=roll_jitter_ms(self.config),
        )

    def _find_segments(self, file_names: list[str]) -> None:
        bases = set()
        for name in file_names:
            base_offset = names.base_offset_of(name)
            if base_offset is not None and name.endswith(names.LOG):
                self.segments.add(self._new_segment(base_offset))
                bases.add(base_offset)
        for name in file_names:
            base_offset = names.base_offset_of(name)
            is_index = name.endswith(names.SEGMENT_SUFFIXES[1:])
            if is_index and base_offset is not None and base_offset not in bases:
                logger.warning("%s/%s has no .log beside it and is removed", self.directory, name)
                self.disk.remove(f"{self.directory}/{name}")

    def _start_empty(self, log_start: int, log_end: int) -> int:
        """Begin a log without segments, or one that ends before it starts, at its start offset."""
        if len(self.segments):
            logger.warning(
                "%s ends at offset %d, before its start at %d: its segments are removed",
                self.name,
                log_end,
                log_start,
            )
            for segment in list(self.segments):
                self._remove(segment)
            self.has_new_epochs |= self.epochs.clear()
        self.segments.add(
            _begun_segment(self.disk, self.clock, self.directory, log_start, self.config)
        )
        self.has_new_names = True
        return log_start

    def _remove(self, segment: Segment) -> None:
        for path in segment.mark_deleted():
            self.files.remove(path)
        self.segments.remove(segment.base_offset)

    def _recover(self) -> int:
        """Return the log's end offset; 0 where there is no segment. Raises OSError,
        CorruptionError.
        """
        if len(self.segments) == 0:
            return 0
        recovery_point = self.checkpointed.recovery_point
        if self._is_clean:
            self._note_changes()
        if self._is_clean:
            if recovery_point >= self.segments.last.base_offset:
                return recovery_point
            return self.segments.last.read_next_offset()
        recovery_point = self.checkpointed.recovery_point
        unsynced = self.segments.since(max(recovery_point, 0))
        if self.config.preallocate:
            self._trim_before(unsynced[0], recovery_point)
        self._finish_before(unsynced[0], recovery_point)
        start = self._walk_start(unsynced[0], recovery_point)
        walk = self._begin_walk(unsynced[0], start)
        if start.trusted_below and walk.has_transactions and self._lacks_aborts(unsynced[0]):
            start = WalkStart(0, unsynced[0].base_offset)
            walk = self._begin_walk(unsynced[0], start)
        self.walk = walk
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

    def _begin_walk(self, first: Segment, start: WalkStart) -> RecoveryWalk:
        walk = RecoveryWalk(self.disk, self.name, self.segments, self.epochs)
        walk.begin(
            first,
            start,
            log_start_offset=max(self.checkpointed.log_start_offset, 0),
            index_interval_bytes=self.config.index_interval_bytes,
            now_ms=self.now_ms,
        )
        return walk

    def _note_changes(self) -> None:
        """Have the log recovered where its files are not as the clean stop left them."""
        changed_from = self._changed_from()
        if changed_from is not None:
            logger.warning(
                "%s is recovered from offset %d on: files of it changed after the clean stop",
                *(self.name, changed_from),
            )
            self._recover_from(changed_from)
            self.has_new_names = True

    def _recover_from(self, offset: int) -> None:
        """Trust no file behind this offset, whatever the checkpoints say."""
        self.checkpointed.recovery_point = offset
        self.checkpointed.is_clean = False

    def _changed_from(self) -> int | None:
        """Return the base offset of the first segment that is not as the clean stop left it, None
        where nothing tells of a change. Raises OSError, CorruptionError.
        """
        last, end_offset = self.segments.last, self.checkpointed.recovery_point
        stopped_ns = self.checkpointed.stopped_ns
        if stopped_ns is None or end_offset < last.base_offset:
            return None
        size, log_changed_ns = self.files.last_change(last.log_path)
        _, names_changed_ns = self.files.last_change(self.directory)
        is_emptied = size == 0 and end_offset > last.base_offset
        if max(log_changed_ns, names_changed_ns) <= stopped_ns and not is_emptied:
            return None
        if not self._ends_at(last, end_offset):
            return last.base_offset
        # In a copy of the directory each file is new. In its place one was removed or added.
        return self._aborts_lost_from(end_offset) if log_changed_ns <= stopped_ns else None

    def _ends_at(self, last: Segment, end_offset: int) -> bool:
        """Return whether the sound batches of the last segment end with its file and before
        `end_offset`. Those behind the last entry of its index are checked.
        """
        size, next_offset = last.size_bytes, last.base_offset
        position = last.peek_position(last.max_offset)
        batches = checked_batches(
            self.disk,
            last.log_path,
            position,
            size,
            expected_offset=next_offset,
            max_offset=last.max_offset,
        )
        for batch_position, fields in batches:
            position = batch_position + fields[1] + LENGTH_FIELD_END
            next_offset = fields[0] + fields[6] + 1
        return (position, next_offset) == (size, end_offset)

    def _aborts_lost_from(self, end_offset: int) -> int | None:
        """Return the base offset of the first segment that may have lost its transaction index,
        None where each has one, or no producer had a transaction.
        """
        lacking = [segment.base_offset for segment in self.segments if self._lacks_aborts(segment)]
        if not lacking:
            return None
        producers = ProducerState(self.name)
        producer_files.load_state(
            self.files,
            self.directory,
            self.segments,
            state=producers,
            log_start_offset=max(self.checkpointed.log_start_offset, 0),
            end_offset=end_offset,
            now_ms=self.now_ms,
            expiration_ms=self.disk.producer_expiration_ms,
        )
        return lacking[0] if producers.has_transactions else None

    def _lacks_aborts(self, segment: Segment) -> bool:
        """Return whether a segment with records has no transaction index."""
        return segment.size_bytes > 0 and not self.files.exists(segment.path(names.TXN_INDEX))

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
        previous = self.segments.floor(first.base_offset - 1)
        if previous is None or first.base_offset != recovery_point:
            return
        with suppress(CorruptionError):  # who reads the damaged batch is told of it
            previous.read_max_timestamp()
            previous.become_inactive()
            self.files.sync_path(previous.path(names.TIME_INDEX))

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
            self._recover_from(0)

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

    def _clean_snapshots(self, file_names: list[str], log_end: int) -> int:
        """Remove snapshots that nothing needs, and after a crash those that were torn. Return the
        newest one's offset, 0: there is none.
        """
        offsets = producer_files.offsets_in(file_names)
        if not self._is_clean:
            offsets = producer_files.remove_damaged(
                self.files, self.directory, offsets, max(self.checkpointed.recovery_point, 0)
            )
        kept_count = producer_files.remove_strays(
            self.files,
            self.directory,
            offsets,
            base_offsets=self.segments.base_offsets,
            recovery_point=max(self.checkpointed.recovery_point, 0),
            end_offset=log_end,
        )
        return kept_count[-1] if kept_count else 0
