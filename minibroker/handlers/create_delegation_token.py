"""CreateDelegationToken: key 38, versions 0-3.

Behaviour: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: a token is given to a client that has proved who it
is, which nobody can on a PLAINTEXT listener. The answer repeats who would have owned it.
Versions: 2 flexible; 3 owner and requester (KIP-373). Source: KIP-48.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext

_NO_TIME: Final = -1


def handle(
    context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """The refusal."""
    requester_type, _, requester_name = context.principal.partition(":")
    owner_type, owner_name = requester_type, requester_name
    if request.owner_principal_name:
        owner_type = request.owner_principal_type or ""
        owner_name = request.owner_principal_name
    response = CreateDelegationTokenResponse(
        error_code=int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp_ms=_NO_TIME,
        expiry_timestamp_ms=_NO_TIME,
        max_timestamp_ms=_NO_TIME,
    )
    if context.version >= 3:
        response.token_requester_principal_type = requester_type
        response.token_requester_principal_name = requester_name
    return response
