"""AddOffsetsToTxn: key 25, versions 0-4.

Behaviour: the offsets of a group will be committed in this transaction: the
partition of `__consumer_offsets` that keeps the group joins it.

Versions:
- 2: PRODUCER_FENCED
- 3: flexible
- 4: TRANSACTION_ABORTABLE (KIP-890)

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.broker.handlers.common.fenced_producers import known_code
from minibroker.broker.handlers.common.visible_answers import when_visible
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.kafka.error_codes import ErrorCode

_FIRST_WITH_FENCED = 2


def handle(
    context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
    """Add one partition. Only clients of the first protocol send this request."""

    def refuse(code: ErrorCode) -> AddOffsetsToTxnResponse:
        client_code = known_code(code, knows_fenced=context.version >= _FIRST_WITH_FENCED)
        return AddOffsetsToTxnResponse(error_code=int(client_code))

    services = context.services
    index = services.groups.journal.partition_of(request.group_id)
    try:
        services.transactions.add_partitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [TopicPartition(OFFSETS_TOPIC, index)],
            client_version=0,
        )
    except KafkaError as error:
        return refuse(error.code)
    waiting = services.transactions.visible(request.transactional_id)
    return when_visible(waiting, AddOffsetsToTxnResponse(), refuse)
