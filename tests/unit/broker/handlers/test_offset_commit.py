"""OffsetCommit: what a client is told when the disk refuses, and who is named in the log."""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.cluster.consumer_offsets import get_offset
from minibroker.broker.groups.classic.group import ClassicGroup
from minibroker.broker.groups.consumer.group import ConsumerGroup
from minibroker.broker.groups.consumer.heartbeat import Heartbeat
from minibroker.broker.groups.offsets import CommittedOffset
from minibroker.broker.handlers import offset_commit
from minibroker.broker.server import handling
from minibroker.broker.slices import run_all
from minibroker.broker.storage.files import Files
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from minibroker.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from minibroker.kafka.protocol.messages.offset_fetch import OffsetFetchRequest

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, ManualClock, RawClient


def commit(
    *offsets: int, group_id: str = "g", generation: int = -1, member_id: str = ""
) -> OffsetCommitRequest:
    """Offsets of partitions 0, 1 … of topic t."""
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[
            OffsetCommitRequestTopic(
                name="t",
                partitions=[
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
                    for index, offset in enumerate(offsets)
                ],
            )
        ],
    )


async def committed_offsets(client: RawClient, group_id: str = "g") -> dict[tuple[str, int], int]:
    """(topic, partition) → offset of everything the group committed."""
    answer = await client.call(OffsetFetchRequest(group_id=group_id, topics=None), 7)
    assert answer.error_code == 0
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in answer.topics
        for partition in topic.partitions
    }


@pytest.fixture
async def coordinated(client: RawClient) -> RawClient:
    """A client whose groups have a coordinator."""
    answer = await client.call(FindCoordinatorRequest(key="g"), 0)
    assert answer.error_code == 0
    return client


async def test_the_topic_comes_with_the_first_question_and_stays_internal(
    running: InProcessBroker, client: RawClient
) -> None:
    assert "__consumer_offsets" not in running.broker.cluster.image.topics
    answer = await client.call(FindCoordinatorRequest(key="g"), 0)
    assert (answer.error_code, answer.node_id) == (0, 0)
    everything = await client.call(MetadataRequest(topics=None), 9)
    topics = {topic.name: topic for topic in everything.topics}
    assert topics["__consumer_offsets"].is_internal
    assert len(topics["__consumer_offsets"].partitions) == 50
    config = running.broker.cluster.config_of("topics", "__consumer_offsets")
    assert config["cleanup.policy"] == "compact"


