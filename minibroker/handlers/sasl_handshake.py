"""SaslHandshake: key 17, versions 0-1.

Behaviour: ILLEGAL_SASL_STATE: on a PLAINTEXT listener nobody is asked who he is.
Versions: 1 the exchange goes on in SaslAuthenticate (KIP-152).
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext


def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """The refusal."""
    return SaslHandshakeResponse(error_code=int(ErrorCode.ILLEGAL_SASL_STATE))
