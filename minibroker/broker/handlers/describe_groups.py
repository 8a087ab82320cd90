"""DescribeGroups: key 15, versions 0-6.

Behaviour: state, members and their assignments of classic groups; what the members said about the
protocol only while the group is stable. A group that is not there, or is of another kind, is Dead.

Versions:
- 1: throttle time
- 3: authorized operations (KIP-430)
- 4: static members
- 5: flexible
- 6: a group that is not there is GROUP_ID_NOT_FOUND (KIP-1043)

Differs from Kafka: groups are answered in the order asked; 4.x sorts them by partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.broker.groups.classic.group import ClassicGroup, State
from minibroker.broker.handlers.common.authorized_operations import operations_of
from minibroker.broker.handlers.common.encoded_struct import EncodedStruct
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.slices import gather
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, cut_detail
from minibroker.kafka.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.describe_groups import DescribeGroupsRequest

_STATIC_MEMBERS_SINCE = 4
_NOT_FOUND_SINCE = 6
_AT_ONCE_MAX = 16
"""Groups that are described without a pause."""


def handle(
    context: RequestContext, request: DescribeGroupsRequest
) -> Steps[DescribeGroupsResponse]:
    """Return one entry per group asked, in order. A group that is asked for again has the same
    entry, and of many groups each entry is bytes already.
    """
    described: dict[str, Any] = {}
    is_encoded = len(request.groups) > _AT_ONCE_MAX
    for group_id in request.groups:
        if group_id not in described:
            group = yield from _describe(context, request, group_id)
            described[group_id] = (
                EncodedStruct(group, context.version, group.error_code) if is_encoded else group
            )
        yield
    return DescribeGroupsResponse(groups=[described[group_id] for group_id in request.groups])


def _describe(
    context: RequestContext, request: DescribeGroupsRequest, group_id: str
) -> Steps[DescribedGroup]:
    if not context.authorize(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        code = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return DescribedGroup(group_id=group_id, error_code=code)
    described = yield from _describe_group(context, group_id)
    if request.include_authorized_operations and not described.error_code:
        described.authorized_operations = operations_of(context, ResourceType.GROUP, group_id)
    return described


def _describe_group(context: RequestContext, group_id: str) -> Steps[DescribedGroup]:
    try:
        group = context.services.groups.find(group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=int(error.code))
    if not isinstance(group, ClassicGroup):
        dead = DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
        if context.version >= _NOT_FOUND_SINCE:
            dead.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            reason = "not found" if group is None else "is not a classic group"
            dead.error_message = cut_detail(f"Group {group_id} {reason}.")
        return dead
    is_stable = group.state is State.STABLE
    names_instances = context.version >= _STATIC_MEMBERS_SINCE
    protocol_name = group.protocol_name
    answer = DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=(protocol_name or "") if is_stable else "",
    )
    answer.members = yield from gather(
        DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id if names_instances else None,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata_of(protocol_name) if is_stable else b"",
            member_assignment=member.assignment,
        )
        for member in list(group.members.values())
    )
    return answer
