"""CreateDelegationToken: key 38, versions 0-3.

Behaviour: makes a token for the client, or for an owner whose tokens it may create. An answer with
an error names the principals, too.

Versions:
- 2: flexible
- 3: owner and requester (KIP-373)

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.common.tokens import (
    FIRST_WITH_REQUESTER,
    NO_TIME,
    check_client,
    tokens_of,
)
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.create_delegation_token import CreateDelegationTokenResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.security.token_store import TokenStore
    from minibroker.kafka.protocol.messages.create_delegation_token import (
        CreateDelegationTokenRequest,
    )

_USER: Final = "User"


def handle(
    context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse | Awaitable[CreateDelegationTokenResponse]:
    """Return a refusal, or an awaitable of the new token."""
    requester = owner = context.principal
    if request.owner_principal_name:
        if request.owner_principal_type is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka, which expects a type
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    response = CreateDelegationTokenResponse(
        issue_timestamp_ms=NO_TIME, expiry_timestamp_ms=NO_TIME, max_timestamp_ms=NO_TIME
    )
    response.principal_type, _, response.principal_name = owner.partition(":")
    if context.version >= FIRST_WITH_REQUESTER:
        kind, _, name = requester.partition(":")
        response.token_requester_principal_type = kind
        response.token_requester_principal_name = name
    try:
        check_client(context)
        if owner != requester and not context.authorize(
            Operation.CREATE_TOKENS, ResourceType.USER, owner
        ):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
        if any(renewer.principal_type != _USER for renewer in request.renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        tokens = tokens_of(context)
    except KafkaError as error:
        response.error_code = int(error.code)
        return response
    return _create(tokens, request, response, owner, requester)


async def _create(
    tokens: TokenStore,
    request: CreateDelegationTokenRequest,
    response: CreateDelegationTokenResponse,
    owner: str,
    requester: str,
) -> CreateDelegationTokenResponse:
    renewers = [f"{item.principal_type}:{item.principal_name}" for item in request.renewers]
    token = await tokens.create(owner, requester, renewers, request.max_lifetime_ms)
    response.issue_timestamp_ms = token.token.issued_ms
    response.expiry_timestamp_ms = token.token.expires_ms
    response.max_timestamp_ms = token.token.max_ms
    response.token_id, response.hmac = token.token.id, token.hmac
    return response
