"""CreateAcls: key 30, versions 0-3.

Behaviour: SECURITY_DISABLED for each, as there is no authorizer; so does Kafka without one.
Versions: 1 pattern types (KIP-290); 2 flexible; 3 users as resources (KIP-373).
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.errors import ProtocolError
from minibroker.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext

_UNKNOWN: Final = 0
"""Code of the resource, operation or permission that is none; Kafka reads no further."""


def handle(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Return one refusal per entry. Raises ProtocolError for a code that stands for nothing."""
    if any(
        _UNKNOWN
        in (one.resource_type, one.resource_pattern_type, one.operation, one.permission_type)
        for one in request.creations
    ):
        raise ProtocolError("CreateAcls has a code that stands for nothing")
    return error_response(
        request, context.version, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured."
    )


def error_response(
    request: CreateAclsRequest, version: int, code: ErrorCode, detail: str | None
) -> CreateAclsResponse:
    """The code for every entry of the request."""
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=int(code), error_message=detail) for _ in request.creations
        ]
    )
