"""LeaveGroup: key 13, versions 0-5.

Behaviour: members go, or an admin client removes them, static ones also by their names; one
rebalance for all of them. A group that is not there has none of the members.
Versions: 1 throttle time; 3 several members, static names (KIP-345); 4 flexible; 5 reason
(KIP-800).
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from minibroker.broker.groups.member_requests import Leaving
from minibroker.broker.handlers.group_members import AnswerWaiter, manager_of
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse

if TYPE_CHECKING:
    from minibroker.broker.handlers.context import RequestContext
    from minibroker.kafka.error_codes import ErrorCode
    from minibroker.kafka.protocol.messages.leave_group import LeaveGroupRequest

_SEVERAL_SINCE = 3


def handle(context: RequestContext, request: LeaveGroupRequest) -> Any:
    """Return the response, or a future of it until the members are out for good."""
    groups = context.services.groups
    group_id = request.group_id
    if context.version >= _SEVERAL_SINCE:
        leaving = [
            Leaving(member.member_id, member.group_instance_id, member.reason or "")
            for member in request.members
        ]
    else:
        leaving = [Leaving(request.member_id, None)]
    waiter = AnswerWaiter(partial(_response, context.version, leaving))
    try:
        shard = groups.shard(group_id)
        manager_of(groups, shard, group_id).leave(shard, group_id, leaving, waiter)
    except KafkaError as error:
        return LeaveGroupResponse(error_code=int(error.code))
    return waiter.outcome()


def _response(
    version: int, leaving: list[Leaving], codes: list[ErrorCode] | KafkaError
) -> LeaveGroupResponse:
    if isinstance(codes, KafkaError):
        return LeaveGroupResponse(error_code=int(codes.code))
    if version < _SEVERAL_SINCE:
        return LeaveGroupResponse(error_code=int(codes[0]))
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                error_code=int(code),
            )
            for member, code in zip(leaving, codes, strict=True)
        ]
    )
