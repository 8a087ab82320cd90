"""The APIs of security that are refused while the broker has no security: one table.

Every listener is PLAINTEXT, so Kafka refuses these requests whatever
they ask. Each row of `REFUSALS` says how Kafka 3.9 and 4.4 word it. An API that gets served leaves
the table and becomes a module of its own.

- The four APIs of delegation tokens (KIP-48): DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as a client has
  to authenticate before it may have a token.
- SaslHandshake, SaslAuthenticate: ILLEGAL_SASL_STATE, as a PLAINTEXT listener authenticates nobody,
  and the gate of a SASL listener has taken them before they come here (`server/sasl_gate.py`).

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.error_codes import ErrorCode
from minibroker.protocol.api_keys import (
    CREATE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    load_messages,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext

_NO_TIME: Final = -1
_REQUESTER_VERSION: Final = 3
"""First version of CreateDelegationToken whose response names the requester (KIP-373)."""


class Refusal(NamedTuple):
    """How one API is refused."""

    code: ErrorCode
    message: str | None = None
    """The error message, None where the response has no place for it."""
    fields: dict[str, Any] | None = None
    """Further fields of the response."""


_NO_TOKENS: Final = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
REFUSALS: Final[dict[int, Refusal]] = {
    SASL_HANDSHAKE: Refusal(ErrorCode.ILLEGAL_SASL_STATE),
    SASL_AUTHENTICATE: Refusal(
        ErrorCode.ILLEGAL_SASL_STATE,
        "SaslAuthenticate request received after successful authentication",
    ),
    CREATE_DELEGATION_TOKEN: Refusal(
        _NO_TOKENS,
        fields={
            "issue_timestamp_ms": _NO_TIME,
            "expiry_timestamp_ms": _NO_TIME,
            "max_timestamp_ms": _NO_TIME,
        },
    ),
    RENEW_DELEGATION_TOKEN: Refusal(_NO_TOKENS, fields={"expiry_timestamp_ms": _NO_TIME}),
    EXPIRE_DELEGATION_TOKEN: Refusal(_NO_TOKENS, fields={"expiry_timestamp_ms": _NO_TIME}),
    DESCRIBE_DELEGATION_TOKEN: Refusal(_NO_TOKENS),
}
"""API key → how it is refused."""


def handle(context: RequestContext, request: Any) -> Any:
    """Return the refusal."""
    key = context.api_key
    refusal = REFUSALS[key]
    response = error_response(request, context.version, refusal.code, refusal.message)
    for name, value in (refusal.fields or {}).items():
        setattr(response, name, value)
    if key == CREATE_DELEGATION_TOKEN:
        _name_principals(context, request, response)
    return response


def _name_principals(context: RequestContext, request: Any, response: Any) -> None:
    """Write into the response who asked for a token, and who would have owned it."""
    requester_type, _, requester_name = context.principal.partition(":")
    response.principal_type, response.principal_name = requester_type, requester_name
    if request.owner_principal_name:
        response.principal_type = request.owner_principal_type or ""
        response.principal_name = request.owner_principal_name
    if context.version >= _REQUESTER_VERSION:
        response.token_requester_principal_type = requester_type
        response.token_requester_principal_name = requester_name


def error_response(request: Any, version: int, code: ErrorCode, detail: str | None) -> Any:
    """Return the response with the code."""
    _, response_class = load_messages(request.API_KEY)
    response = response_class(error_code=int(code))
    if detail is not None and "error_message" in response_class.__slots__:
        response.error_message = detail
    return response
