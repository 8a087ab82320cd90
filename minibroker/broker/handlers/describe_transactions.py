"""DescribeTransactions: key 65, version 0.

Behaviour: the state of transactional ids that this broker coordinates (KIP-664).
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.slices import gather
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps


def handle(
    context: RequestContext, request: DescribeTransactionsRequest
) -> Steps[DescribeTransactionsResponse]:
    """Return one state or error for each id, in order."""
    states = yield from gather(_describe(context, name) for name in request.transactional_ids)
    return DescribeTransactionsResponse(transaction_states=states)


def _describe(context: RequestContext, transactional_id: str) -> TransactionState:
    if not context.authorize(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        code = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return TransactionState(transactional_id=transactional_id, error_code=code)
    visible = Allowed(context, Operation.DESCRIBE, is_filter=True)
    try:
        transaction = context.services.transactions.describe(transactional_id)
    except KafkaError as error:
        return TransactionState(transactional_id=transactional_id, error_code=int(error.code))
    topics: dict[str, TopicData] = {}
    for topic, index in sorted(transaction.partitions):
        if topic in visible:
            topics.setdefault(topic, TopicData(topic=topic)).partitions.append(index)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.title,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=list(topics.values()),
    )
