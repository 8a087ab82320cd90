"""ExpireDelegationToken: key 40, versions 0-2.

Behaviour: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: the API lets a token end sooner
and asks that the client has proved who it is, which nobody can on a PLAINTEXT listener.
Versions: 2 flexible. Source: KIP-48.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext

_NO_TIME: Final = -1


def handle(
    context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """The refusal."""
    return ExpireDelegationTokenResponse(
        error_code=int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        expiry_timestamp_ms=_NO_TIME,
    )
