"""The APIs that every client is refused: one table.

SaslHandshake and SaslAuthenticate get ILLEGAL_SASL_STATE: a listener without SASL authenticates
nobody, and the gate of a SASL listener has taken them before they come here
(`server/sasl_gate.py`). Each row of `REFUSALS` says how Kafka 3.9 and 4.4 word it. An API that gets
served leaves the table and becomes a module of its own.

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import SASL_AUTHENTICATE, SASL_HANDSHAKE
from minibroker.kafka.protocol.refusals import refusal

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext


class Refusal(NamedTuple):
    """How one API is refused."""

    code: ErrorCode
    message: str | None = None
    """The error message, None where the response has no place for it."""


REFUSALS: Final[dict[int, Refusal]] = {
    SASL_HANDSHAKE: Refusal(ErrorCode.ILLEGAL_SASL_STATE),
    SASL_AUTHENTICATE: Refusal(
        ErrorCode.ILLEGAL_SASL_STATE,
        "SaslAuthenticate request received after successful authentication",
    ),
}
"""API key → how it is refused."""


def handle(context: RequestContext, request: Any) -> Any:
    """Return the refusal."""
    code, message = REFUSALS[context.api_key]
    return refusal(request, context.version, code, message)
