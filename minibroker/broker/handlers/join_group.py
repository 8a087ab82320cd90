"""JoinGroup: key 11, versions 0-9.

Behaviour: makes the client a member of a group and waits until the group has a generation; the
leader hears who is in it. The decisions stand in `groups/classic/joins.py`.

Versions:
- 0: rebalance time-out = session time-out
- 1: rebalance time-out
- 4: a new member gets its id first (MEMBER_ID_REQUIRED)
- 5: static members (KIP-345)
- 6: flexible
- 7: protocol type
- 8: reason (KIP-800)
- 9: skip_assignment (KIP-814)

Differs from Kafka: a join that is replaced by a newer one of the same member is answered
REBALANCE_IN_PROGRESS instead of never; so is a join that names one protocol twice, which counts
once, and which Kafka never answers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from minibroker.broker.groups.member_requests import UNKNOWN_MEMBER_ID, Join, JoinAnswer
from minibroker.broker.handlers.common.group_members import (
    AnswerWaiter,
    client_host,
    manager_of,
    topic_filter,
)
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.kafka.protocol.messages.join_group import JoinGroupRequest

_REQUIRES_MEMBER_ID_SINCE = 4
_NULL_PROTOCOL_SINCE = 7
_SKIPS_ASSIGNMENT_SINCE = 9
_REASON_CHARACTERS_MAX = 255


def handle(context: RequestContext, request: JoinGroupRequest) -> Any:
    """Return the response, or a future of it."""
    version = context.version
    respond = partial(_response, version)
    groups = context.services.groups
    try:
        groups.classic.check_instance_id(request.group_instance_id)
    except KafkaError as error:
        return respond(JoinAnswer(error.code, UNKNOWN_MEMBER_ID))
    try:
        shard = groups.shard(request.group_id)
    except KafkaError as error:
        return respond(JoinAnswer(error.code, request.member_id))
    join = Join(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=context.client_id or "",
        client_host=client_host(context),
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=(
            request.session_timeout_ms if version == 0 else request.rebalance_timeout_ms
        ),
        is_member_id_required=version >= _REQUIRES_MEMBER_ID_SINCE,
        may_skip_assignment=version >= _SKIPS_ASSIGNMENT_SINCE,
        reason=(request.reason or "")[:_REASON_CHARACTERS_MAX],
        may_describe=topic_filter(context),
    )
    waiter = AnswerWaiter(respond)
    manager_of(groups, shard, request.group_id).join(shard, request.group_id, join, waiter)
    return waiter.outcome()


def _response(version: int, answer: JoinAnswer) -> JoinGroupResponse:
    protocol_name = answer.protocol_name
    if protocol_name is None and version < _NULL_PROTOCOL_SINCE:
        protocol_name = ""
    return JoinGroupResponse(
        error_code=int(answer.error),
        generation_id=answer.generation_id,
        protocol_type=answer.protocol_type if version >= _NULL_PROTOCOL_SINCE else None,
        protocol_name=protocol_name,
        leader=answer.leader_id or "",
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member_id, group_instance_id=instance_id, metadata=metadata
            )
            for member_id, instance_id, metadata in answer.members
        ],
    )
