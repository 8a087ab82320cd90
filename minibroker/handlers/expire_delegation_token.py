"""ExpireDelegationToken: key 40, versions 0-2.

Behaviour: gives a token another end, or removes it (a negative period); its owner and its
renewers may. The HMAC names the token.
Versions: 2 flexible.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.errors import KafkaError
from minibroker.handlers.token_requests import check_client, tokens_of
from minibroker.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.handlers.context import RequestContext
    from minibroker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
    from minibroker.security.token_store import TokenStore

_NO_TIME: Final = -1


def handle(
    context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse | Awaitable[ExpireDelegationTokenResponse]:
    """Return a refusal, or an awaitable of the token's end."""
    try:
        check_client(context)
        tokens = tokens_of(context)
    except KafkaError as error:
        return ExpireDelegationTokenResponse(
            error_code=int(error.code), expiry_timestamp_ms=_NO_TIME
        )
    return _expire(tokens, context.principal, request)


async def _expire(
    tokens: TokenStore, principal: str, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    try:
        ends_ms = await tokens.expire(principal, bytes(request.hmac), request.expiry_time_period_ms)
    except KafkaError as error:
        return ExpireDelegationTokenResponse(
            error_code=int(error.code), expiry_timestamp_ms=_NO_TIME
        )
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=ends_ms)
