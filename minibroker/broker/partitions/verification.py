"""The verification of transactional batches: one is appended only inside a transaction that the
coordinator knows.

Where the log shows the producer's transaction open, the batch is appended. Else the coordinator is
asked first (`handlers/common/transaction_verification`). Until the first batch is in the log, this
module remembers the lowest sequence that asked. Batches are in flight side by side, and a verified
one must not overtake an earlier one that was refused for the moment (CONCURRENT_TRANSACTIONS) and
will come again.

`begin` gives a guard for the question. A handler that asks a coordinator on another broker shows
the guard to `check_guard` when the answer is there. A marker that was written meanwhile has removed
it, and a question after the marker has a guard of its own, so an answer from before lets nothing
into the next transaction. With the coordinator in this broker nothing runs between answer and
append.

Source: Kafka UnifiedLog.maybeStartTransactionVerification, batchMissingRequiredVerification,
VerificationStateEntry, ProducerAppendInfo.checkSequence; KIP-890.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.partitions.partition import VerificationGuard
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from minibroker.broker.partitions.partition import Partition

PENDING_MAX: Final = 1_000
"""So many producers of one partition are remembered; the oldest is forgotten for a new one."""


def has_open_transaction(partition: Partition, producer_id: int, epoch: int) -> bool:
    """Return whether the log has a batch of the producer's open transaction.

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
) -> VerificationGuard:
    """Remember that this batch is about to be verified (again); return the question's guard.

    It stays the same guard until the batch is appended or a marker ends the transaction.
    """
    pending = partition.unverified
    guard = pending.get(producer_id)
    if guard is None:
        if len(pending) >= PENDING_MAX:
            del pending[next(iter(pending))]
        guard = VerificationGuard(epoch, sequence, has_epoch_bump=has_epoch_bump)
        pending[producer_id] = guard
    elif epoch > guard.epoch or (epoch == guard.epoch and sequence < guard.lowest_sequence):
        guard.epoch = epoch
        guard.lowest_sequence = sequence
    return guard


def check_guard(
    partition: Partition, producer_id: int, epoch: int, guard: VerificationGuard | None
) -> None:
    """Check that a batch that was verified before a wait may still be appended.

    `guard`: of the question, None where the log showed the transaction open and no question was
    needed. Raises KafkaError: INVALID_TXN_STATE; INVALID_PRODUCER_EPOCH for an epoch that is over.
    """
    if has_open_transaction(partition, producer_id, epoch):
        return
    if guard is None or partition.unverified.get(producer_id) is not guard:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"the transaction of producer {producer_id} in {partition} ended while the coordinator"
            " was asked about it",
        )


def check_sequence(partition: Partition, producer_id: int, sequence: int) -> None:
    """Raise KafkaError(OUT_OF_ORDER_SEQUENCE_NUMBER) where an earlier batch is still to come."""
    guard = partition.unverified.get(producer_id)
    if guard is None:
        return
    if guard.has_epoch_bump and sequence != 0:
        entry = partition.producers().get(producer_id)
        if entry is None or not entry.batches:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} begins in {partition} with sequence {sequence}, "
                "expected 0",
            )
    if sequence > guard.lowest_sequence:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} in {partition}: sequence {sequence} comes before "
            f"{guard.lowest_sequence}, which was sent earlier and is not appended yet",
        )


def on_append(partition: Partition, producer_id: int) -> None:
    """Forget the producer: a batch of its transaction is in the log, which shows it from now on."""
    partition.unverified.pop(producer_id, None)


def on_marker(partition: Partition, producer_id: int, epoch: int) -> None:
    """Forget the producer: its transaction ended. In the second protocol a marker carries the epoch
    of the next transaction; a first batch of that one, which may wait already, is kept."""
    guard = partition.unverified.get(producer_id)
    if guard is not None and not (guard.has_epoch_bump and guard.epoch == epoch):
        del partition.unverified[producer_id]
