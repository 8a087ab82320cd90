"""A broker hands leadership over before it stops."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.replication.controlled_shutdown import ControlledShutdown
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.ids import TopicPartition
from tests.support.waiting import eventually
from tests.unit.broker.replication.records import append, until_equal

if TYPE_CHECKING:
    from minibroker.broker.config.broker import BrokerConfig
    from tests.unit.broker.replication.conftest import Pair

RETRIES = {"controlled.shutdown.max.retries": "3"}


class Pauses:
    """Counts pauses, and makes them short."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def of(pair: Pair, broker_id: int, sleep: Pauses) -> ControlledShutdown:
    """Return the shutdown of a broker that asks up to three times."""
    broker = pair.by_id[broker_id].broker
    config: BrokerConfig = broker.config.with_overrides(RETRIES)
    return ControlledShutdown(broker.cluster, config, sleep=sleep)


@pytest.mark.parametrize("broker_id", [0, 1])
async def test_the_other_broker_leads_before_this_one_stops(pair: Pair, broker_id: int) -> None:
    """Broker 0 is the controller itself; broker 1 asks it."""
    await pair.create(leader=broker_id)
    append(pair, b"a", broker_id=broker_id)
    await until_equal(pair)
    pauses = Pauses()
    assert await of(pair, broker_id, pauses).run()
    assert pauses.seconds == []
    cluster = pair.by_id[1 - broker_id].broker.cluster
    await eventually(lambda: pair.on(1 - broker_id).is_leader)
    assert set(cluster.image.brokers) == {0, 1}


async def test_a_clean_stop_hands_over(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    await pair.create(leader=1)
    append(pair, b"a", broker_id=1)
    await until_equal(pair)
    requests: list[int] = []
    cluster = pair.by_id[0].broker.cluster
    shut_down = cluster.leadership.shut_down_broker

    async def heard(broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        requests.append(broker_id)
        assert broker_id in cluster.image.brokers
        return await shut_down(broker_id, broker_epoch)

    monkeypatch.setattr(cluster.leadership, "shut_down_broker", heard)
    await pair.stop(1)
    assert requests == [1]
    await eventually(lambda: pair.on(0).is_leader)
    append(pair, b"b")
    assert pair.on(0).high_watermark == 2


async def test_nothing_is_handed_over_where_the_setting_says_so(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = pair.by_id[0].broker.cluster
    await pair.start(2, **{"controlled.shutdown.enable": "false"})

    async def refuse(_broker_id: int, _broker_epoch: int) -> list[TopicPartition]:
        raise AssertionError("nobody asks")

    with monkeypatch.context() as patched:
        patched.setattr(cluster.leadership, "shut_down_broker", refuse)
        await pair.stop(2)


async def test_it_asks_again_while_no_other_replica_can_lead(pair: Pair) -> None:
    """Broker 0 has not caught up."""
    await pair.create(leader=1)
    cluster = pair.by_id[1].broker.cluster
    state = cluster.image.topics["t"].partitions[0]
    assert await cluster.leadership.change_isr(
        TopicPartition("t", 0),
        [1],
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
    )
    await pair.by_id[0].broker.replication.close()
    topics = pair.by_id[0].broker.cluster.image.topics
    await eventually(lambda: topics["t"].partitions[0].isr == [1])
    pauses = Pauses()
    assert not await of(pair, 1, pauses).run()
    assert pauses.seconds == [5.0, 5.0]


async def test_it_asks_again_while_the_controller_cannot_answer(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = pair.by_id[0].broker.cluster
    errors = [CoordinationError("the tree is away")]
    shut_down = cluster.leadership.shut_down_broker

    async def away(broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        if errors:
            raise errors.pop()
        return await shut_down(broker_id, broker_epoch)

    monkeypatch.setattr(cluster.leadership, "shut_down_broker", away)
    pauses = Pauses()
    assert await of(pair, 1, pauses).run()
    assert pauses.seconds == [5.0]


async def test_it_waits_no_longer_when_nobody_else_is_left(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause ends with the other broker."""
    never = asyncio.Event()
    began = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        began.set()
        await never.wait()

    broker = pair.by_id[0].broker
    config = broker.config.with_overrides(RETRIES)

    async def away(_broker_id: int, _broker_epoch: int) -> list[TopicPartition]:
        raise CoordinationError("the tree is away")

    monkeypatch.setattr(broker.cluster.leadership, "shut_down_broker", away)
    running = asyncio.create_task(ControlledShutdown(broker.cluster, config, sleep=sleep).run())
    await began.wait()
    await pair.stop(1)
    assert not await running
