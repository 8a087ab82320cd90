"""Several brokers of one process: how they start and stop together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.app import Broker
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.members import configs_of
from minibroker.broker.config.topic_option import TopicToCreate
from minibroker.broker.local_cluster import LocalCluster
from minibroker.clock import SystemClock
from minibroker.kafka.errors import MinibrokerError
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.cluster.image import PartitionImage


def new_cluster(directory: Path, count: int = 3) -> tuple[LocalCluster, list[Broker]]:
    config = BrokerConfig(
        {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory), "broker.id": "4"}
    )
    cluster = LocalCluster(directory, SystemClock())
    brokers = [Broker(member, tree=cluster.tree.session()) for member in configs_of(config, count)]
    cluster.members.extend(brokers)
    return cluster, brokers


def partitions_of(broker: Broker, topic: str) -> list[PartitionImage]:
    return broker.cluster.image.topics[topic].partitions


async def test_each_knows_all_and_one_is_controller(tmp_path: Path) -> None:
    cluster, brokers = new_cluster(tmp_path)
    await cluster.start([TopicToCreate("t", 3, {})])
    for broker in brokers:
        assert list(broker.cluster.image.brokers) == [4, 5, 6]
    assert [broker.cluster.is_controller for broker in brokers].count(True) == 1
    assert [sorted(state.isr) for state in partitions_of(brokers[0], "t")] == [[4, 5, 6]] * 3
    await cluster.stop()
    assert [broker.config.log_dirs for broker in brokers] == [
        (str(tmp_path / f"broker-{broker_id}"),) for broker_id in (4, 5, 6)
    ]


async def test_leaders_and_replicas_in_sync_stay_over_a_restart_in_new_epochs(
    tmp_path: Path,
) -> None:
    cluster, brokers = new_cluster(tmp_path)
    await cluster.start([TopicToCreate("t", 30, {}), TopicToCreate("state", 1, {}, 1)])
    old_states = [(state.leader, state.isr) for state in partitions_of(brokers[0], "t")]
    assert [len(state.replicas) for state in partitions_of(brokers[0], "state")] == [1]
    await cluster.stop()
    cluster, brokers = new_cluster(tmp_path)
    await cluster.start()
    after = partitions_of(brokers[0], "t")
    assert [(state.leader, state.isr) for state in after] == old_states
    assert {state.leader_epoch for state in after} == {1}
    await cluster.stop()


async def test_brokers_that_are_not_started_lead_nothing(tmp_path: Path) -> None:
    """A start with fewer brokers moves what the missing one led."""
    cluster, _ = new_cluster(tmp_path)
    await cluster.start([TopicToCreate("t", 3, {})])
    await cluster.stop()
    cluster, brokers = new_cluster(tmp_path, 2)
    await cluster.start()
    await eventually(lambda: {state.leader for state in partitions_of(brokers[1], "t")} <= {4, 5})
    await cluster.stop()


async def test_a_failed_start_leaves_nothing_running(tmp_path: Path) -> None:
    cluster, _ = new_cluster(tmp_path)
    (tmp_path / "broker-5").write_text("no directory")
    with pytest.raises(MinibrokerError, match="broker-5"):
        await cluster.start()
    (tmp_path / "broker-5").unlink()
    cluster, _ = new_cluster(tmp_path)
    await cluster.start()
    await cluster.stop()


async def test_the_failure_of_one_is_that_of_all(tmp_path: Path) -> None:
    cluster, brokers = new_cluster(tmp_path, 2)
    await cluster.start()
    brokers[1].failure.set_result("the disk is gone")
    assert await cluster.failure == "the disk is gone"
    await cluster.stop()
