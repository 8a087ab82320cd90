"""DescribeAcls: key 29, versions 0-3.

Behaviour: SECURITY_DISABLED, as there is no authorizer; so does Kafka without one.
Versions: 1 pattern types (KIP-290); 2 flexible; 3 users as resources (KIP-373).
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.errors import ProtocolError
from minibroker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext

_UNKNOWN: Final = 0
"""Code of the resource, operation or permission that is none; Kafka reads no further."""


def handle(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the refusal. Raises ProtocolError for a code that stands for nothing."""
    if _UNKNOWN in (
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    ):
        raise ProtocolError("DescribeAcls has a code that stands for nothing")
    return DescribeAclsResponse(
        error_code=int(ErrorCode.SECURITY_DISABLED),
        error_message="No Authorizer is configured on the broker",
    )
