"""Heartbeat: key 12, versions 0-4.

Behaviour: keeps a member's session alive; answers REBALANCE_IN_PROGRESS while the others join. A
group that is being loaded answers that all is well.

Versions:
- 1: throttle time
- 3: static members (KIP-345)
- 4: flexible

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.handlers.common.group_members import manager_of
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatResponse

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest


def handle(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    """Always answered at once."""
    groups = context.services.groups
    group_id = request.group_id
    try:
        groups.classic.check_instance_id(request.group_instance_id)
        shard = groups.shard(group_id)
        code = manager_of(groups, shard, group_id).heartbeat(
            shard, group_id, request.member_id, request.group_instance_id, request.generation_id
        )
    except KafkaError as error:
        is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        code = ErrorCode.NONE if is_loading else error.code
    return HeartbeatResponse(error_code=int(code))
