"""CreateDelegationToken: key 38, versions 0-3.

Behaviour: makes a token for the client, or for an owner whose tokens it may create. An answer with
an error names the principals, too.

Versions:
- 2: flexible
- 3: owner and requester (KIP-373)

Differs from Kafka: a token whose node would have more than 1 MB is UNKNOWN_SERVER_ERROR. With
ZooKeeper Kafka never answers, and its connection to ZooKeeper ends again and again.
"""

from __future__ import annotations

from functools import partial
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
    from collections.abc import Awaitable, Callable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.security.token_store import KnownToken
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.create_delegation_token import (
        CreateDelegationTokenRequest,
    )

_USER: Final = "User"


def handle(
    context: RequestContext, request: CreateDelegationTokenRequest
) -> Steps[CreateDelegationTokenResponse | Awaitable[CreateDelegationTokenResponse]]:
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
        renewers = yield from _renewers(request)
        tokens = tokens_of(context)
    except KafkaError as error:
        response.error_code = int(error.code)
        return response
    create = partial(tokens.create, owner, requester, renewers, request.max_lifetime_ms)
    return _created(create, response)


def _renewers(request: CreateDelegationTokenRequest) -> Steps[list[str]]:
    """Return the principals that may renew the token. Raises KafkaError for one that is no user."""
    renewers = []
    for renewer in request.renewers:
        if renewer.principal_type != _USER:
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        renewers.append(f"{_USER}:{renewer.principal_name}")
        yield
    return renewers


async def _created(
    create: Callable[[], Awaitable[KnownToken]], response: CreateDelegationTokenResponse
) -> CreateDelegationTokenResponse:
    """Return the response with the token that `create` makes, or with its refusal."""
    try:
        token = await create()
    except KafkaError as error:
        response.error_code = int(error.code)
        return response
    response.issue_timestamp_ms = token.token.issued_ms
    response.expiry_timestamp_ms = token.token.expires_ms
    response.max_timestamp_ms = token.token.max_ms
    response.token_id, response.hmac = token.token.id, token.hmac
    return response
