"""InitProducerId: key 22, versions 0-5.

Behaviour: without a transactional id, a fresh producer id with epoch 0 (KIP-98), from
any broker. With one, its producer id and a higher epoch: an earlier session is fenced, what it
left open is aborted first.

Versions:
- 2: flexible
- 3: producer id and epoch for recovery (KIP-360)
- 4: PRODUCER_FENCED
- 5: TRANSACTION_ABORTABLE

Version 6, two-phase commit (KIP-939), is one that Kafka calls unstable.

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.common.fenced_producers import known_code
from minibroker.broker.handlers.common.permissions import Need, refusal
from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.handlers.common.context import RequestContext

_FIRST_WITH_FENCED: Final = 4


def handle(
    context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    """Hand out an id from this broker's block at once, or when the next block is there."""
    _check_permission(context, request.transactional_id)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _initialize(context, request.transactional_id, request)
    producer_id = context.services.cluster.producer_ids.next()
    if isinstance(producer_id, int):
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    return _when_refilled(producer_id)


def _check_permission(context: RequestContext, transactional_id: str | None) -> None:
    """Raise KafkaError if the client may not have a producer id.

    An idempotent producer may have one if it may write to any topic (KIP-679). IDEMPOTENT_WRITE on
    the cluster is the older permission for it.
    """
    if transactional_id is not None:
        Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID).require(context, transactional_id)
    elif not context.authorize(
        Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME, is_filter=True
    ) and not context.authorize_any(Operation.WRITE, ResourceType.TOPIC):
        raise refusal(ResourceType.CLUSTER)


async def _initialize(
    context: RequestContext, transactional_id: str, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    expected = None
    if request.producer_id != -1:
        expected = request.producer_id, request.producer_epoch
    version = context.version
    coordinator = context.services.transactions
    try:
        producer_id, epoch = await coordinator.initialize(
            transactional_id, request.transaction_timeout_ms, expected
        )
        waiting = coordinator.visible(transactional_id)
        if waiting is not None:
            await waiting
    except KafkaError as error:
        return _refused(known_code(error.code, knows_fenced=version >= _FIRST_WITH_FENCED))
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)


async def _when_refilled(producer_id: Awaitable[int]) -> InitProducerIdResponse:
    try:
        return InitProducerIdResponse(producer_id=await producer_id, producer_epoch=0)
    except KafkaError as error:
        return _refused(error.code)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    """Return an answer without id and epoch. The epoch's default in the protocol is 0, which is
    one.
    """
    return InitProducerIdResponse(error_code=int(code), producer_epoch=-1)
