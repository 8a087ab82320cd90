"""SyncGroup: key 14, versions 0-5.

Behaviour: the leader hands in the assignment of its generation, every member gets its share once
that is stored; members that ask before the leader wait (`groups/classic/syncing.py`). While the
group is being loaded the answer is REBALANCE_IN_PROGRESS, as old clients do not know the other one
(Kafka 3.9; 4.x answers COORDINATOR_LOAD_IN_PROGRESS).

Versions:
- 1: throttle time
- 3: static members (KIP-345)
- 4: flexible
- 5: protocol type and name, which must be the group's (KIP-559)

Differs from Kafka: a sync that is replaced by a newer one of the same member, or whose member is
removed, is answered (REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID) instead of never.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from minibroker.broker.groups.member_requests import Sync, SyncAnswer
from minibroker.broker.handlers.common.group_members import AnswerWaiter, manager_of
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.kafka.protocol.messages.sync_group import SyncGroupRequest

_NAMES_PROTOCOL_SINCE = 5


def handle(context: RequestContext, request: SyncGroupRequest) -> Any:
    """Return the response, or a future of it."""
    names_protocol = context.version >= _NAMES_PROTOCOL_SINCE
    respond = partial(_response, names_protocol)
    groups = context.services.groups
    try:
        groups.classic.check_instance_id(request.group_instance_id)
        if names_protocol and (request.protocol_type is None or request.protocol_name is None):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not context.authorize(Operation.READ, ResourceType.GROUP, request.group_id):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        shard = groups.shard(request.group_id)
    except KafkaError as error:
        is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return respond(SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS if is_loading else error.code))
    sync = Sync(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation_id=request.generation_id,
        protocol_type=request.protocol_type if names_protocol else None,
        protocol_name=request.protocol_name if names_protocol else None,
        assignments={
            assignment.member_id: assignment.assignment for assignment in request.assignments
        },
    )
    waiter = AnswerWaiter(respond)
    manager_of(groups, shard, request.group_id).sync(shard, request.group_id, sync, waiter)
    return waiter.outcome()


def _response(names_protocol: bool, answer: SyncAnswer) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=int(answer.error),
        protocol_type=answer.protocol_type if names_protocol else None,
        protocol_name=answer.protocol_name if names_protocol else None,
        assignment=answer.assignment,
    )
