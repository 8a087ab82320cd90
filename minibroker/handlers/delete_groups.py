"""DeleteGroups: key 42, versions 0-3.

Behaviour: an empty group goes with all its offsets (KIP-229); one with members stays.
Versions: 1 throttle after the answer; 2 flexible; 3 error messages (KIP-1331).
Differs from Kafka: nothing known.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.protocol.messages.delete_groups import DeleteGroupsRequest

logger = logging.getLogger(__name__)


def handle(context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """One result per group; a group that is named twice is deleted once."""
    response = DeleteGroupsResponse()
    for group_id in dict.fromkeys(request.groups_names):
        result = DeletableGroupResult(group_id=group_id)
        response.results.append(result)
        try:
            _delete(context, group_id)
        except KafkaError as error:
            result.error_code = int(error.code)
    return response


def _delete(context: RequestContext, group_id: str) -> None:
    shard = context.services.groups.shard(group_id, may_be_empty=True)
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    group.validate_delete()
    offsets = shard.tombstones_of(group_id)
    shard.delete([*offsets, *group.tombstones()])
    logger.info("group %s and its %d offsets are deleted", group_id, len(offsets))


def error_response(
    request: DeleteGroupsRequest, version: int, code: ErrorCode, detail: str | None
) -> DeleteGroupsResponse:
    """The code for every group of the request."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=int(code))
            for group_id in request.groups_names
        ]
    )
