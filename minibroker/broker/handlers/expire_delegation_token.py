"""ExpireDelegationToken: key 40, versions 0-2.

Behaviour: gives a token another end, or removes it (a negative period); its owner and its
renewers may. The HMAC names the token.

Versions:
- 2: flexible

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.handlers.common.tokens import change_end
from minibroker.kafka.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.kafka.protocol.messages.expire_delegation_token import (
        ExpireDelegationTokenRequest,
    )


async def handle(
    context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Return the token's end, or a refusal."""
    hmac, period_ms = bytes(request.hmac), request.expiry_time_period_ms
    error, ends_ms = await change_end(
        context, lambda tokens: tokens.expire(context.principal, hmac, period_ms)
    )
    return ExpireDelegationTokenResponse(error_code=int(error), expiry_timestamp_ms=ends_ms)
