"""OffsetDelete: others have the loop between its steps. Its answers are in tests/compat."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker import slices
from minibroker.broker.groups.consumer.heartbeat import Heartbeat
from minibroker.broker.groups.offsets import CommittedOffset
from minibroker.broker.groups.records import encode_offset_key
from minibroker.broker.handlers import offset_delete
from minibroker.broker.slices import run_all
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

if TYPE_CHECKING:
    from minibroker.broker.groups.coordinator import GroupCoordinator
    from tests.support.in_process import InProcessBroker, RawClient

GROUP = "g"
REQUEST = OffsetDeleteRequest(
    group_id=GROUP,
    topics=[
        OffsetDeleteRequestTopic(
            name="t",
            partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in range(2)],
        )
    ],
)


@pytest.fixture
async def groups(running: InProcessBroker) -> GroupCoordinator:
    """Return the coordinator; the group, which has no members, committed offset 1 for `t`."""
    coordinator = running.broker.services.groups
    await coordinator.journal.ensure_topic()
    for index in range(2):
        commit(coordinator, index, 1)
    return coordinator


def commit(groups: GroupCoordinator, index: int, offset: int) -> None:
    shard = groups.shard(GROUP)
    commits = [((GROUP, "t", index), CommittedOffset(offset, -1, "", 0))]
    shard.commit_offsets(GROUP, commits, run_all(shard.commit_batch(commits)))


def offsets_of(groups: GroupCoordinator) -> dict[int, int]:
    """Return partition of `t` → the group's committed offset."""
    of_topic = groups.shard(GROUP).offsets.of_group(GROUP).get("t", {})
    return {index: committed.offset for index, committed in of_topic.items()}


def join_and_commit(groups: GroupCoordinator) -> None:
    """Make a consumer a member that reads `t`, and commit offset 5 for partition 0."""
    names = frozenset(("t",))
    heartbeat = Heartbeat(
        GROUP, "m", 0, "c", "/h", rebalance_timeout_ms=30_000, topic_names=names, owned={}
    )
    groups.consumer.beat(groups.shard(GROUP), heartbeat, lambda _answer: None)
    commit(groups, 0, 5)


async def test_the_commit_of_a_member_that_has_just_joined_stays(
    groups: GroupCoordinator, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It joins in the turn of the loop behind the question whether somebody reads the topic."""

    def encode_and_join(group_id: str, topic: str, index: int) -> bytes:
        if index == 0:
            asyncio.get_running_loop().call_soon(join_and_commit, groups)
        return encode_offset_key(group_id, topic, index)

    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    monkeypatch.setattr(offset_delete, "DELETED_AT_ONCE", 1)
    monkeypatch.setattr(offset_delete, "encode_offset_key", encode_and_join)
    answer = await client.call(REQUEST, 0)
    assert offsets_of(groups) == {0: 5, 1: 1}
    codes = [partition.error_code for partition in answer.topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]


async def test_offsets_are_deleted_in_parts(
    groups: GroupCoordinator, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    monkeypatch.setattr(offset_delete, "DELETED_AT_ONCE", 1)
    answer = await client.call(REQUEST, 0)
    assert [partition.error_code for partition in answer.topics[0].partitions] == [0, 0]
    assert offsets_of(groups) == {}
