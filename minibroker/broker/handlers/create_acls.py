"""CreateAcls: key 30, versions 0-3.

Behaviour: adds ACLs; one that stands already is added again without effect. Each has a result of
its own. SECURITY_DISABLED without an authorizer.

Versions:
- 0: literal patterns only
- 1: pattern types (KIP-290)
- 2: flexible
- 3: resource type USER

Differs from Kafka: a resource whose name cannot be a node of the tree (`a//b`, `..`) is refused
with UNKNOWN_SERVER_ERROR, as in Kafka 3.9; StandardAuthorizer of KRaft takes any name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.features import METADATA_VERSION
from minibroker.broker.handlers.common.acl_codes import acl_of, check_creation
from minibroker.broker.handlers.common.permissions import ALTER_CLUSTER
from minibroker.broker.security.acls import CLUSTER_NAME, ResourceType
from minibroker.broker.slices import TimeSlice, collect, gather
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.create_acls import AclCreationResult, CreateAclsResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.security.acl_entries import Acl
    from minibroker.broker.security.authorizer import Authorizer
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.create_acls import CreateAclsRequest

_WITH_NETWORKS = 32
"""Metadata version of 4.4, from which on the host of an ACL may be a network."""


def handle(
    context: RequestContext, request: CreateAclsRequest
) -> Steps[Awaitable[CreateAclsResponse]]:
    """Add the ACLs; return an awaitable of their results. Raises ProtocolError for an ACL of no
    client, KafkaError.
    """
    for creation in request.creations:
        check_creation(creation, context.version)
        yield
    ALTER_CLUSTER.check(context, request)
    authorizer = context.services.authorizer
    if authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    acls = yield from gather(acl_of(creation) for creation in request.creations)
    return _create(context, authorizer, acls)


async def _create(
    context: RequestContext, authorizer: Authorizer, acls: list[Acl]
) -> CreateAclsResponse:
    level = context.services.features.level(METADATA_VERSION)
    refused = await collect(_refusal_of(acl) for acl in acls)
    valid = [acl for acl, error in zip(acls, refused, strict=True) if error is None]
    created = iter(await authorizer.create(valid, allows_networks=level >= _WITH_NETWORKS))
    results = []
    turn = TimeSlice()
    for refusal in refused:
        if turn.is_over:
            await turn.pause()
        error = refusal or next(created)
        result = AclCreationResult()
        if error is not None:
            result.error_code = int(error.code)
            result.error_message = error.detail
        results.append(result)
    return CreateAclsResponse(results=results)


def _refusal_of(acl: Acl) -> KafkaError | None:
    """Return what both authorizers have against an ACL, None if they may take it."""
    pattern = acl.pattern
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        return KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}",
        )
    if not pattern.name:
        return KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
    return None
