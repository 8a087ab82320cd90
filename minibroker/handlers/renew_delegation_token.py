"""RenewDelegationToken: key 39, versions 0-2.

Behaviour: gives a token a later end; its owner and its renewers may. The HMAC names the token.
Versions: 2 flexible.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.errors import KafkaError
from minibroker.handlers.token_requests import check_client, tokens_of
from minibroker.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.handlers.context import RequestContext
    from minibroker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
    from minibroker.security.token_store import TokenStore

_NO_TIME: Final = -1


def handle(
    context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse | Awaitable[RenewDelegationTokenResponse]:
    """Return a refusal, or an awaitable of the token's end."""
    try:
        check_client(context)
        tokens = tokens_of(context)
    except KafkaError as error:
        return RenewDelegationTokenResponse(
            error_code=int(error.code), expiry_timestamp_ms=_NO_TIME
        )
    return _renew(tokens, context.principal, request)


async def _renew(
    tokens: TokenStore, principal: str, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    try:
        ends_ms = await tokens.renew(principal, bytes(request.hmac), request.renew_period_ms)
    except KafkaError as error:
        return RenewDelegationTokenResponse(
            error_code=int(error.code), expiry_timestamp_ms=_NO_TIME
        )
    return RenewDelegationTokenResponse(expiry_timestamp_ms=ends_ms)
