"""LeaveGroup: key 13, versions 0-5.

Behaviour: members go, or an admin client removes them, static ones also by their names; one
rebalance for all of them. They go in parts of `_MEMBERS_AT_ONCE`, which is one rebalance too: the
first part begins it, and the group waits for the others. A group that is not there has none of the
members.

Versions:
- 1: throttle time
- 3: several members, static names (KIP-345)
- 4: flexible
- 5: reason (KIP-800)

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.groups.member_requests import Departure
from minibroker.broker.handlers.common.group_members import AnswerWaiter, manager_of
from minibroker.broker.slices import gather, run_with_pauses
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps
    from minibroker.kafka.error_codes import ErrorCode
    from minibroker.kafka.protocol.messages.leave_group import LeaveGroupRequest

    Codes = list[ErrorCode] | KafkaError

_SEVERAL_SINCE: Final = 3
_MEMBERS_AT_ONCE: Final = 64
"""Members that leave in one step; one takes about 10 µs."""


def handle(
    context: RequestContext, request: LeaveGroupRequest
) -> Steps[LeaveGroupResponse | Awaitable[LeaveGroupResponse]]:
    """Return the response, an awaitable of it until the members are out for good."""
    groups = context.services.groups
    group_id = request.group_id
    if context.version >= _SEVERAL_SINCE:
        leaving = yield from gather(
            Departure(member.member_id, member.group_instance_id, member.reason or "")
            for member in request.members
        )
    else:
        leaving = [Departure(request.member_id, None)]
    outcomes: list[Codes | Awaitable[Codes]] = []
    try:
        for start in range(0, len(leaving) or 1, _MEMBERS_AT_ONCE):
            waiter = AnswerWaiter(lambda codes: codes)
            shard = groups.shard(group_id)
            part = leaving[start : start + _MEMBERS_AT_ONCE]
            manager_of(groups, shard, group_id).leave(shard, group_id, part, waiter)
            outcomes.append(waiter.outcome())
            yield
    except KafkaError as error:
        return LeaveGroupResponse(error_code=int(error.code))
    if all(isinstance(outcome, list | KafkaError) for outcome in outcomes):
        return (yield from _response(context.version, leaving, outcomes))
    return _response_later(context.version, leaving, outcomes)


async def _response_later(
    version: int, leaving: list[Departure], outcomes: list[Codes | Awaitable[Codes]]
) -> LeaveGroupResponse:
    """Return the answer once all members are out; `outcomes` as for `_response`, or its future."""
    codes = [
        outcome if isinstance(outcome, list | KafkaError) else await outcome for outcome in outcomes
    ]
    return await run_with_pauses(_response(version, leaving, codes))


def _response(
    version: int, leaving: list[Departure], outcomes: Sequence[Any]
) -> Steps[LeaveGroupResponse]:
    """Return the answer; `outcomes` has the codes of each part, or the error of a refused one."""
    codes: list[ErrorCode] = []
    for outcome in outcomes:
        if isinstance(outcome, KafkaError):
            return LeaveGroupResponse(error_code=int(outcome.code))
        codes += outcome
    if version < _SEVERAL_SINCE:
        return LeaveGroupResponse(error_code=int(codes[0]))
    members = yield from gather(
        MemberResponse(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            error_code=int(code),
        )
        for member, code in zip(leaving, codes, strict=True)
    )
    return LeaveGroupResponse(members=members)
