"""Followers come into the ISR and leave it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.replicas import FollowerId
from minibroker.broker.partitions.role import Leader
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.ids import TopicPartition
from tests.support.waiting import eventually
from tests.unit.broker.replication.records import append, until_equal

if TYPE_CHECKING:
    from minibroker.broker.replication.isr import IsrProposal
    from tests.unit.broker.replication.conftest import Pair

LAG_MS = 30_000
"""`replica.lag.time.max.ms`. A test that wants a slow follower moves the clock once: the leader
looks at its followers while the clock moves, but may arm the timer of the next look later.
"""


def isr(pair: Pair, broker_id: int = 0) -> list[int]:
    image = pair.by_id[broker_id].broker.cluster.image
    return sorted(image.topics["t"].partitions[0].isr)


async def test_a_slow_follower_leaves_and_comes_back(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    await pair.by_id[1].broker.replication.close()
    append(pair, b"b")
    assert pair.on(0).high_watermark == 1
    pair.clock.advance(LAG_MS + 1)
    await eventually(lambda: isr(pair) == [0] and isr(pair, 1) == [0])
    assert pair.on(0).high_watermark == 2
    await pair.stop(1)
    await pair.start(1)
    await eventually(lambda: isr(pair) == [0, 1] and isr(pair, 1) == [0, 1])


async def test_a_broker_that_was_started_again_does_not_count_by_its_old_epoch(pair: Pair) -> None:
    """KIP-903: a fetch that was sent before the restart says nothing of the log after it."""
    await pair.create()
    pair.clock.advance(LAG_MS)
    partition = pair.on(0)
    assert partition.replicas is not None
    partition.replicas.isr = frozenset({0})
    keeper = pair.by_id[0].broker.replication.isr
    epoch = pair.by_id[0].broker.cluster.image.brokers[1].epoch
    keeper.note_fetch(partition, FollowerId(1, epoch - 1))
    assert partition not in keeper._changing_partitions


@pytest.mark.parametrize("error", [CoordinationError("away"), RuntimeError("a bug")])
async def test_a_follower_counts_until_it_is_known_whether_it_joined(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The tree is away while the ISR is written: it may have the new one, or not."""
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    await pair.by_id[1].broker.replication.close()
    append(pair, b"b")
    pair.clock.advance(LAG_MS + 1)
    keeper = pair.by_id[0].broker.replication.isr
    await eventually(lambda: isr(pair) == [0] and not keeper._changing_partitions)
    cluster = pair.by_id[0].broker.cluster
    change_isr = cluster.leadership.change_isr
    is_away = asyncio.Event()
    is_back = asyncio.Event()

    async def refused(*_: object, **__: object) -> bool:
        raise error

    async def wait(_seconds: float) -> None:
        is_away.set()
        await is_back.wait()

    monkeypatch.setattr(cluster.leadership, "change_isr", refused)
    monkeypatch.setattr(keeper, "_sleep", wait)
    partition = pair.on(0)
    partition.follower_fetched(FollowerId(1, -1), 2, 0)
    keeper.note_fetch(partition, FollowerId(1, -1))
    await is_away.wait()
    pair.clock.advance(2 * LAG_MS)
    append(pair, b"c")
    assert partition.high_watermark == 2
    monkeypatch.setattr(cluster.leadership, "change_isr", change_isr)
    is_back.set()
    await eventually(lambda: isr(pair) == [0, 1])


