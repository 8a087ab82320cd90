"""FindCoordinator: key 10, versions 0-6.

Behaviour: the broker that coordinates a group or a transactional id is the one that leads the
partition of `__consumer_offsets` or `__transaction_state` to which the id's hash points. The topic
is created by the first who asks.

Versions:
- 1: transactional ids, throttle time, a message
- 3: flexible
- 4: many keys in one request (KIP-699)
- 5: TRANSACTION_ABORTABLE
- 6: keys of share groups

Differs from Kafka: the controller's answer that had to create the topic names the coordinator.
Kafka says COORDINATOR_NOT_AVAILABLE until the topic is there, as our other brokers do, and the
client asks again after its back-off.
Share groups are not served, so their keys are INVALID_REQUEST, as in Kafka 3.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.common.leaders import endpoint_of
from minibroker.broker.handlers.common.permissions import REFUSALS, Allowed
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.slices import gather, run_with_pauses
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from minibroker.kafka.protocol.refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.journal import Journal
    from minibroker.broker.slices import Steps

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
RESOURCE_TYPES: Final = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}
_FIRST_BATCHED: Final = 4
_NO_BROKER: Final = (-1, "", -1)


def handle(
    context: RequestContext, request: FindCoordinatorRequest
) -> Steps[FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]]:
    """Answer from the image, or create the topic first."""
    key_type = request.key_type
    if key_type == SHARE:
        return error_response(request, context.version, ErrorCode.INVALID_REQUEST, None)
    if key_type not in (GROUP, TRANSACTION):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unknown coordinator type received: {key_type}"
        )
    may_describe = Allowed(context, Operation.DESCRIBE, RESOURCE_TYPES[key_type])
    keys = [request.key] if context.version < _FIRST_BATCHED else request.coordinator_keys
    keys = yield from may_describe.refused_last(keys, str)
    if not keys or keys[0] not in may_describe:  # no topic is created for this client
        code = REFUSALS[RESOURCE_TYPES[key_type]]
        if context.version < _FIRST_BATCHED:
            return error_response(request, context.version, code, None)
        refused = yield from gather(_error(key, code) for key in request.coordinator_keys)
        return FindCoordinatorResponse(coordinators=refused)
    services = context.services
    journal = services.groups.journal if key_type == GROUP else services.transactions.journal
    topic = services.cluster.image.topics.get(journal.topic)
    if topic is None:
        return _create_and_respond(context, request, journal, may_describe)
    return (yield from _respond(context, request, journal, topic, may_describe))


async def _create_and_respond(
    context: RequestContext,
    request: FindCoordinatorRequest,
    journal: Journal,
    may_describe: Allowed,
) -> FindCoordinatorResponse:
    topic = await journal.ensure_topic()
    return await run_with_pauses(_respond(context, request, journal, topic, may_describe))


def _respond(
    context: RequestContext,
    request: FindCoordinatorRequest,
    journal: Journal,
    topic: TopicImage,
    may_describe: Allowed,
) -> Steps[FindCoordinatorResponse]:
    if context.version >= _FIRST_BATCHED:
        coordinators = yield from gather(
            _find(context, key, journal, topic)
            if key in may_describe
            else _error(key, REFUSALS[RESOURCE_TYPES[request.key_type]])
            for key in request.coordinator_keys
        )
        return FindCoordinatorResponse(coordinators=coordinators)
    result = _find(context, request.key, journal, topic)
    if result.error_code:
        return error_response(request, context.version, ErrorCode(result.error_code), None)
    return FindCoordinatorResponse(
        error_message=_NONE_MESSAGE, node_id=result.node_id, host=result.host, port=result.port
    )


def _find(context: RequestContext, key: str, journal: Journal, topic: TopicImage) -> Coordinator:
    """Return the leader of the partition of `key`, with the address for this client."""
    leader = topic.partitions[journal.partition_of(key)].leader
    broker = context.services.cluster.image.brokers.get(leader)
    address = None if broker is None else endpoint_of(context, broker)
    if broker is None or address is None:
        return _error(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key=key, node_id=broker.id, host=address.host, port=address.port)


def _error(key: str, code: ErrorCode) -> Coordinator:
    node_id, host, port = _NO_BROKER
    return Coordinator(key=key, node_id=node_id, host=host, port=port, error_code=int(code))


_NONE_MESSAGE: Final = "NONE"
"""Kafka's message in versions 1-3 for success."""


def error_response(
    request: FindCoordinatorRequest, version: int, code: ErrorCode, detail: str | None
) -> FindCoordinatorResponse:
    """Return the code at the top, or from version 4 on for each key, and always a text."""
    text = detail or ("" if version >= _FIRST_BATCHED else code.name)
    response: FindCoordinatorResponse = refusal(request, version, code, text)
    return response
