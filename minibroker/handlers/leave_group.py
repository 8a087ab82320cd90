"""LeaveGroup: key 13, versions 0-5.

Behaviour: members go, or an admin client removes them, static ones also by their names; one
rebalance for all of them. A group that is not there has none of the members.
Versions: 1 throttle time; 3 several members, static names (KIP-345); 4 flexible; 5 reason
(KIP-800).
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.errors import KafkaError
from minibroker.groups.classic.sessions import Leaving
from minibroker.handlers.group_members import manager_of
from minibroker.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.protocol.messages.leave_group import LeaveGroupRequest

_SEVERAL_SINCE = 3


def handle(context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Always answered at once."""
    groups = context.services.groups
    group_id = request.group_id
    if context.version >= _SEVERAL_SINCE:
        leaving = [
            Leaving(one.member_id, one.group_instance_id, one.reason or "")
            for one in request.members
        ]
    else:
        leaving = [Leaving(request.member_id, None)]
    try:
        shard = groups.shard(group_id)
        codes = manager_of(groups, shard, group_id).leave(shard, group_id, leaving)
    except KafkaError as error:
        return LeaveGroupResponse(error_code=int(error.code))
    if context.version < _SEVERAL_SINCE:
        return LeaveGroupResponse(error_code=int(codes[0]))
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=one.member_id, group_instance_id=one.instance_id, error_code=int(code)
            )
            for one, code in zip(leaving, codes, strict=True)
        ]
    )
