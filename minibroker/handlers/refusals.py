"""The APIs of security that are refused while the broker has no security: one table.

Every listener is PLAINTEXT and there is no authorizer, so Kafka refuses these requests whatever
they ask. Each row of `REFUSALS` says how Kafka 3.9 and 4.4 word it. An API that gets served leaves
the table and becomes a module of its own.

- DescribeAcls, CreateAcls, DeleteAcls: SECURITY_DISABLED, as there is no authorizer.
- The four APIs of delegation tokens (KIP-48): DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as a client has
  to authenticate before it may have a token.
- SaslHandshake, SaslAuthenticate: ILLEGAL_SASL_STATE, as a PLAINTEXT listener authenticates nobody.

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.error_codes import ErrorCode
from minibroker.errors import ProtocolError
from minibroker.protocol.api_keys import (
    APIS,
    CREATE_ACLS,
    CREATE_DELEGATION_TOKEN,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    load_messages,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext

_UNKNOWN: Final = 0
"""Kafka's code UNKNOWN of a resource, pattern, operation or permission; it ends the connection."""
_NO_TIME: Final = -1
_REQUESTER_VERSION: Final = 3
"""First version of CreateDelegationToken whose response names the requester (KIP-373)."""


class Entries(NamedTuple):
    """The names of a request with many entries, each of which is refused by itself."""

    asked: str
    """The request's list."""
    answered: str
    """The response's list."""
    result: str
    """The class of the response's entries."""


class Refusal(NamedTuple):
    """How one API is refused."""

    code: ErrorCode
    message: str | None = None
    """The error message, None where the response has no place for it."""
    fields: dict[str, Any] | None = None
    """Further fields of the response."""
    acl_codes: tuple[str, ...] = ()
    """Fields of the request, or of its entries, whose value may not be UNKNOWN."""
    entries: Entries | None = None


_NO_TOKENS: Final = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
_FILTER_CODES: Final = (
    "resource_type_filter",
    "pattern_type_filter",
    "operation",
    "permission_type",
)

REFUSALS: Final[dict[int, Refusal]] = {
    SASL_HANDSHAKE: Refusal(ErrorCode.ILLEGAL_SASL_STATE),
    DESCRIBE_ACLS: Refusal(
        ErrorCode.SECURITY_DISABLED,
        "No Authorizer is configured on the broker",
        acl_codes=_FILTER_CODES,
    ),
    CREATE_ACLS: Refusal(
        ErrorCode.SECURITY_DISABLED,
        "No Authorizer is configured.",
        acl_codes=("resource_type", "resource_pattern_type", "operation", "permission_type"),
        entries=Entries("creations", "results", "AclCreationResult"),
    ),
    DELETE_ACLS: Refusal(
        ErrorCode.SECURITY_DISABLED,
        "No Authorizer is configured.",
        acl_codes=_FILTER_CODES,
        entries=Entries("filters", "filter_results", "DeleteAclsFilterResult"),
    ),
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
    """Return the refusal. Raises ProtocolError for an ACL code that is UNKNOWN."""
    key = context.api_key
    refusal = REFUSALS[key]
    entries = [request] if refusal.entries is None else getattr(request, refusal.entries.asked)
    if any(getattr(entry, name) == _UNKNOWN for entry in entries for name in refusal.acl_codes):
        raise ProtocolError(f"{APIS[key].name} has a code that stands for nothing")
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
    """Return the response with the code at its top, or in each entry where it has entries."""
    key = request.API_KEY
    _, response_class = load_messages(key)
    entries = REFUSALS[key].entries
    if entries is None:
        response = response_class(error_code=int(code))
        if detail is not None and "error_message" in response_class.__slots__:
            response.error_message = detail
        return response
    messages = import_module(f"minibroker.protocol.messages.{APIS[key].module}")
    result = getattr(messages, entries.result)
    refused = [
        result(error_code=int(code), error_message=detail) for _ in getattr(request, entries.asked)
    ]
    return response_class(**{entries.answered: refused})