async def test_a_change_that_waits_for_the_tree_is_one_line(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Very many may wait at a time."""
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    await pair.by_id[1].broker.replication.close()
    leadership = pair.by_id[0].broker.cluster.leadership
    change_isr = leadership.change_isr
    errors = [CoordinationError("away")] * 5

    async def late(name: TopicPartition, new_isr: list[int], **epochs: Any) -> bool:
        if errors:
            raise errors.pop()
        return await change_isr(name, new_isr, **epochs)

    async def wait(_seconds: float) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(leadership, "change_isr", late)
    monkeypatch.setattr(pair.by_id[0].broker.replication.isr, "_sleep", wait)
    append(pair, b"b")
    pair.clock.advance(LAG_MS + 1)
    await eventually(lambda: isr(pair) == [0])
    assert not errors
    assert caplog.text.count("the ISR is not [0] yet: away") == 1


async def test_a_controller_of_kafka_is_asked_and_else_the_tree_is_written(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    await pair.by_id[1].broker.replication.close()
    append(pair, b"b")
    proposals: list[IsrProposal] = []

    class Requests:
        async def change(self, change: IsrProposal) -> bool:
            proposals.append(change)
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    keeper = pair.by_id[0].broker.replication.isr
    monkeypatch.setattr(keeper, "_requests", Requests)
    pair.clock.advance(LAG_MS + 1)
    await eventually(lambda: isr(pair) == [0])
    own = pair.by_id[0].broker.cluster.this_broker
    assert [(change.name.topic, change.isr) for change in proposals] == [("t", {0: own.epoch})]
    assert proposals[0].topic_id == pair.on(0).topic_id


async def test_a_change_that_was_decided_on_an_older_state_is_dropped(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pair.create()
    keeper = pair.by_id[0].broker.replication.isr
    partition = pair.on(0)
    older = partition.role._replace(epoch=partition.role.epoch - 1)
    monkeypatch.setattr(keeper, "_requests", lambda: pytest.fail("the controller is asked"))
    assert not await keeper._try(partition, older, [0], {})


async def test_a_change_for_a_topic_that_was_made_again_is_dropped(pair: Pair) -> None:
    """The write failed, and is tried again. The next topic of the name has the same epochs."""
    await pair.create()
    keeper = pair.by_id[0].broker.replication.isr
    partition = pair.on(0)
    role = partition.role
    await pair.by_id[0].broker.cluster.delete_topic("t")
    await pair.create()
    new_role = pair.on(0).role
    assert (role.epoch, role.partition_epoch) == (new_role.epoch, new_role.partition_epoch)
    assert not await keeper._try(partition, role, [0], {})
    assert isr(pair) == [0, 1]


async def test_a_change_for_a_topic_that_is_made_again_meanwhile_is_dropped(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller was asked, and cannot do it. The next topic has the same epochs."""
    await pair.create()
    keeper = pair.by_id[0].broker.replication.isr
    partition = pair.on(0)

    class Requests:
        async def change(self, _change: IsrProposal) -> bool:
            await pair.by_id[0].broker.cluster.delete_topic("t")
            await pair.create()
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    monkeypatch.setattr(keeper, "_requests", Requests)
    assert not await keeper._try(partition, partition.role, [0], {})
    assert isr(pair) == [0, 1]


async def test_a_change_is_dropped_where_the_state_changes_behind_the_decision(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller's state comes before the change has begun. It may have taken a dead broker out
    that the decision still counts.
    """
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    await pair.by_id[1].broker.replication.close()
    append(pair, b"b")
    pair.clock.advance(LAG_MS + 1)
    keeper = pair.by_id[0].broker.replication.isr
    await eventually(lambda: isr(pair) == [0] and not keeper._changing_partitions)
    partition = pair.on(0)
    rules = pair.by_id[0].broker.partitions.replica_rules
    leadership = pair.by_id[0].broker.cluster.leadership
    new_isrs: list[list[int]] = []

    async def write(_name: TopicPartition, new_isr: list[int], **_epochs: int) -> bool:
        new_isrs.append(new_isr)
        return True

    monkeypatch.setattr(leadership, "change_isr", write)
    partition.follower_fetched(FollowerId(1, -1), 2, 0)
    keeper.note_fetch(partition, FollowerId(1, -1))
    assert partition in keeper._changing_partitions
    role = partition.role
    assert isinstance(role, Leader)
    partition.take_role(role._replace(partition_epoch=role.partition_epoch + 1), rules)
    await eventually(lambda: not keeper._changing_partitions)
    assert new_isrs == []


async def test_a_state_that_somebody_else_wrote_is_not_overwritten(pair: Pair) -> None:
    await pair.create()
    cluster = pair.by_id[0].broker.cluster
    state = cluster.image.topics["t"].partitions[0]
    name = TopicPartition("t", 0)
    assert await cluster.leadership.change_isr(
        name, [0], leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch
    )
    assert not await cluster.leadership.change_isr(
        name, [0, 1], leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch
    )
    assert isr(pair) == [0]
