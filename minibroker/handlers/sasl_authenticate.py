"""SaslAuthenticate: key 36, versions 0-2.

Behaviour: ILLEGAL_SASL_STATE: on a PLAINTEXT listener nobody is asked who he is.
Versions: 1 session lifetime (KIP-368); 2 flexible.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext


def handle(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """The refusal."""
    return SaslAuthenticateResponse(
        error_code=int(ErrorCode.ILLEGAL_SASL_STATE),
        error_message="SaslAuthenticate request received after successful authentication",
    )
