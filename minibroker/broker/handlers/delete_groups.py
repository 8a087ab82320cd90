"""DeleteGroups: key 42, versions 0-3.

Behaviour: an empty group goes with all its offsets (KIP-229); one with members stays.

Versions:
- 1: throttle after the answer
- 2: flexible
- 3: error messages (KIP-1331)

Differs from Kafka: nothing known.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.slices import complete_in_slices
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.kafka.protocol.messages.delete_groups import DeleteGroupsRequest

    Waits = list[tuple[DeletableGroupResult, Awaitable[None]]]

logger = logging.getLogger(__name__)


def handle(
    context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | Awaitable[DeleteGroupsResponse]:
    """Return one result per group, a future of them where a group has many offsets.

    A group that is named twice is deleted once.
    """
    response = DeleteGroupsResponse()
    waits: Waits = []
    deletion = complete_in_slices(_delete_groups(context, request, response, waits))
    if deletion is not None:
        return _when_deleted(deletion, waits, response)
    return _when_visible(waits, response) if waits else response


async def _when_deleted(
    deletion: Awaitable[None], waits: Waits, response: DeleteGroupsResponse
) -> DeleteGroupsResponse:
    await deletion
    return await _when_visible(waits, response)


async def _when_visible(waits: Waits, response: DeleteGroupsResponse) -> DeleteGroupsResponse:
    for result, waiting in waits:
        try:
            await waiting
        except KafkaError as error:
            result.error_code = int(error.code)
    return response


def _delete_groups(
    context: RequestContext,
    request: DeleteGroupsRequest,
    response: DeleteGroupsResponse,
    waits: Waits,
) -> Iterator[None]:
    """Delete the groups; `waits` gets those whose tombstones have to be synced first."""
    may_delete = Allowed(context, Operation.DELETE, ResourceType.GROUP)
    names = dict.fromkeys(request.groups_names)
    for group_id in (yield from may_delete.refused_last(names, str)):
        yield
        result = DeletableGroupResult(group_id=group_id)
        response.results.append(result)
        count = 0
        try:
            may_delete.require(group_id)
            for deleted in context.services.groups.delete_group(group_id):
                count += deleted
                yield
        except KafkaError as error:
            result.error_code = int(error.code)
        else:
            logger.info("group %s and its %d offsets are deleted", group_id, count)
            waiting = context.services.groups.visible(group_id)
            if waiting is not None:
                waits.append((result, waiting))
