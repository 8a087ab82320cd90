"""Before a transactional batch is appended: is its partition in the transaction? (KIP-890)

Produce and TxnOffsetCommit ask here. A transaction that the log shows as open needs no question.
Else the coordinator is asked, and in the second protocol (Produce 12, TxnOffsetCommit 5) adds the
partition in the same go, so that clients need no AddPartitionsToTxn. A coordinator that is just
ending the producer's last transaction answers CONCURRENT_TRANSACTIONS; Produce of the second
protocol then asks again for a while, as the next transaction usually comes right behind the last.

The coordinator is this very broker as a rule, and then its answer and the append are one step of
the loop, unless its record has to be synced first. Another broker is asked by AddPartitionsToTxn.
Where a marker is written until the answer is there, the guard of the question is worth nothing any
more, and the batch is refused.

Source: Kafka ReplicaManager.maybeSendPartitionsToTransactionCoordinator, AddPartitionsToTxnManager.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster.image import NO_LEADER
from minibroker.broker.partitions import verification
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.handlers.common.context import Services
    from minibroker.broker.partitions.partition import VerificationGuard

    Codes = dict[TopicPartition, ErrorCode]

_CLIENT_VERSION: Final = 2


class Protocol(Enum):
    """Facts of the client's request: the errors that it knows, and who adds partitions."""

    OLD = "old"
    """Knows no TRANSACTION_ABORTABLE (Produce to 10, TxnOffsetCommit to 3)."""
    VERIFIED = "verified"
    """Knows it (Produce 11, TxnOffsetCommit 4)."""
    ADDING = "adding"
    """The broker adds the partitions: the second protocol."""


class Question(NamedTuple):
    """The partitions of an append, and its producer."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    sequences: dict[TopicPartition, int]
    """Partition → first sequence of the batch for it (-1: offsets have none)."""
    protocol: Protocol
    guards: dict[TopicPartition, VerificationGuard]
    """Empty; `verify` writes the guard of each partition that the coordinator is asked about."""


def verify(
    services: Services, question: Question, *, is_retried: bool = False
) -> Codes | Awaitable[Codes]:
    """Check (or have added) the partitions.

    Gives a code for each partition that may not be appended to; those not in the answer may be, as
    long as nothing else runs in between. An awaitable where another broker is the coordinator,
    where its record has to be synced first, and,
    if `is_retried`, where the coordinator answered CONCURRENT_TRANSACTIONS: it is asked again every
    `add.partitions.to.txn.retry.backoff.ms` until `….max.ms` have passed.
    """
    until_s = 0.0
    if is_retried:
        config = services.config
        patience_ms = min(
            config.integer("add.partitions.to.txn.retry.backoff.max.ms"), config.request_timeout_ms
        )
        until_s = services.clock.monotonic_s() + patience_ms / 1000
    return _verify(services, question, until_s)


def _verify(services: Services, question: Question, until_s: float) -> Codes | Awaitable[Codes]:
    """`until_s`: on the clock's `monotonic_s`; from then on nothing is asked again."""
    refused: Codes = {}
    _, producer_id, epoch, sequences, protocol, guards = question
    guards.clear()
    is_adding = protocol is Protocol.ADDING
    if not _is_asked(services, protocol):
        return refused
    for name, sequence in sequences.items():
        try:
            partition = services.partitions.get(name.topic, name.partition)
            if not verification.has_open_transaction(partition, producer_id, epoch):
                guards[name] = verification.begin(
                    partition, producer_id, epoch, sequence, has_epoch_bump=is_adding
                )
        except KafkaError as error:
            refused[name] = error.code
    if not guards:
        return refused
    coordinator = _coordinator_elsewhere(services, question.transactional_id)
    if coordinator is not None:
        return _verify_there(services, question, coordinator, refused, until_s)
    refused.update(_ask(services, question, list(guards)))
    if _is_worth_asking_again(services, refused, until_s):
        return _verify_again(services, question, until_s)
    waiting = services.transactions.visible(question.transactional_id)
    if waiting is not None and guards.keys() - refused.keys():
        return _when_visible(services, question, waiting, refused)
    return refused


async def _when_visible(
    services: Services, question: Question, waiting: Awaitable[None], refused: Codes
) -> Codes:
    """Wait until the record of the coordinator, which is this broker, is synced; return the errors.
    A batch that is in the log before it could be left open for ever.
    """
    try:
        await waiting
    except KafkaError as error:
        code = _in_words_of(question.protocol, error.code)
        return dict.fromkeys(question.guards, code) | refused
    _check_guards(services, question, refused)
    return refused


def _check_guards(services: Services, question: Question, refused: Codes) -> None:
    """After a wait: refuse what a marker has overtaken meanwhile."""
    for name in question.sequences:
        if name in refused:
            continue
        try:
            check_again(services, question, name)
        except KafkaError as error:
            refused[name] = error.code


def check_again(services: Services, question: Question, name: TopicPartition) -> None:
    """Check that the transaction of a verified batch is still open.

    Raises KafkaError: INVALID_TXN_STATE where a marker came meanwhile, INVALID_PRODUCER_EPOCH for
    an epoch that is over, and the errors of a partition that is no longer led here.
    """
    if not _is_asked(services, question.protocol):
        return
    partition = services.partitions.get(name.topic, name.partition)
    verification.check_guard(
        partition, question.producer_id, question.producer_epoch, question.guards.get(name)
    )


def _is_asked(services: Services, protocol: Protocol) -> bool:
    """Return whether somebody verifies: a partition has to be added, or the broker is set so."""
    return protocol is Protocol.ADDING or services.config.transaction_partition_verification_enable


def _is_worth_asking_again(services: Services, refused: Codes, until_s: float) -> bool:
    return (
        ErrorCode.CONCURRENT_TRANSACTIONS in refused.values()
        and services.clock.monotonic_s() < until_s
    )


async def _verify_there(
    services: Services, question: Question, coordinator: int, refused: Codes, until_s: float
) -> Codes:
    transactional_id, producer_id, epoch, _, protocol, guards = question
    codes = await services.transactions.peers.add_partitions(
        coordinator,
        transactional_id,
        producer_id,
        epoch,
        list(guards),
        verify_only=protocol is not Protocol.ADDING,
    )
    for name, code in codes.items():
        if code != ErrorCode.NONE:
            refused[name] = _in_words_of(protocol, code)
    _check_guards(services, question, refused)
    if _is_worth_asking_again(services, refused, until_s):
        return await _verify_again(services, question, until_s)
    return refused


async def _verify_again(services: Services, question: Question, until_s: float) -> Codes:
    waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    backoff_ms = services.config.integer("add.partitions.to.txn.retry.backoff.ms")
    timer = services.timers.after(backoff_ms, lambda: waited.set_result(None))
    try:
        await waited
    finally:
        timer.cancel()
    codes = _verify(services, question, until_s)
    return codes if isinstance(codes, dict) else await codes


def _ask(services: Services, question: Question, partitions: list[TopicPartition]) -> Codes:
    """Ask the coordinator; its codes in the words that producers expect."""
    transactional_id, producer_id, epoch, _, protocol, _ = question
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
    """Return the coordinator's code in the form that producers know."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and protocol is Protocol.OLD:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _coordinator_elsewhere(services: Services, transactional_id: str) -> int | None:
    """Return the broker that coordinates this id, None: this one, or nobody."""
    journal = services.transactions.journal
    topic = services.cluster.image.topics.get(journal.topic)
    if topic is None:
        return None
    leader = topic.partitions[journal.partition_of(transactional_id)].leader
    return None if leader in {NO_LEADER, services.cluster.broker_id} else leader