async def test_a_coordinator_that_cannot_be_made_is_one_to_ask_again(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = running.broker.services.groups.journal._config
    monkeypatch.setattr(config, "offsets_topic_replication_factor", 3)
    old = await client.call(FindCoordinatorRequest(key="g"), 1)
    assert (old.error_code, old.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    new = await client.call(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    assert new.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_before_there_is_a_coordinator_nobody_commits(client: RawClient) -> None:
    answer = await client.call(commit(5, 6), 7)
    codes = [partition.error_code for partition in answer.topics[0].partitions]
    assert codes == [ErrorCode.NOT_COORDINATOR] * 2
    fetched = await client.call(OffsetFetchRequest(group_id="g", topics=None), 7)
    assert fetched.error_code == ErrorCode.NOT_COORDINATOR


async def test_a_disk_that_refuses_is_in_the_answer(
    coordinated: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await coordinated.call(commit(5, 6), 7)).topics[0].partitions[0].error_code == 0

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Files, "pwritev", refuse)
        answer = await coordinated.call(commit(7, 8), 7)
    codes = [partition.error_code for partition in answer.topics[0].partitions]
    assert codes == [ErrorCode.NOT_COORDINATOR] * 2
    assert await committed_offsets(coordinated) == {("t", 0): 5, ("t", 1): 6}


async def test_a_group_whose_deletion_begins_between_two_steps_refuses(
    running: InProcessBroker, coordinated: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await coordinated.call(commit(5, 6), 7)).topics[0].partitions[0].error_code == 0
    shard = running.broker.services.groups.shard("g")
    validate = ClassicGroup.validate_offset_commit

    def validate_before_deletion(*arguments: Any, **options: Any) -> Any:
        asyncio.get_running_loop().call_soon(shard.deleted_groups.add, "g")
        return validate(*arguments, **options)

    monkeypatch.setattr(ClassicGroup, "validate_offset_commit", validate_before_deletion)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    answer = await coordinated.call(commit(7, 8), 7)
    codes = [partition.error_code for partition in answer.topics[0].partitions]
    assert codes == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
    shard.deleted_groups.clear()
    assert await committed_offsets(coordinated) == {("t", 0): 5, ("t", 1): 6}


@pytest.mark.pure("run_rest, which the station calls")
async def test_a_commit_of_one_partition_is_one_step(
    running: InProcessBroker, coordinated: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow machine makes no task of it."""
    rests: list[object] = []
    monkeypatch.setattr(handling, "run_rest", lambda steps, _turn: rests.append(steps))
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    assert (await coordinated.call(commit(5), 7)).topics[0].partitions[0].error_code == 0
    assert not rests


async def test_a_stranger_is_refused_and_named(
    coordinated: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A consumer that uses assign() with the group id of others: at once, and the log says who."""
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    joined = await coordinated.call(join, 3)
    assert joined.error_code == 0
    with caplog.at_level(logging.WARNING):
        answer = await coordinated.call(commit(5), 7)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert "refused offsets for group g from 127.0.0.1" in caplog.text
    assert "client id raw" in caplog.text
    assert "assign()" in caplog.text


async def test_version_0_keeps_offsets_in_the_tree(
    running: InProcessBroker, client: RawClient
) -> None:
    request = commit(5)
    request.generation_id_or_member_epoch = -1
    answer = await client.call(request, 0)
    assert answer.topics[0].partitions[0].error_code == 0
    assert await get_offset(running.broker.cluster.tree, "g", "t", 0) == 5
    assert "__consumer_offsets" not in running.broker.cluster.image.topics
    refused = await client.call(commit(5, group_id=".."), 0)
    assert refused.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.pure("check_member, which the handler calls")
async def test_a_member_that_gives_a_partition_away_meanwhile_does_not_commit_for_it(
    running: InProcessBroker,
    coordinated: RawClient,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does so on another connection, behind the check of its epoch. The next owner has committed
    when the offsets are written.
    """
    groups = running.broker.services.groups
    shard = groups.shard("g")
    topic_id = running.broker.cluster.image.topics["t"].topic_id
    names = frozenset(("t",))

    def beat(member_id: str, epoch: int, *owned: int) -> int:
        answers: list[Any] = []
        partitions = {topic_id: list(owned)} if owned else {}
        heartbeat = Heartbeat(
            "g",
            member_id,
            epoch,
            "c",
            "/h",
            rebalance_timeout_ms=30_000,
            topic_names=names,
            owned=partitions,
        )
        groups.consumer.beat(shard, heartbeat, answers.append)
        new_epoch: int = answers[0].member_epoch
        return new_epoch

    def held_by(member_id: str) -> list[int]:
        group = shard.groups["g"]
        assert isinstance(group, ConsumerGroup)
        return sorted(group.members[member_id].assigned.get(topic_id, ()))

    first_epoch = beat("first", 0)
    assert held_by("first") == [0, 1]
    second_epoch = beat("second", 0)
    clock.advance(1000)  # `group.consumer.assignment.interval.ms`
    assert beat("first", first_epoch, 0, 1) == first_epoch
    (own_index,) = held_by("first")

    def give_away() -> None:
        assert beat("first", first_epoch, own_index) > first_epoch
        beat("second", second_epoch)
        assert held_by("second") == [1 - own_index]
        key = ("g", "t", 1 - own_index)
        commits = [(key, CommittedOffset(9, -1, "", 0))]
        shard.commit_offsets("g", commits, run_all(shard.commit_batch(commits)))

    check_member = offset_commit.check_member
    checks: list[None] = []

    def check_and_give_away(*arguments: Any) -> Any:
        if not checks:
            asyncio.get_running_loop().call_soon(give_away)
        checks.append(None)
        return check_member(*arguments)

    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    monkeypatch.setattr(offset_commit, "check_member", check_and_give_away)
    request = commit(5, 5, generation=first_epoch, member_id="first")
    (topic,) = (await coordinated.call(request, 9)).topics
    codes = [partition.error_code for partition in topic.partitions]
    assert codes == [ErrorCode.STALE_MEMBER_EPOCH] * 2
    assert await committed_offsets(coordinated) == {("t", 1 - own_index): 9}
