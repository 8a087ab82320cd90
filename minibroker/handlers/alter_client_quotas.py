"""AlterClientQuotas: key 49, versions 0-1.

Behaviour: sets and removes quotas of users, client ids, both together, and IPs; every entity is
answered by itself, `validate_only` does all but the change. A change acts on live connections at
once. An entity without a quota left goes from the tree.
Versions: 1 flexible. Source: KIP-546, KIP-612 (IPs).
Differs from Kafka: values that are not above 0 are refused as in Kafka 4; 3.9 stores them. An
entity or a key named twice: the later wins, as in 3.9; Kafka 4 refuses it.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, as_answer
from minibroker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    ResponseEntryData,
)
from minibroker.quotas.entities import IP, Entity, changes_of, node_of, parts

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.protocol.messages.alter_client_quotas import RequestEntryData


async def handle(
    context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """One answer per entity, in order."""
    response = AlterClientQuotasResponse()
    for entry in request.entries:
        entity: Entity = {one.entity_type: one.entity_name for one in entry.entity}
        answer = ResponseEntryData(
            error_message=None,
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts(entity)],
        )
        response.entries.append(answer)
        try:
            await _alter(context, entry, entity, validate_only=request.validate_only)
        except Exception as error:
            answer.error_code, answer.error_message = as_answer(error, f"quotas of {entity}")
    return response


async def _alter(
    context: RequestContext, entry: RequestEntryData, entity: Entity, *, validate_only: bool
) -> None:
    node = node_of(entity)
    if entity.get(IP) is not None:
        await _check_host(str(entity[IP]))
    operations = [(one.key, None if one.remove else one.value) for one in entry.ops]
    changes = changes_of(operations, node.key_types)
    if not validate_only:
        await context.services.cluster.alter_config(node.entity_type, node.entity_name, changes)


async def _check_host(name: str) -> None:
    """Raises KafkaError if `name` is neither an address nor the name of a host."""
    try:
        await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{name} is not a valid IP or resolvable host."
        ) from error


def error_response(
    request: AlterClientQuotasRequest, version: int, code: ErrorCode, detail: str | None
) -> AlterClientQuotasResponse:
    """The code for every entity of the request."""
    return AlterClientQuotasResponse(
        entries=[
            ResponseEntryData(
                error_code=int(code),
                error_message=detail,
                entity=[
                    EntityData(entity_type=one.entity_type, entity_name=one.entity_name)
                    for one in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )
