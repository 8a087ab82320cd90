"""AlterClientQuotas: key 49, versions 0-1.

Behaviour: sets and removes the quotas of users, of client ids, of both together, and of IPs. Each
entity gets its own result. `validate_only` does everything but the change. A change acts on open
connections at once. An entity whose last quota is removed leaves the tree.

Versions:
- 1: flexible

Source: KIP-546, KIP-612 (IPs).

Differs from Kafka: a value of 0 or less is refused, as in Kafka 4; 3.9 stores it. If a request
names an entity or a key twice, the later value wins, as in 3.9; Kafka 4 refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.quotas.entities import IP, Entity, changes_of, node_of, parts
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, as_answer
from minibroker.kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    ResponseEntryData,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.kafka.protocol.messages.alter_client_quotas import RequestEntryData


async def handle(
    context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """Return one result per entity, in the order of the request."""
    response = AlterClientQuotasResponse()
    turn = TimeSlice()
    for entry in request.entries:
        entity: Entity = {part.entity_type: part.entity_name for part in entry.entity}
        answer = ResponseEntryData(
            error_message=None,
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts(entity)],
        )
        response.entries.append(answer)
        try:
            await _alter(context, entry, entity, validate_only=request.validate_only)
        except Exception as error:
            answer.error_code, answer.error_message = as_answer(error, f"quotas of {entity}")
        if turn.is_over:
            await turn.pause()
    return response


async def _alter(
    context: RequestContext, entry: RequestEntryData, entity: Entity, *, validate_only: bool
) -> None:
    node = node_of(entity)
    if entity.get(IP) is not None:
        await _check_host(context, str(entity[IP]))
    operations = [(op.key, None if op.remove else op.value) for op in entry.ops]
    changes = changes_of(operations, node.key_types)
    if not validate_only:
        await context.services.cluster.alter_config(node.entity_type, node.entity_name, changes)


async def _check_host(context: RequestContext, name: str) -> None:
    """Raise KafkaError if `name` is neither an address nor a host name that resolves."""
    try:
        await context.services.resolver.addresses(name)
    except (OSError, UnicodeError) as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{name} is not a valid IP or resolvable host."
        ) from error
