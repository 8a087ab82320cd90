"""Classic groups: raw frames for the answers to a client, then real clients that are killed.

A commit after the group moved on fails, in all three cases. A stranger's commit into a group with
members fails at once, and the log names the client. Groups and members are listed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest
from minibroker.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from minibroker.kafka.protocol.messages.list_groups import ListGroupsRequest
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from minibroker.kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.support.groups import missing_client, read_by, stop_all
from tests.support.in_process import InProcessBroker, ManualClock
from tests.support.read_group import COUNT, Group

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from tests.support.broker import Minibroker
    from tests.support.groups import GroupMember
    from tests.support.in_process import RawClient

SESSION_MS = 10_000
CLASSIC_CLIENTS = [
    "confluent",
    "aiokafka",
    "kafka-python",
    "kcat",
    "kafkajs",
    "sarama",
    pytest.param("java-3.9.1", marks=pytest.mark.java),
    pytest.param("java-4.4.0", marks=pytest.mark.java),
]
WITH_PROTOCOL = {"confluent", "java-3.9.1", "java-4.4.0"}


# Raw frames.


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def broker(tmp_path: Path, clock: ManualClock) -> AsyncIterator[InProcessBroker]:
    settings = {"offsets.topic.num.partitions": "3"}
    async with InProcessBroker(tmp_path, settings, clock=clock) as running:
        await running.create_topic("t")
        async with await running.connect() as client:
            await client.call(FindCoordinatorRequest(key="g"), 2)
        yield running


def join_request(member_id: str = "", **other: Any) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        member_id=member_id,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        **other,
    )


async def stable_member(client: RawClient) -> tuple[str, int]:
    """Return id and generation of the only member of the group, which has its share."""
    joined = await client.call(join_request(), 3)
    assert joined.error_code == 0
    share = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"share")]
    synced = await client.call(
        SyncGroupRequest(
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=share,
        ),
        2,
    )
    assert synced.assignment == b"share"
    return joined.member_id, joined.generation_id


async def commit(client: RawClient, member_id: str = "", generation: int = -1) -> ErrorCode:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    answer = await client.call(
        OffsetCommitRequest(
            group_id="g",
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
        ),
        7,
    )
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def beat(client: RawClient, member_id: str, generation: int) -> ErrorCode:
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
    return ErrorCode((await client.call(request, 3)).error_code)


async def test_a_commit_after_the_group_moved_on_fails(
    broker: InProcessBroker, clock: ManualClock
) -> None:
    """max.poll.interval.ms passed: the client left without knowing, or others joined."""
    async with await broker.connect("slow") as slow, await broker.connect("other") as other:
        member_id, generation = await stable_member(slow)
        assert await commit(slow, member_id, generation) is ErrorCode.NONE
        # Another one joins, and the slow one does not join again: commits still count, until the
        # others have gone on without it.
        other.send(join_request(), 3)
        while await beat(slow, member_id, generation) is not ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        assert await commit(slow, member_id, generation) is ErrorCode.NONE
        clock.advance(SESSION_MS)
        joined = await other.receive()
        assert joined.error_code == 0
        assert await commit(slow, member_id, generation) is ErrorCode.UNKNOWN_MEMBER_ID
        # The new generation waits for its assignment; then a generation before it is stale.
        now = joined.generation_id
        assert await commit(other, joined.member_id, now) is ErrorCode.REBALANCE_IN_PROGRESS
        share = SyncGroupRequest(group_id="g", generation_id=now, member_id=joined.member_id)
        assert (await other.call(share, 2)).error_code == 0
        assert await commit(other, joined.member_id, now - 1) is ErrorCode.ILLEGAL_GENERATION
        assert await commit(other, joined.member_id, now) is ErrorCode.NONE


async def test_a_silent_member_is_removed(broker: InProcessBroker, clock: ManualClock) -> None:
    async with await broker.connect() as client:
        member_id, generation = await stable_member(client)
        clock.advance(SESSION_MS - 1)
        assert await commit(client, member_id, generation) is ErrorCode.NONE
        clock.advance(SESSION_MS - 1)
        assert await beat(client, member_id, generation) is ErrorCode.NONE
        clock.advance(SESSION_MS)
        assert await commit(client, member_id, generation) is ErrorCode.UNKNOWN_MEMBER_ID
        assert await beat(client, member_id, generation) is ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_commit_of_a_stranger_is_refused_and_logged(
    broker: InProcessBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with await broker.connect() as member, await broker.connect("by-hand") as stranger:
        assert await commit(stranger) is ErrorCode.NONE
        await stable_member(member)
        assert await commit(stranger) is ErrorCode.UNKNOWN_MEMBER_ID
    assert "by-hand" in caplog.text
    assert "assign()" in caplog.text


async def test_groups_are_listed_and_described(broker: InProcessBroker) -> None:
    async with await broker.connect() as client:
        member_id, _ = await stable_member(client)
        (row,) = (await client.call(ListGroupsRequest(), 5)).groups
        assert (row.group_id, row.group_state, row.protocol_type, row.group_type) == (
            "g",
            "Stable",
            "consumer",
            "classic",
        )
        (group,) = (await client.call(DescribeGroupsRequest(groups=["g"]), 5)).groups
        (member,) = group.members
        assert (member.member_id, member.client_id, member.client_host) == (
            member_id,
            "raw",
            "/127.0.0.1",
        )
        assert member.member_assignment == b"share"


async def test_a_client_that_goes_while_it_joins_leaves_nothing(
    broker: InProcessBroker, clock: ManualClock
) -> None:
    """Its connection is closed while it waits: the group goes on once its time is over."""
    async with await broker.connect("stays") as client:
        member_id, generation = await stable_member(client)
        leaving = await broker.connect("goes")
        leaving.send(join_request(), 3)
        while await beat(client, member_id, generation) is not ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        await leaving.close()
        again = await client.call(join_request(member_id), 3)
        assert len(again.members) == 2
        clock.advance(SESSION_MS - 1)
        assert await beat(client, member_id, again.generation_id) is ErrorCode.NONE
        clock.advance(1)
        assert await beat(client, member_id, again.generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
        alone = await client.call(join_request(member_id), 3)
        assert [member.member_id for member in alone.members] == [member_id]


async def test_a_waiting_member_is_answered_when_the_broker_stops(broker: InProcessBroker) -> None:
    async with await broker.connect() as member, await broker.connect() as joining:
        member_id, generation = await stable_member(member)
        joining.send(join_request(), 3)
        while await beat(member, member_id, generation) is not ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        await broker.stop()
        assert (await joining.receive()).error_code == ErrorCode.NOT_COORDINATOR


async def test_a_group_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Records precede answers: the member keeps its generation, its share and its session."""
    clock = ManualClock()
    async with InProcessBroker(tmp_path, clock=clock) as running:
        await running.create_topic("t")
        async with await running.connect() as client:
            await client.call(FindCoordinatorRequest(key="g"), 2)
            member_id, generation = await stable_member(client)
    async with InProcessBroker(tmp_path, clock=clock) as running, await running.connect() as client:
        request = SyncGroupRequest(group_id="g", generation_id=generation, member_id=member_id)
        # While the partition is loaded clients are told to try again.
        while (answer := await client.call(request, 2)).error_code:
            assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert answer.assignment == b"share"
        assert await commit(client, member_id, generation) is ErrorCode.NONE
        clock.advance(SESSION_MS)
        assert await beat(client, member_id, generation) is ErrorCode.UNKNOWN_MEMBER_ID


