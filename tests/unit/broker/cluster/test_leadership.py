"""Changes of leaders that somebody asks for: under the lock, and on the controller only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.shared import SharedTree
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from tests.support.cluster import Recorder, code_of, new_cluster
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from minibroker.broker.cluster.cluster import Cluster

    Two = tuple[Cluster, Cluster]

NAME = TopicPartition("t", 0)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Two]:
    """Broker 0, the controller, and broker 1; both have `t`, which broker 0 leads."""
    home = SharedTree(tmp_path / "metadata.db", SystemClock())
    clusters = [new_cluster(home.session(), Recorder(), broker_id) for broker_id in range(2)]
    for cluster in clusters:
        await cluster.start()
    await eventually(lambda: len(clusters[0].image.brokers) == 2)
    await clusters[0].create_topic("t", assignment={0: [0, 1]})
    await eventually(lambda: "t" in clusters[1].image.topics)
    yield clusters[0], clusters[1]
    for cluster in reversed(clusters):
        await cluster.close()


async def test_the_controller_moves_a_leader_and_elects_the_preferred_one(two: Two) -> None:
    controller, other = two
    await controller.leadership.move("t", 0, 1)
    await eventually(lambda: other.image.topics["t"].partitions[0].leader == 1)
    await controller.leadership.elect("t", 0, unclean=False)
    await eventually(lambda: other.image.topics["t"].partitions[0].leader == 0)


async def test_another_broker_refuses_what_only_the_controller_does(two: Two) -> None:
    leadership = two[1].leadership
    asked: list[Callable[[], Awaitable[object]]] = [
        lambda: leadership.move("t", 0, 1),
        lambda: leadership.shut_down_broker(0, -1),
        lambda: leadership.alter_isrs(0, {}),
    ]
    for ask in asked:
        with pytest.raises(KafkaError) as caught:
            await ask()
        assert code_of(caught)[0] == ErrorCode.NOT_CONTROLLER
    await leadership.allow_unclean(None)  # the controller hears of the setting, too


async def test_a_leader_writes_its_isr_whoever_is_controller(two: Two) -> None:
    controller, other = two
    await controller.leadership.move("t", 0, 1)
    await eventually(lambda: other.image.topics["t"].partitions[0].leader == 1)
    state = other.image.topics["t"].partitions[0]
    epochs = {"leader_epoch": state.leader_epoch, "partition_epoch": state.partition_epoch}
    assert await other.leadership.change_isr(NAME, [1], **epochs)
    assert not await other.leadership.change_isr(NAME, [0, 1], **epochs)  # it is an older state
    await eventually(lambda: controller.image.topics["t"].partitions[0].isr == [1])


async def test_the_controller_hears_of_a_failed_directory(two: Two) -> None:
    """Another broker tells it by a node in the tree; then the controller asks that broker."""
    controller, other = two
    await controller.leadership.replicas_failed([NAME], broker_id=0)
    partition = controller.image.topics["t"].partitions[0]
    assert (partition.leader, partition.offline) == (1, [0])
    asked: list[int] = []
    controller.have_replicas_asked(asked.append)
    await other.leadership.replicas_failed([NAME])
    assert other.image.topics["t"].partitions[0].offline == [1]
    await eventually(lambda: asked == [1])
