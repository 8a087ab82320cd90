"""The state machine of one transactional id: pure, no clock, no I/O.

Theory of operation. `TransactionMetadata` is one immutable value: the record of an id in
`__transaction_state`. A step (`initialize`, `add_partitions`, `end`, …) takes the value and an
event and returns the next value, or raises Kafka's error. The caller
(`coordinator.TransactionCoordinator`) writes the new value to the journal first, then puts it in
place of the old one. To load the journal does the same: a state comes about in no other way.

    Empty ──► Ongoing ──► PrepareCommit ──► CompleteCommit ──┐
      │          └──────► PrepareAbort ───► CompleteAbort ───┤
      └─────────────────────────────────── (next transaction)┘

From PrepareCommit or PrepareAbort on the outcome is decided: markers are written to the partitions,
then `complete`. While that goes on every client gets CONCURRENT_TRANSACTIONS, which is retriable.

Two protocols (KIP-890). In the first (`transaction.version` 0 and 1) an epoch belongs to a producer
session: InitProducerId raises it. In the second (2) it belongs to a transaction: every end raises
it, so that a late batch or marker of an earlier transaction is told from one of the next. Which one
an end follows is said by the version of the request (`EndTxn` 5 and later: the second).

Kafka's PrepareEpochFence is the moment between deciding to fence and writing PrepareAbort; writing
is one step here, so the state is known (files name it) and never entered.

Source: Kafka 4.4 TransactionMetadata, TransactionState, TransactionCoordinator; KIP-98, KIP-360,
KIP-890.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    PRODUCER_EPOCH_MAX,
    TopicPartition,
)

if TYPE_CHECKING:
    from collections.abc import Collection

TIMEOUT_MS_NEVER: Final = 2**31 - 1
"""The time-out of two-phase commit: such a transaction is never aborted by the broker (KIP-939)."""
VERSION_OF_EPOCH_BUMP: Final = 2
"""`transaction.version` from which every end of a transaction raises the epoch."""
NO_TIMESTAMP: Final = -1


class TransactionState(IntEnum):
    """The numbers stand in `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """Kafka's name, as DescribeTransactions shows it."""
        return self.name.title().replace("_", "")


EMPTY = TransactionState.EMPTY
ONGOING = TransactionState.ONGOING
PREPARED: Final = frozenset((TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT))
BETWEEN_TRANSACTIONS: Final = frozenset(
    (EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
)


class TransactionMetadata(NamedTuple):
    """The state of one transactional id; never changed, only replaced."""

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    """-1 only before the first InitProducerId is answered."""
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last step (usually the same)."""
    next_producer_id: int = NO_PRODUCER_ID
    """The `producer_id` after this transaction, where its epochs are used up."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before the last bump that its owner asked for; -1 after a fence, and after a
    restart, as it is not stored."""
    timeout_ms: int = 0
    state: TransactionState = EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    """When the transaction began, ms since the epoch; -1 before the first."""
    last_update_ms: int = 0
    client_version: int = 0
    """`transaction.version` that the client of the transaction goes by."""

    @property
    def is_epoch_exhausted(self) -> bool:
        """Return whether the next step needs a new producer id: the last epoch is kept back for
        fencing.
        """
        return self.producer_epoch >= PRODUCER_EPOCH_MAX - 1

    def expires_before(self, oldest_ms: int) -> bool:
        """Return whether the id was not used since `oldest_ms` and no transaction is open."""
        return self.state in BETWEEN_TRANSACTIONS and self.last_update_ms <= oldest_ms

    def is_overdue(self, now_ms: int) -> bool:
        """Return whether its transaction is open for longer than `timeout_ms`."""
        return (
            self.state == ONGOING
            and self.timeout_ms != TIMEOUT_MS_NEVER
            and self.start_ms + self.timeout_ms < now_ms
        )


def _next_metadata(metadata: TransactionMetadata, **changes: Any) -> TransactionMetadata:
    """Return the metadata after a step, with the producer id before it."""
    return metadata._replace(previous_producer_id=metadata.producer_id, **changes)


# InitProducerId.


def initialize(
    metadata: TransactionMetadata,
    *,
    timeout_ms: int,
    client_identity: tuple[int, int] | None,
    new_producer_id: int,
    now_ms: int,
) -> TransactionMetadata:
    """Raise the epoch of an id without an open transaction (InitProducerId); fence the old one.

    `client_identity`: the producer id and epoch that the client believes in (KIP-360), None: a new
    session. `new_producer_id` is used when the epochs are exhausted. Raises KafkaError:
    CONCURRENT_TRANSACTIONS, PRODUCER_FENCED, UNKNOWN_SERVER_ERROR.
    """
    check_initializable(metadata, client_identity)
    if metadata.is_epoch_exhausted and (
        client_identity is None or client_identity[1] == metadata.producer_epoch
    ):
        is_recovery = client_identity is not None
        return _next_metadata(
            metadata,
            producer_id=new_producer_id,
            producer_epoch=0,
            last_producer_epoch=metadata.producer_epoch if is_recovery else NO_PRODUCER_EPOCH,
            timeout_ms=timeout_ms,
            state=EMPTY,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
            last_update_ms=now_ms,
        )
    epoch, last_epoch = _next_epoch(metadata, client_identity)
    return _next_metadata(
        metadata,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        state=EMPTY,
        partitions=frozenset(),
        start_ms=NO_TIMESTAMP,
        last_update_ms=now_ms,
    )


def check_initializable(
    metadata: TransactionMetadata, client_identity: tuple[int, int] | None
) -> None:
    """Raise KafkaError: CONCURRENT_TRANSACTIONS, PRODUCER_FENCED for another's producer id."""
    if metadata.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if client_identity is None or metadata.producer_epoch == NO_PRODUCER_EPOCH:
        return
    producer_id, epoch = client_identity
    if producer_id == metadata.producer_id:
        return
    # A repetition of a call that went to a new producer id, whose answer was lost.
    if producer_id == metadata.previous_producer_id and epoch >= PRODUCER_EPOCH_MAX - 1:
        return
    raise KafkaError(ErrorCode.PRODUCER_FENCED)


def _next_epoch(
    metadata: TransactionMetadata, client_identity: tuple[int, int] | None
) -> tuple[int, int]:
    """Return the epoch to give and the epoch to remember as the last, for an InitProducerId."""
    current = metadata.producer_epoch
    if metadata.is_epoch_exhausted:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"epochs of producer id {metadata.producer_id} are exhausted at {current}",
        )
    if client_identity is None:
        return current + 1, NO_PRODUCER_EPOCH
    if current in {NO_PRODUCER_EPOCH, client_identity[1]}:
        return current + 1, current
    if client_identity[1] == metadata.last_producer_epoch:
        return current, metadata.last_producer_epoch  # a repetition: nobody came between
    raise KafkaError(ErrorCode.PRODUCER_FENCED)


# AddPartitionsToTxn, AddOffsetsToTxn, and the question whether a batch may be appended.


def check_owner(metadata: TransactionMetadata, producer_id: int, producer_epoch: int) -> None:
    """Raise KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED."""
    if metadata.producer_id != producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.producer_epoch != producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)


def add_partitions(
    metadata: TransactionMetadata,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
    *,
    client_version: int,
    now_ms: int,
) -> TransactionMetadata | None:
    """Return the transaction that covers `partitions` from now on, and begins if none was open;
    None: it covered them before.

    Raises KafkaError: CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED.
    """
    if metadata.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    check_owner(metadata, producer_id, producer_epoch)
    is_open = metadata.state == ONGOING
    if is_open and metadata.partitions.issuperset(partitions):
        return None
    return _next_metadata(
        metadata,
        state=ONGOING,
        partitions=metadata.partitions.union(partitions),
        start_ms=metadata.start_ms if is_open else now_ms,
        last_update_ms=now_ms,
        client_version=client_version,
    )


def partitions_not_added(
    metadata: TransactionMetadata,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
) -> list[TopicPartition]:
    """Return those of `partitions` that the open transaction does not cover.

    Raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
    """
    check_owner(metadata, producer_id, producer_epoch)
    if metadata.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return [partition for partition in partitions if partition not in metadata.partitions]


# The end of a transaction.


def end(
    metadata: TransactionMetadata,
    producer_id: int,
    producer_epoch: int,
    *,
    is_commit: bool,
    client_version: int,
    new_producer_id: int,
    now_ms: int,
) -> TransactionMetadata | None:
    """Decide the outcome (EndTxn); return None if the transaction was ended the same way before.

    `new_producer_id` is for the next transaction when the epochs are exhausted and this end raises
    the epoch. Raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
    CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE.
    """
    if client_version < VERSION_OF_EPOCH_BUMP:
        return _end_of_session_epoch(metadata, producer_id, producer_epoch, is_commit, now_ms)
    if metadata.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_retry = _is_ended_before(metadata, producer_id, producer_epoch)
    if not is_retry:
        check_owner(metadata, producer_id, producer_epoch)
    elif metadata.state == _complete_state(is_commit):
        return None
    if is_retry or (is_commit and metadata.state != ONGOING):
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    # An abort may find nothing begun: the client cannot know what of its batches arrived.
    return _prepared_with_bump(
        metadata, is_commit, client_version, new_producer_id=new_producer_id, now_ms=now_ms
    )


def _is_ended_before(metadata: TransactionMetadata, producer_id: int, producer_epoch: int) -> bool:
    """Return whether the epoch is that of the transaction that ended last (second protocol)."""
    if metadata.state not in BETWEEN_TRANSACTIONS or metadata.state == EMPTY:
        return False
    if producer_id == metadata.producer_id:
        return producer_epoch == metadata.producer_epoch - 1
    return (
        producer_id == metadata.previous_producer_id
        and producer_epoch == PRODUCER_EPOCH_MAX - 1
        and metadata.producer_epoch == 0
    )


def _end_of_session_epoch(
    metadata: TransactionMetadata,
    producer_id: int,
    producer_epoch: int,
    is_commit: bool,
    now_ms: int,
) -> TransactionMetadata | None:
    """`end` in the first protocol: the epoch stays."""
    check_owner(metadata, producer_id, producer_epoch)
    if metadata.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if metadata.state == _complete_state(is_commit):
        return None
    if metadata.state != ONGOING:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    return _next_metadata(
        metadata,
        state=_prepare_state(is_commit),
        next_producer_id=NO_PRODUCER_ID,
        last_update_ms=now_ms,
        client_version=0,
    )


def fence(
    metadata: TransactionMetadata, *, broker_version: int, new_producer_id: int, now_ms: int
) -> TransactionMetadata:
    """Abort the open transaction from the broker's side, with an epoch that no client has.

    For InitProducerId of a new session and for transactions that are overdue. `broker_version` is
    the cluster's `transaction.version`.
    """
    assert metadata.state == ONGOING, metadata
    if broker_version >= VERSION_OF_EPOCH_BUMP:
        return _prepared_with_bump(
            metadata, False, broker_version, new_producer_id=new_producer_id, now_ms=now_ms
        )
    return _next_metadata(
        metadata,
        producer_epoch=min(metadata.producer_epoch + 1, PRODUCER_EPOCH_MAX),
        last_producer_epoch=NO_PRODUCER_EPOCH,
        state=TransactionState.PREPARE_ABORT,
        next_producer_id=NO_PRODUCER_ID,
        last_update_ms=now_ms,
        client_version=0,
    )


def _prepared_with_bump(
    metadata: TransactionMetadata,
    is_commit: bool,
    version: int,
    *,
    new_producer_id: int,
    now_ms: int,
) -> TransactionMetadata:
    is_open = metadata.state == ONGOING
    return _next_metadata(
        metadata,
        producer_epoch=min(metadata.producer_epoch + 1, PRODUCER_EPOCH_MAX),
        last_producer_epoch=metadata.producer_epoch,
        next_producer_id=new_producer_id if metadata.is_epoch_exhausted else NO_PRODUCER_ID,
        state=_prepare_state(is_commit),
        start_ms=metadata.start_ms if is_open else now_ms,
        last_update_ms=now_ms,
        client_version=version,
    )


def complete(metadata: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Return the metadata of a transaction that is over: every partition has its marker."""
    assert metadata.state in PREPARED, metadata
    is_commit = metadata.state == TransactionState.PREPARE_COMMIT
    completed_metadata = _next_metadata(
        metadata,
        state=_complete_state(is_commit),
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        last_update_ms=now_ms,
    )
    has_next = metadata.next_producer_id != NO_PRODUCER_ID
    if has_next and metadata.client_version >= VERSION_OF_EPOCH_BUMP:
        return completed_metadata._replace(producer_id=metadata.next_producer_id, producer_epoch=0)
    return completed_metadata


def _prepare_state(is_commit: bool) -> TransactionState:
    return TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT


def _complete_state(is_commit: bool) -> TransactionState:
    return TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