# Real clients.


class ClassicGroup(Group):
    """A group of one kind of client that speaks the classic protocol."""

    client = ""

    def add(self, name: str) -> GroupMember:
        """Start a new member."""
        return self.start(self.client, name, *(["classic"] if self.client in WITH_PROTOCOL else []))


@pytest.fixture
def group(
    new_broker: Callable[..., Minibroker], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[ClassicGroup]:
    client = request.getfixturevalue("client")
    reason = missing_client(client)
    if reason is not None:
        pytest.skip(f"not run: {reason}")
    settings = {"group.min.session.timeout.ms": "1000", "offsets.topic.num.partitions": "3"}
    new_group = ClassicGroup(new_broker(settings=settings), tmp_path)
    new_group.client = client
    yield new_group
    stop_all(new_group.members.values())


@pytest.mark.parametrize("client", CLASSIC_CLIENTS)
def test_three_members_one_killed_one_added(group: ClassicGroup, client: str) -> None:
    """No record is lost; only records that the killed member had not committed are read twice."""
    for name in ("a", "b", "c"):
        group.add(name)
    group.settle("a", "b", "c")
    group.write()
    group.wait_for_all("a")
    assert group.type() == "classic"
    group.members["b"].kill()
    group.write()
    group.settle("a", "c")
    group.wait_for_all("a")
    group.add("d")
    group.settle("a", "c", "d")
    group.write()
    group.wait_for_all("a")
    group.members["a"].leave()
    group.settle("c", "d")
    repeated = len(read_by(group.members.values())) - len(group.written)
    assert repeated <= COUNT
