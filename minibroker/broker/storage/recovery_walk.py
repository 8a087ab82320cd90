"""The walk of recovery over a log's batches from its recovery point on: one look at each.

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

Source: Kafka LogLoader.recoverLog, LogSegment.recover, UnifiedLog.rebuildProducerState.
"""

from collections import deque
from typing import Final, NamedTuple

from minibroker.broker.storage import producer_files
from minibroker.broker.storage.checked_batches import Fields, checked_batches, header_of
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.epochs import LeaderEpochs
from minibroker.broker.storage.producer_batches import BATCHES_KEPT
from minibroker.broker.storage.producer_state import ProducerState
from minibroker.broker.storage.segment import Segment
from minibroker.broker.storage.segments import Segments
from minibroker.broker.storage.txn_index import AbortedTransaction, aborted_transaction
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.batch import CONTROL_FLAG, LENGTH_FIELD_END, TRANSACTIONAL_FLAG

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
        index, limit = segment.txn_index, min(self._producers_from, self.next_offset)
        synced = index.read() if limit > segment.base_offset else []
        index.replace([*(entry for entry in synced if entry.last_offset < limit), *self._aborted])

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
