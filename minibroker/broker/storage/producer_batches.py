"""The last batches of producers: those in memory, and those in the log before the snapshot that a
start began with.

A snapshot has the last batch of each producer, as Kafka's has. An idempotent producer may have five
in flight. If a kill takes their answers, it sends all five again, and each must be known. The four
others are in the log, so nothing more is written for them. They are read when a batch comes that
may repeat one of them: most starts read none.

`EarlierBatches` is what the loop knows of them. `earlier_batches_load` reads them beside the loop.
All loads after one start read `BATCHES_MAX` headers together, some seconds of one worker at most.

Source: none. Kafka forgets those batches with the process, and answers OUT_OF_ORDER_SEQUENCE_NUMBER
to their repetition.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from minibroker.kafka.records.batch import BatchHeader, subtract_from_sequence

BATCHES_KEPT: Final = 5
"""As many requests as an idempotent producer may have in flight."""
BATCHES_MAX: Final = 1_000_000
"""Headers that are read for one log after one start. The repetition of a batch that stands further
back is refused, as Kafka refuses it."""


class RecentBatch(NamedTuple):
    """One appended batch; `timestamp` is its largest, in ms. First and last are inclusive."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return subtract_from_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @classmethod
    def of(cls, header: BatchHeader) -> "RecentBatch":
        """Return the batch that has this header."""
        delta = header.last_offset_delta
        return cls(header.last_sequence, header.base_offset + delta, delta, header.max_timestamp)


class EpochBatches(NamedTuple):
    """The last batches of one producer in its last epoch, at most five, in log order."""

    epoch: int
    batches: tuple[RecentBatch, ...]

    @property
    def is_complete(self) -> bool:
        """Return whether no batch before these counts. An epoch begins with sequence 0."""
        return len(self.batches) >= BATCHES_KEPT or self.batches[0].first_sequence == 0

    def behind(self, earlier: "EpochBatches") -> "EpochBatches":
        """Return these batches with those of `earlier`, which stand before them."""
        if earlier.epoch != self.epoch or len(self.batches) >= BATCHES_KEPT:
            return self
        return EpochBatches(self.epoch, (*earlier.batches, *self.batches)[-BATCHES_KEPT:])


BatchesOf = Mapping[int, EpochBatches]
"""Producer id → its batches. Nobody changes it."""


class EarlierBatches:
    """The part of one log that is before the snapshot. Belongs to the loop."""

    __slots__ = ("batches", "left", "snapshot_offset", "start")

    def __init__(self, snapshot_offset: int) -> None:
        """Know nothing yet of what stands before the snapshot at `snapshot_offset`."""
        self.snapshot_offset = snapshot_offset  # constant after construction
        self.start = snapshot_offset
        """The offset below which nothing was read yet."""
        self.left = BATCHES_MAX
        """So many more headers may be read."""
        self.batches: BatchesOf = {}
        """The batches from `start` to the snapshot."""

    def of(
        self, producer_id: int, epoch: int, kept: tuple[RecentBatch, ...]
    ) -> tuple[RecentBatch, ...]:
        """Return the batches of a producer that are known, as many as count: `kept`, which are in
        memory, and before them those that were read.
        """
        found = self.batches.get(producer_id)
        if not kept or found is None or found.epoch != epoch:
            return kept
        first_offset = kept[0].first_offset
        earlier = (batch for batch in found.batches if batch.last_offset < first_offset)
        return (*earlier, *kept)[-BATCHES_KEPT:]

    def may_hold_more(self, producer_id: int, epoch: int, kept: tuple[RecentBatch, ...]) -> bool:
        """Return whether batches of a producer before those in memory, `kept`, may count, and were
        not read.
        """
        if (
            len(kept) >= BATCHES_KEPT
            or kept[0].last_offset >= self.snapshot_offset  # the snapshot did not have it
            or kept[0].first_sequence == 0
            or self.left <= 0
            or self.start <= 0
        ):
            return False
        found = self.batches.get(producer_id)
        return found is None or (found.epoch == epoch and not found.is_complete)

    def note_read(self, start: int, header_count: int, batches: BatchesOf) -> None:
        """Take the result of a load: `batches` are those from `start` to the snapshot now."""
        self.start = start
        self.left -= header_count
        self.batches = batches
