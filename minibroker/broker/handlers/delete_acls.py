"""DeleteAcls: key 31, versions 0-3.

Behaviour: removes the ACLs that match a filter and returns them, for each filter of the request.
An ACL that matches several filters is in the first of them with AclAuthorizer, in all of them with
StandardAuthorizer. SECURITY_DISABLED without an authorizer.

Versions:
- 0: literal patterns only
- 1: pattern types (KIP-290)
- 2: flexible
- 3: resource type USER

Differs from Kafka: ACLs are sorted; Kafka has them in the order of a hash table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.handlers.common.acl_codes import check_filter, filter_of
from minibroker.broker.handlers.common.permissions import ALTER_CLUSTER
from minibroker.broker.slices import TimeSlice, collect, gather
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.security.acl_entries import Acl, AclFilter
    from minibroker.broker.security.authorizer import Authorizer
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.delete_acls import DeleteAclsRequest


def handle(
    context: RequestContext, request: DeleteAclsRequest
) -> Steps[Awaitable[DeleteAclsResponse]]:
    """Remove the ACLs; return an awaitable of them. Raises ProtocolError for a filter of no client,
    KafkaError.
    """
    for acl_filter in request.filters:
        check_filter(acl_filter, context.version)
        yield
    ALTER_CLUSTER.check(context, request)
    authorizer = context.services.authorizer
    if authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    filters = yield from gather(
        filter_of(acl_filter, context.version) for acl_filter in request.filters
    )
    return _delete(authorizer, filters)


async def _delete(authorizer: Authorizer, filters: list[AclFilter]) -> DeleteAclsResponse:
    results = await collect(_result_of_unknown(acl_filter, authorizer) for acl_filter in filters)
    usable = [
        acl_filter for acl_filter, result in zip(filters, results, strict=True) if result is None
    ]
    deleted = iter(await authorizer.delete(usable))
    response = DeleteAclsResponse()
    turn = TimeSlice()
    for refusal in results:
        if turn.is_over:
            await turn.pause()
        result = refusal
        if result is None:
            result = DeleteAclsFilterResult(error_message=None)
            result.matching_acls = [_matching(acl, error) for acl, error in next(deleted)]
        response.filter_results.append(result)
    return response


def _result_of_unknown(
    acl_filter: AclFilter, authorizer: Authorizer
) -> DeleteAclsFilterResult | None:
    """Return the refusal of a filter with a code of a later Kafka, None for any other filter.

    AclAuthorizer finds nothing by it and refuses nothing.
    """
    if not authorizer.is_standard:
        return None
    reason = None
    if acl_filter.is_pattern_unknown:
        reason = "Unknown patternFilter."
    elif acl_filter.is_entry_unknown:
        reason = "Unknown entryFilter."
    if reason is None:
        return None
    return DeleteAclsFilterResult(error_code=int(ErrorCode.INVALID_REQUEST), error_message=reason)


def _matching(acl: Acl, error: KafkaError | None) -> DeleteAclsMatchingAcl:
    pattern, entry = acl
    return DeleteAclsMatchingAcl(
        error_code=0 if error is None else int(error.code),
        error_message=None if error is None else error.detail,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
