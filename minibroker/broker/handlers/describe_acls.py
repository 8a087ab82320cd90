"""DescribeAcls: key 29, versions 0-3.

Behaviour: returns the ACLs that match a filter, by resource. Without an authorizer the answer is
SECURITY_DISABLED.

Versions:
- 0: literal patterns only
- 1: pattern types (KIP-290)
- 2: flexible
- 3: resource type USER

Differs from Kafka: resources and ACLs are sorted; Kafka has them in the order of a hash table.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from minibroker.broker.handlers.common.acl_codes import check_filter, filter_of
from minibroker.broker.handlers.common.permissions import DESCRIBE_CLUSTER
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.kafka.protocol.messages.describe_acls import DescribeAclsRequest


def handle(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the ACLs that the filter asks for. Raises ProtocolError for a filter of no client,
    KafkaError.
    """
    check_filter(request, context.version)
    DESCRIBE_CLUSTER.check(context, request)
    authorizer = context.services.authorizer
    if authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    acls_found = authorizer.find(filter_of(request, context.version))
    response = DescribeAclsResponse()
    for pattern, acls in groupby(acls_found, key=lambda acl: acl.pattern):
        resource = DescribeAclsResource(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            pattern_type=pattern.pattern_type,
        )
        for _, entry in acls:
            resource.acls.append(
                AclDescription(
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission,
                )
            )
        response.resources.append(resource)
    return response
