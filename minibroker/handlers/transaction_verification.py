"""Before a transactional batch is appended: is its partition in the transaction? (KIP-890)

Produce and TxnOffsetCommit ask here. What the log shows as open needs no question. Else the
coordinator is asked, and in the second protocol (Produce 12, TxnOffsetCommit 5) adds the partition
in the same go, so that clients need no AddPartitionsToTxn. A coordinator that is just ending the
producer's last transaction answers CONCURRENT_TRANSACTIONS; Produce of the second protocol then
asks again for a while, as the next transaction usually comes right behind the last.

The coordinator is this very broker as a rule, and then its answer and the append are one step of
the loop. Another broker is asked by AddPartitionsToTxn; a marker that is written until it answers
takes the memory of the question away, and the batch is refused.

Source: Kafka ReplicaManager.maybeSendPartitionsToTransactionCoordinator, AddPartitionsToTxnManager.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cluster.image import NO_LEADER
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.ids import TopicPartition
from minibroker.partitions import verification

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.handlers.context import Services

    Codes = dict[TopicPartition, ErrorCode]

RETRY_MS: Final = 20
"""Kafka's add.partitions.to.txn.retry.backoff.ms."""
RETRIES_MAX: Final = 5
"""Kafka's add.partitions.to.txn.retry.backoff.max.ms is 100 ms."""
_CLIENT_VERSION: Final = 2


class Protocol(Enum):
    """What the client's request says about the errors it knows, and who adds partitions."""

    OLD = "old"
    """Knows no TRANSACTION_ABORTABLE (Produce to 10, TxnOffsetCommit to 3)."""
    VERIFIED = "verified"
    """Knows it (Produce 11, TxnOffsetCommit 4)."""
    ADDING = "adding"
    """The broker adds the partitions: the second protocol."""


class Question(NamedTuple):
    """What is to be appended, by whom."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    sequences: dict[TopicPartition, int]
    """Partition → first sequence of the batch for it (-1: offsets have none)."""
    protocol: Protocol


def verify(services: Services, question: Question, *, retries: int = 0) -> Codes | Awaitable[Codes]:
    """Check (or have added) the partitions.

    Gives a code for each partition that may not be appended to; those not in the answer may be, as
    long as nothing else runs in between. An awaitable where another broker is the coordinator, and,
    with `retries`, where the coordinator answered CONCURRENT_TRANSACTIONS.
    """
    refused: Codes = {}
    unknown: list[TopicPartition] = []
    _, producer_id, epoch, sequences, protocol = question
    is_adding = protocol is Protocol.ADDING
    if not is_adding and not services.config.transaction_partition_verification_enable:
        return refused
    for name, sequence in sequences.items():
        try:
            partition = services.partitions.get(name.topic, name.partition)
            if not verification.has_open_transaction(partition, producer_id, epoch):
                verification.begin(
                    partition, producer_id, epoch, sequence, has_epoch_bump=is_adding
                )
                unknown.append(name)
        except KafkaError as error:
            refused[name] = error.code
    if not unknown:
        return refused
    coordinator = _coordinator_elsewhere(services, question.transactional_id)
    if coordinator is not None:
        return _verify_there(services, question, coordinator, unknown, refused, retries)
    refused.update(_ask(services, question, unknown))
    if retries > 0 and ErrorCode.CONCURRENT_TRANSACTIONS in refused.values():
        return _verify_again(services, question, retries - 1)
    return refused


async def _verify_there(  # noqa: PLR0917  the state of `verify`
    services: Services,
    question: Question,
    coordinator: int,
    unknown: list[TopicPartition],
    refused: Codes,
    retries: int,
) -> Codes:
    transactional_id, producer_id, epoch, _, protocol = question
    codes = await services.transactions.peers.add_partitions(
        coordinator,
        transactional_id,
        producer_id,
        epoch,
        unknown,
        verify_only=protocol is not Protocol.ADDING,
    )
    for name, code in codes.items():
        if code != ErrorCode.NONE:
            refused[name] = _in_words_of(protocol, code)
        else:
            partition = services.partitions.find(name.topic, name.partition)
            if partition is not None and producer_id not in partition.unverified:
                refused[name] = ErrorCode.INVALID_TXN_STATE
    if retries > 0 and ErrorCode.CONCURRENT_TRANSACTIONS in refused.values():
        return await _verify_again(services, question, retries - 1)
    return refused


async def _verify_again(services: Services, question: Question, retries: int) -> Codes:
    waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = services.timers.after(RETRY_MS, lambda: waited.set_result(None))
    try:
        await waited
    finally:
        timer.cancel()
    codes = verify(services, question, retries=retries)
    return codes if isinstance(codes, dict) else await codes


def _ask(services: Services, question: Question, partitions: list[TopicPartition]) -> Codes:
    """Ask the coordinator; its codes in the words that producers expect."""
    transactional_id, producer_id, epoch, _, protocol = question
    coordinator = services.transactions
    try:
        if protocol is Protocol.ADDING:
            coordinator.add_partitions(
                transactional_id, producer_id, epoch, partitions, client_version=_CLIENT_VERSION
            )
            return {}
        missing = coordinator.partitions_not_added(transactional_id, producer_id, epoch, partitions)
    except KafkaError as error:
        return dict.fromkeys(partitions, _in_words_of(protocol, error.code))
    return dict.fromkeys(missing, _in_words_of(protocol, ErrorCode.TRANSACTION_ABORTABLE))


def _in_words_of(protocol: Protocol, code: ErrorCode) -> ErrorCode:
    """What the coordinator says, as producers know it."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and protocol is Protocol.OLD:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _coordinator_elsewhere(services: Services, transactional_id: str) -> int | None:
    """The broker that coordinates this id, None: this one, or nobody."""
    journal = services.transactions.journal
    topic = services.cluster.image.topics.get(journal.topic)
    if topic is None:
        return None
    leader = topic.partitions[journal.partition_of(transactional_id)].leader
    return None if leader in {NO_LEADER, services.cluster.broker_id} else leader
