"""The coordinator of one broker: where groups are kept, from start to start."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker import slices
from minibroker.broker.groups.offsets import CommittedOffset
from minibroker.broker.groups.records import encode_offset_key
from minibroker.broker.slices import run_all
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import NO_PRODUCER_ID
from tests.support.evidence import MARKED
from tests.support.in_process import InProcessBroker, ManualClock
from tests.support.logs import marker_of
from tests.support.turns import Turns
from tests.support.waiting import eventually
from tests.unit.broker.partitions.conftest import Claim

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from minibroker.broker.groups.coordinator import GroupCoordinator

SETTINGS = {"offsets.topic.num.partitions": "3", "offsets.retention.minutes": "60"}
HOUR_MS = 3_600_000
TOPIC = "__consumer_offsets"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def running(tmp_path: Path, clock: ManualClock) -> AsyncIterator[InProcessBroker]:
    async with InProcessBroker(tmp_path, SETTINGS, clock=clock) as broker:
        await broker.create_topic("t", 2)
        await broker.broker.services.groups.journal.ensure_topic()
        yield broker


def groups_of(running: InProcessBroker) -> GroupCoordinator:
    return running.broker.services.groups


def commit(
    running: InProcessBroker, group_id: str, offset: int, producer_id: int = NO_PRODUCER_ID
) -> None:
    """Commit an offset for partition 0 of topic t."""
    committed = CommittedOffset(offset, -1, "", running.broker.clock.now_ms())
    shard = groups_of(running).shard(group_id)
    commits = [((group_id, "t", 0), committed)]
    batch = run_all(shard.commit_batch(commits, producer_id=producer_id, producer_epoch=0))
    shard.commit_offsets(group_id, commits, batch, producer_id=producer_id)


def offset_of(running: InProcessBroker, group_id: str) -> int | None:
    offset = groups_of(running).shard(group_id).offsets.get(group_id, "t", 0)
    return None if offset is None else offset.offset


async def loaded(running: InProcessBroker) -> None:
    """Until the partitions are loaded, which a start begins on its own."""
    groups = groups_of(running)
    await eventually(lambda: bool(groups.active_shards()) and not groups.journal.is_loading)


def code_of(running: InProcessBroker, group_id: str | None) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        groups_of(running).shard(group_id)
    return caught.value.code


async def test_without_the_topic_nothing_is_coordinated(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path, SETTINGS) as running:
        assert code_of(running, "g") == ErrorCode.NOT_COORDINATOR
        assert code_of(running, "") == ErrorCode.INVALID_GROUP_ID
        assert code_of(running, None) == ErrorCode.INVALID_GROUP_ID


def test_groups_are_spread_over_the_partitions(running: InProcessBroker) -> None:
    indexes = {groups_of(running).shard(f"group-{number}").index for number in range(20)}
    assert indexes == {0, 1, 2}
    assert len(groups_of(running).active_shards()) == 3
    assert groups_of(running).shard("", may_be_empty=True).index == 0


def test_readers_see_commits(running: InProcessBroker) -> None:
    commit(running, "g", 5)
    assert offset_of(running, "g") == 5
    assert groups_of(running).find("g") is not None
    assert groups_of(running).find("h") is None


async def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    """Committed, overwritten, deleted, pending, committed by a marker, and a lone transaction."""
    async with InProcessBroker(tmp_path, SETTINGS) as running:
        await running.create_topic("t")
        await groups_of(running).journal.ensure_topic()
        for group_id, offsets in {"a": (1, 2), "b": (3,), "c": (4,), "d": (), "e": ()}.items():
            for offset in offsets:
                commit(running, group_id, offset)
        shard = groups_of(running).shard("b")
        shard.write([(encode_offset_key("b", "t", 0), None)])
        commit(running, "c", 9, producer_id=7)
        commit(running, "d", 9, producer_id=8)
        commit(running, "e", 9, producer_id=9)
        groups_of(running).journal.flush()
        end_transaction(running, "c", 7, is_commit=True)
        end_transaction(running, "d", 8, is_commit=False)
        assert offset_of(running, "c") == 9
        assert offset_of(running, "d") is None
    async with InProcessBroker(tmp_path, SETTINGS) as running:
        await loaded(running)
        all_offsets = [offset_of(running, group_id) for group_id in "abcde"]
        assert all_offsets == [2, None, 9, None, None]
        assert groups_of(running).shard("e").offsets.has_pending("e", "t", 0)
        end_transaction(running, "e", 9, is_commit=True)
        assert offset_of(running, "e") == 9


def end_transaction(
    running: InProcessBroker, group_id: str, producer_id: int, *, is_commit: bool
) -> None:
    """Write the marker, then tell the coordinator, as `partitions.markers` does."""
    index = groups_of(running).journal.partition_of(group_id)
    partition = running.partitions.get(TOPIC, index)
    now_ms = running.broker.clock.now_ms()
    marker = marker_of(producer_id, is_commit=is_commit, timestamp_ms=now_ms)
    partition.append(marker, -1, now_ms, Claim(), origin="coordinator")
    running.partitions.commit()
    groups_of(running).complete_transaction(index, producer_id, is_commit)


async def test_while_it_loads_clients_are_told_to_wait(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path, SETTINGS) as running:
        await running.create_topic("t")
        await groups_of(running).journal.ensure_topic()
        commit(running, "g", 5)
    async with InProcessBroker(tmp_path, SETTINGS) as running:
        assert code_of(running, "g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        index = groups_of(running).journal.partition_of("g")
        groups_of(running).complete_transaction(index, 7, is_commit=True)
        await loaded(running)
        assert offset_of(running, "g") == 5


async def test_groups_are_gone_with_their_topic(running: InProcessBroker) -> None:
    commit(running, "g", 5)
    assert offset_of(running, "g") == 5
    await running.broker.cluster.delete_topic(TOPIC)
    assert code_of(running, "g") == ErrorCode.NOT_COORDINATOR
    assert groups_of(running).active_shards() == []
    await groups_of(running).journal.ensure_topic()
    assert offset_of(running, "g") is None


async def test_offsets_go_with_the_topic_they_were_committed_for(running: InProcessBroker) -> None:
    for number in range(5):
        commit(running, f"group-{number}", 5)
    await running.broker.cluster.delete_topic("t")
    await running.create_topic("t")
    assert [offset_of(running, f"group-{number}") for number in range(5)] == [None] * 5


async def test_offsets_expire_when_it_is_time_to_look(
    running: InProcessBroker, clock: ManualClock
) -> None:
    """`offsets.retention.minutes`, looked at every `offsets.retention.check.interval.ms`."""
    commit(running, "old", 5)
    groups_of(running).journal.flush()
    clock.advance(HOUR_MS // 2)
    commit(running, "young", 5)
    groups_of(running).journal.flush()
    clock.advance(HOUR_MS // 2)
    await eventually(lambda: groups_of(running).find("old") is None)
    assert offset_of(running, "old") is None
    assert offset_of(running, "young") == 5
    clock.advance(HOUR_MS // 2)
    await eventually(lambda: groups_of(running).find("young") is None)


async def test_another_look_follows_when_the_disk_refused(
    running: InProcessBroker, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(running, "g", 5)
    shard = groups_of(running).shard("g")
    attempts = 0

    def refuse(_retention_ms: int) -> Iterator[int]:
        nonlocal attempts
        attempts += 1
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    with monkeypatch.context() as patch:
        patch.setattr(type(shard), "expire", lambda _self, retention_ms: refuse(retention_ms))
        clock.advance(HOUR_MS)
        await eventually(lambda: attempts == 3)
    clock.advance(HOUR_MS)
    await eventually(lambda: "g" not in shard.groups)


async def test_a_group_that_is_being_deleted_is_refused(running: InProcessBroker) -> None:
    commit(running, "g", 5)
    steps = groups_of(running).delete_group("g")
    next(steps)
    assert code_of(running, "g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert list(steps) == []
    assert groups_of(running).find("g") is None


async def test_only_a_group_that_is_there_and_empty_is_deleted(running: InProcessBroker) -> None:
    with pytest.raises(KafkaError) as caught:
        next(groups_of(running).delete_group("g"))
    assert caught.value.code == ErrorCode.GROUP_ID_NOT_FOUND


async def test_others_have_the_loop_while_a_deleted_topic_is_forgotten(
    running: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [f"group-{number}" for number in range(20)]
    for group_id in groups:
        commit(running, group_id, 5)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    topic = running.broker.services.cluster.image.topics["t"]
    turns = Turns()
    groups_of(running).on_topic_deleted(topic, MARKED)
    await eventually(lambda: all(offset_of(running, group_id) is None for group_id in groups))
    assert turns.stop() >= len(groups)


async def test_offsets_of_a_missing_topic_stay_and_those_of_a_deleted_one_go_with_a_line(
    running: InProcessBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    commit(running, "g", 5)
    topic = running.broker.services.cluster.image.topics["t"]
    groups_of(running).on_topic_missing(topic)
    await asyncio.sleep(0)
    assert offset_of(running, "g") == 5
    groups_of(running).on_topic_deleted(topic, MARKED)
    await eventually(lambda: offset_of(running, "g") is None)
    await eventually(lambda: f"1 committed offsets of topic t are deleted: {MARKED}" in caplog.text)
