"""RenewDelegationToken: key 39, versions 0-2.

Behaviour: gives a token a later end; its owner and its renewers may. The HMAC names the token.

Versions:
- 2: flexible

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.handlers.common.tokens import change_end
from minibroker.kafka.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.kafka.protocol.messages.renew_delegation_token import (
        RenewDelegationTokenRequest,
    )


async def handle(
    context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Return the token's end, or a refusal."""
    hmac, period_ms = bytes(request.hmac), request.renew_period_ms
    error, ends_ms = await change_end(
        context, lambda tokens: tokens.renew(context.principal, hmac, period_ms)
    )
    return RenewDelegationTokenResponse(error_code=int(error), expiry_timestamp_ms=ends_ms)
