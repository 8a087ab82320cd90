"""Requests to groups where they cannot be answered: another broker's, still loading, refused."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.groups.member_requests import Join, JoinAnswer
from minibroker.broker.groups.offsets import CommittedOffset
from minibroker.broker.groups.shard import DELETED_AT_ONCE
from minibroker.broker.handlers import describe_groups
from minibroker.broker.handlers.common.authorized_operations import ALL_OPERATIONS
from minibroker.broker.security.acls import ResourceType
from minibroker.broker.slices import run_all
from minibroker.broker.storage.files import Files
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.delete_groups import DeleteGroupsRequest
from minibroker.kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest
from minibroker.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from minibroker.kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from minibroker.kafka.protocol.messages.list_groups import ListGroupsRequest
from minibroker.kafka.protocol.messages.sync_group import SyncGroupRequest
from tests.support.turns import Turns
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient

NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def join(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        member_id=member_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


SYNC = SyncGroupRequest(group_id="g", generation_id=1, member_id="m")
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
LEAVE = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")])


async def test_a_broker_that_does_not_coordinate_the_group(client: RawClient) -> None:
    """There is no `__consumer_offsets` here."""
    joined = await client.call(join("m"), 6)
    assert (joined.error_code, joined.member_id) == (NOT_COORDINATOR, "m")
    for request in (SYNC, HEARTBEAT, LEAVE):
        assert (await client.call(request, 4)).error_code == NOT_COORDINATOR
    described = await client.call(DescribeGroupsRequest(groups=["g"]), 5)
    assert [(group.error_code, group.group_state) for group in described.groups] == [
        (NOT_COORDINATOR, "")
    ]
    deleted = await client.call(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert [result.error_code for result in deleted.results] == [NOT_COORDINATOR]
    groups = await client.call(ListGroupsRequest(), 4)
    assert (groups.error_code, groups.groups) == (0, [])


async def test_a_group_that_is_being_loaded(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old clients do not know that error from SyncGroup, and a heartbeat is simply good."""
    groups = running.broker.services.groups

    def loading(*_: Any, **__: Any) -> Any:
        raise KafkaError(LOADING)

    monkeypatch.setattr(type(groups), "shard", loading)
    monkeypatch.setattr(type(groups.journal), "is_loading", True)
    assert (await client.call(join(), 6)).error_code == LOADING
    assert (await client.call(SYNC, 4)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert (await client.call(HEARTBEAT, 4)).error_code == ErrorCode.NONE
    assert (await client.call(LEAVE, 4)).error_code == LOADING
    assert (await client.call(ListGroupsRequest(), 4)).error_code == LOADING


async def test_authorized_operations_of_a_group_are_answered_when_asked(
    running: InProcessBroker, client: RawClient
) -> None:
    await running.broker.services.groups.journal.ensure_topic()
    request = DescribeGroupsRequest(groups=["g", ""], include_authorized_operations=True)
    answer = await client.call(request, 5)
    assert [group.authorized_operations for group in answer.groups] == [
        ALL_OPERATIONS[ResourceType.GROUP]
    ] * 2


@pytest.mark.parametrize("version", range(7))
async def test_many_groups_are_described_as_few_are_and_repeated_ones_alike(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    await running.broker.services.groups.journal.ensure_topic()
    await client.call(join(), 2)
    names = ["g", "missing", "", "g"]
    few = (await client.call(DescribeGroupsRequest(groups=names), version)).groups
    group_ids: list[str] = []
    find = describe_groups._describe_group

    def describe(context: Any, group_id: str) -> Any:
        group_ids.append(group_id)
        return find(context, group_id)

    monkeypatch.setattr(describe_groups, "_describe_group", describe)
    many = (await client.call(DescribeGroupsRequest(groups=names * 10), version)).groups
    assert many == few * 10
    assert group_ids == ["g", "missing", ""]


async def test_a_group_stays_when_its_tombstones_are_refused(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = running.broker.services.groups
    await groups.journal.ensure_topic()
    invited = await client.call(join(), 4)
    assert invited.error_code == ErrorCode.MEMBER_ID_REQUIRED

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Files, "pwritev", refuse)
        deleted = await client.call(DeleteGroupsRequest(groups_names=["g"]), 2)
        assert deleted.results[0].error_code == NOT_COORDINATOR
    assert (await client.call(ListGroupsRequest(), 4)).groups[0].group_state == "Empty"
    deleted = await client.call(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert deleted.results[0].error_code == 0
    again = await client.call(join(invited.member_id), 4)
    assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_others_have_the_loop_while_a_group_is_deleted(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = running.broker.services.groups
    await groups.journal.ensure_topic()
    shard = groups.shard("g")
    count = 10 * DELETED_AT_ONCE
    offsets = [(("g", "t", index), CommittedOffset(5, -1, "", 0)) for index in range(count)]
    shard.commit_offsets("g", offsets, run_all(shard.commit_batch(offsets)))
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    turns = Turns()
    deleted = await client.call(DeleteGroupsRequest(groups_names=["g", "h", "g"]), 2)
    assert turns.stop() >= 10
    assert [(result.group_id, result.error_code) for result in deleted.results] == [
        ("g", ErrorCode.NONE),
        ("h", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert shard.groups == {}
    assert shard.offsets.committed_count == 0


async def test_many_members_leave_in_parts_and_one_rebalance(
    running: InProcessBroker, client: RawClient
) -> None:
    groups = running.broker.services.groups
    await groups.journal.ensure_topic()
    shard = groups.shard("g")
    answers: list[JoinAnswer] = []
    names = [f"i{number}" for number in range(150)]
    for name in names:
        member = Join("", name, "c", "/127.0.0.1", "consumer", (("p", b""),), 60_000, 60_000)
        groups.classic.join(shard, "g", member, answers.append)
    await eventually(lambda: len(answers) == len(names))
    (generation,) = {answer.generation_id for answer in answers}
    members = [MemberIdentity(member_id="", group_instance_id=name) for name in [*names, "i0"]]
    answer = await client.call(LeaveGroupRequest(group_id="g", members=members), 4)
    codes = [member.error_code for member in answer.members]
    assert codes == [0] * len(names) + [ErrorCode.UNKNOWN_MEMBER_ID]
    group: Any = shard.groups["g"]
    assert (group.state_name, group.generation_id) == ("Empty", generation + 1)
