"""AddPartitionsToTxn: key 24, versions 0-5.

Behaviour: partitions join a transaction, which the first of them begins. All of a
transaction's partitions or none.

Versions:
- 2: PRODUCER_FENCED
- 3: flexible
- 4: several transactions, verification only (KIP-890): brokers ask so, clients stay at 3
- 5: TRANSACTION_ABORTABLE

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster.image import INTERNAL_TOPICS
from minibroker.broker.handlers.common.fenced_producers import known_code
from minibroker.broker.handlers.common.permissions import Allowed, Need
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.slices import gather, run_with_pauses
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps

_FIRST_WITH_FENCED: Final = 2
_FIRST_BATCHED: Final = 4


def handle(
    context: RequestContext, request: AddPartitionsToTxnRequest
) -> Steps[AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]]:
    """Add to (or verify) each transaction of the request by itself.

    Return an awaitable where a record has to be synced before its transaction counts as begun.
    """
    transactions = [_only_one(request)]
    if context.version < _FIRST_BATCHED:
        transactional_id = request.v3_and_below_transactional_id
        Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID).require(context, transactional_id)
    else:
        Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER).check(context, request)
        transactions = request.transactions
    added = []
    waits = False
    for transaction in transactions:
        codes = yield from _add(context, transaction)
        waiting = None
        if ErrorCode.NONE in codes.values():
            waiting = context.services.transactions.visible(transaction.transactional_id)
            waits = waits or waiting is not None
        added.append(_Added(transaction, codes, waiting))
    if waits:
        return _when_visible(context.version, added)
    return (yield from _response(context.version, added))


class _Added(NamedTuple):
    """A transaction of the request, its codes, and the wait for its record if there is one."""

    transaction: AddPartitionsToTxnTransaction
    codes: dict[TopicPartition, ErrorCode]
    waiting: Awaitable[None] | None


async def _when_visible(version: int, added: list[_Added]) -> AddPartitionsToTxnResponse:
    for _, codes, waiting in added:
        if waiting is None:
            continue
        try:
            await waiting
        except KafkaError as error:
            refused = known_code(error.code, knows_fenced=version >= _FIRST_WITH_FENCED)
            codes |= {name: code or refused for name, code in codes.items()}
    return await run_with_pauses(_response(version, added))


def _response(version: int, added: list[_Added]) -> Steps[AddPartitionsToTxnResponse]:
    response = AddPartitionsToTxnResponse()
    for transaction, codes, _ in added:
        results = yield from _results(transaction, codes)
        if version < _FIRST_BATCHED:
            response.results_by_topic_v3_and_below = results
        else:
            response.results_by_transaction.append(
                AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id, topic_results=results
                )
            )
    return response


def _add(
    context: RequestContext, transaction: AddPartitionsToTxnTransaction
) -> Steps[dict[TopicPartition, ErrorCode]]:
    """Return one code for each partition of one transaction."""
    names = yield from gather(_partitions_of(transaction))
    image = context.services.cluster.image
    is_client = context.version < _FIRST_BATCHED
    may_write = Allowed(context, Operation.WRITE)
    refused: dict[TopicPartition, ErrorCode] = {}
    for name in names:
        if is_client and (name.topic in INTERNAL_TOPICS or name.topic not in may_write):
            refused[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif image.partition(*name) is None:
            refused[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        yield
    if refused:
        return dict.fromkeys(names, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused
    coordinator = context.services.transactions
    owner = transaction.transactional_id, transaction.producer_id, transaction.producer_epoch
    codes = dict.fromkeys(names, ErrorCode.NONE)
    try:
        if transaction.verify_only:
            missing = coordinator.partitions_not_added(*owner, names)
            codes.update(dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE))
        else:
            version = 0 if is_client else 2
            coordinator.add_partitions(*owner, names, client_version=version)
    except KafkaError as error:
        code = known_code(error.code, knows_fenced=context.version >= _FIRST_WITH_FENCED)
        return dict.fromkeys(names, code)
    return codes


def _partitions_of(transaction: AddPartitionsToTxnTransaction) -> Iterator[TopicPartition]:
    for topic in transaction.topics:
        for index in topic.partitions:
            yield TopicPartition(topic.name, index)


def _results(
    transaction: AddPartitionsToTxnTransaction, codes: dict[TopicPartition, ErrorCode]
) -> Steps[list[AddPartitionsToTxnTopicResult]]:
    results = []
    for topic in transaction.topics:
        partitions = yield from gather(
            AddPartitionsToTxnPartitionResult(
                partition_index=index,
                partition_error_code=int(codes[TopicPartition(topic.name, index)]),
            )
            for index in topic.partitions
        )
        results.append(
            AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=partitions)
        )
        yield
    return results


def _only_one(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    """Return the transaction of a request that is not batched."""
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
