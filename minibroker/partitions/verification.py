"""Whether a transactional batch may be appended: only inside a transaction the coordinator knows.

Where the log shows the producer's transaction open, it may. Else the coordinator is asked first
(`handlers/transaction_verification`), and until the first batch is in the log this module remembers
the lowest sequence that asked: batches are in flight side by side, and one that is verified must
not overtake an earlier one that was refused for the moment (CONCURRENT_TRANSACTIONS) and will come
again.

Whoever asks a coordinator on another broker looks here again when the answer is there: a marker
that was written meanwhile has removed the entry, and the answer counts no more (Kafka's
verification guard). With the coordinator in this broker nothing runs between answer and append.

Source: Kafka UnifiedLog.maybeStartTransactionVerification, VerificationStateEntry,
ProducerAppendInfo.checkSequence; KIP-890.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError

if TYPE_CHECKING:
    from minibroker.partitions.partition import Partition

PENDING_MAX: Final = 1_000
"""So many producers of one partition are remembered; the oldest is forgotten for a new one."""


class Pending(NamedTuple):
    """A producer whose first batch of a transaction is not in the log yet."""

    epoch: int
    lowest_sequence: int
    has_epoch_bump: bool
    """It goes by the second protocol (KIP-890): its first batch ever begins with sequence 0."""


def has_open_transaction(partition: Partition, producer_id: int, epoch: int) -> bool:
    """Whether the log has a batch of the producer's open transaction.

    Raises KafkaError(INVALID_PRODUCER_EPOCH) for an epoch older than the log has seen.
    """
    entry = partition.producers().get(producer_id)
    if entry is None:
        return False
    if epoch < entry.epoch:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {producer_id} in {partition} sent epoch {epoch}, "
            f"the last seen is {entry.epoch}",
        )
    return entry.transaction_start >= 0 and entry.epoch == epoch


def begin(
    partition: Partition, producer_id: int, epoch: int, sequence: int, *, has_epoch_bump: bool
) -> None:
    """Remember that this batch is about to be verified (again)."""
    pending = partition.unverified
    known = pending.get(producer_id)
    if known is None:
        if len(pending) >= PENDING_MAX:
            del pending[next(iter(pending))]
        pending[producer_id] = Pending(epoch, sequence, has_epoch_bump)
    elif epoch > known.epoch or (epoch == known.epoch and sequence < known.lowest_sequence):
        pending[producer_id] = known._replace(epoch=epoch, lowest_sequence=sequence)


def check_sequence(partition: Partition, producer_id: int, sequence: int) -> None:
    """Raises KafkaError(OUT_OF_ORDER_SEQUENCE_NUMBER) where an earlier batch is still to come."""
    known = partition.unverified.get(producer_id)
    if known is None:
        return
    if known.has_epoch_bump and sequence != 0:
        entry = partition.producers().get(producer_id)
        if entry is None or not entry.batches:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} begins in {partition} with sequence {sequence}, "
                "expected 0",
            )
    if sequence > known.lowest_sequence:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} in {partition}: sequence {sequence} comes before "
            f"{known.lowest_sequence}, which was sent earlier and is not appended yet",
        )


def on_append(partition: Partition, producer_id: int) -> None:
    """A batch of the transaction is in the log: from here on the log tells."""
    partition.unverified.pop(producer_id, None)


def on_marker(partition: Partition, producer_id: int, epoch: int) -> None:
    """The transaction ended. In the second protocol a marker carries the epoch of the next one,
    whose first batch may be waiting already."""
    known = partition.unverified.get(producer_id)
    if known is not None and not (known.has_epoch_bump and known.epoch == epoch):
        del partition.unverified[producer_id]
