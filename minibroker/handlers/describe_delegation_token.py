"""DescribeDelegationToken: key 41, versions 0-3.

Behaviour: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: tokens are told to a client that has proved who it
is, which nobody can on a PLAINTEXT listener.
Versions: 2 flexible; 3 requester (KIP-373). Source: KIP-48.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext


def handle(
    context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """The refusal."""
    return DescribeDelegationTokenResponse(
        error_code=int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    )
