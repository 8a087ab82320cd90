"""RenewDelegationToken: key 39, versions 0-2.

Behaviour: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: the API makes a token live longer
and asks that the client has proved who it is, which nobody can on a PLAINTEXT listener.
Versions: 2 flexible. Source: KIP-48.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext

_NO_TIME: Final = -1


def handle(
    context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """The refusal."""
    return RenewDelegationTokenResponse(
        error_code=int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        expiry_timestamp_ms=_NO_TIME,
    )
