"""Bit fields of authorized operations: all of a type without an authorizer.

Source: KIP-430; Kafka AclOperation (bit = code of the operation), AclEntry (operations per type of
resource), AuthHelper.authorizedOperations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.security.acls import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    Operation,
    ResourceType,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext

ALL_OPERATIONS: Final = {
    resource_type: sum(1 << operation for operation in operations)
    for resource_type, operations in SUPPORTED_OPERATIONS.items()
}
"""Type of resource → every operation that its answers may name."""


def operations_of(context: RequestContext, resource_type: ResourceType, name: str) -> int:
    """Return the operations that the client may do to the resource."""
    authorizer = context.services.authorizer
    if authorizer is None:
        return ALL_OPERATIONS[resource_type]
    return authorizer.operations(context.principal, context.host, resource_type, name)


def operations_of_cluster(context: RequestContext) -> int:
    """Return the operations that the client may do to the cluster; none if it may not describe
    it.
    """
    if not context.authorize(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return operations_of(context, ResourceType.CLUSTER, CLUSTER_NAME)
