"""ListGroups: key 16, versions 0-5.

Behaviour: every group that is coordinated here, of every kind, also those that only store offsets.
Filters are compared without regard to case.

Versions:
- 1: throttle time
- 3: flexible
- 4: states (KIP-518)
- 5: types (KIP-848)

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.list_groups import ListedGroup, ListGroupsResponse

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.list_groups import ListGroupsRequest


def handle(context: RequestContext, request: ListGroupsRequest) -> Steps[ListGroupsResponse]:
    """Return the groups that the client may describe; an error while some are loaded."""
    groups = context.services.groups
    sees_all = context.authorize(
        Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME, is_filter=True
    )
    visible = Allowed(context, Operation.DESCRIBE, ResourceType.GROUP, is_filter=True)
    if groups.journal.is_loading:
        return ListGroupsResponse(error_code=int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    states = frozenset(state.strip().lower() for state in request.states_filter)
    types = frozenset(name.lower() for name in request.types_filter)
    response = ListGroupsResponse()
    for shard in groups.active_shards():
        for group in list(shard.groups.values()):
            yield
            if (
                (not states or group.is_in_state(states))
                and (not types or group.type_name in types)
                and (sees_all or group.group_id in visible)
            ):
                response.groups.append(
                    ListedGroup(
                        group_id=group.group_id,
                        protocol_type=group.protocol_type or "",
                        group_state=group.state_name,
                        group_type=group.type_name,
                    )
                )
    return response
