"""The facade over both homes: start, restart and what the tree holds then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import FEATURE_NODE
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.updates import STATES_PER_STEP
from minibroker.clock import SystemClock
from minibroker.kafka.errors import AwayError
from tests.support.cluster import Recorder, new_cluster

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.cluster.tree import Tree


async def test_start_makes_what_kafka_makes(cluster: Cluster, cluster_tree: Tree) -> None:
    for path in paths.PERSISTENT:
        assert (await cluster_tree.get(path))[0] == b"", path
    image = cluster.image
    assert len(image.cluster_id) == 22
    assert json.loads((await cluster_tree.get("/cluster/id"))[0])["id"] == image.cluster_id
    assert (image.controller_id, image.controller_epoch) == (0, 1)
    assert cluster.is_controller
    assert (await cluster_tree.get("/controller_epoch"))[0] == b"1"
    assert (await cluster_tree.get("/feature"))[0] == FEATURE_NODE
    stat = await cluster_tree.exists("/brokers/ids/0")
    assert stat is not None
    assert stat.ephemeral_owner == cluster_tree.session_id
    assert image.brokers == {0: cluster.this_broker}
    assert cluster.this_broker.epoch == stat.czxid


@pytest.mark.parametrize("call", ["get_many", "create", "multi", "children"])
async def test_a_start_goes_on_when_the_tree_was_away_for_a_moment(
    cluster_tree: Tree, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setattr("minibroker.broker.cluster.cluster.AWAY_S", 0)
    whole = getattr(cluster_tree, call)
    failures = iter([AwayError("away"), AwayError("away")])

    async def away_at_first(*arguments: Any, **options: Any) -> Any:
        for failure in failures:
            raise failure
        return await whole(*arguments, **options)

    monkeypatch.setattr(cluster_tree, call, away_at_first)
    cluster = new_cluster(cluster_tree, Recorder())
    await cluster.start()
    assert next(failures, None) is None
    assert cluster.is_controller
    assert set(cluster.image.brokers) == {0}
    await cluster.close()


@pytest.mark.parametrize("call", ["watch_many", "watch_children", "exists"])
async def test_a_start_goes_on_when_the_tree_was_away_while_it_began_to_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    tree = SharedTree(tmp_path / "metadata.db", SystemClock()).session()
    monkeypatch.setattr("minibroker.broker.cluster.cluster.AWAY_S", 0)
    whole = getattr(tree, call)
    failures = iter([AwayError("away"), AwayError("away")])

    async def away_at_first(*arguments: Any, **options: Any) -> Any:
        for failure in failures:
            raise failure
        return await whole(*arguments, **options)

    monkeypatch.setattr(tree, call, away_at_first)
    cluster = new_cluster(tree, Recorder())
    await cluster.start()
    assert next(failures, None) is None
    assert cluster.is_controller
    await cluster.close()


async def test_a_start_ends_when_the_tree_stays_away(
    cluster_tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> list[str]:
        raise AwayError("away")

    monkeypatch.setattr(cluster_tree, "get_many", away)
    cluster = new_cluster(cluster_tree, Recorder(), registration_timeout_s=0)
    with pytest.raises(AwayError):
        await cluster.start()


async def test_restart_finds_everything_and_tells(new_tree: Callable[[], Tree]) -> None:
    """Topics, configs and the cluster id are there; leader epochs stay; the broker epoch grows."""
    first = new_cluster(new_tree(), Recorder())
    await first.start()
    topic = await first.create_topic("t", 2, configs={"retention.ms": "1"})
    await first.alter_config("users", "u/clients/c", {"producer_byte_rate": "1"})
    await first.alter_config("brokers", "<default>", {"a": "b"})
    await first.close()

    heard = Recorder()
    second = new_cluster(new_tree(), heard)
    await second.start()
    assert sorted(heard.take()) == [
        ("config", "brokers", "<default>"),
        ("config", "users", "u/clients/c"),
        ("created", "t", 2),
    ]
    topic_image = second.image.topics["t"]
    assert topic_image.topic_id == topic.topic_id
    assert topic_image.partitions == topic.partitions
    assert second.config_of("topics", "t") == {"retention.ms": "1"}
    assert second.config_of("users", "u/clients/c") == {"producer_byte_rate": "1"}
    assert second.image.cluster_id == first.image.cluster_id
    assert second.image.controller_epoch == 2
    assert second.this_broker.epoch > first.this_broker.epoch
    await second.close()


async def test_a_restart_tells_of_each_partition_once_and_equal_ones_share_an_image(
    new_tree: Callable[[], Tree],
) -> None:
    first = new_cluster(new_tree(), Recorder())
    await first.start()
    topic = await first.create_topic("t", 10)
    await first.close()

    leaders_heard: list[list[int]] = []

    class LeaderRecorder(Recorder):
        """Records also which leaders the image has when a partition is heard of."""

        def on_leadership(self, topic: TopicImage, partition: int) -> None:
            super().on_leadership(topic, partition)
            leaders_heard.append([image.leader for image in topic.partitions])

    heard = LeaderRecorder()
    second = new_cluster(new_tree(), heard)
    await second.start()
    events = heard.take()
    assert events[0] == ("created", "t", 10)
    indexes = [event[2] for event in events if event[0] == "leadership"]
    assert indexes == list(range(STATES_PER_STEP, 10))
    assert leaders_heard == [[0] * 10] * len(indexes)
    partitions = second.image.topics["t"].partitions
    assert partitions == topic.partitions
    assert all(partition is partitions[0] for partition in partitions)
    await second.close()


async def test_producer_ids_come_from_any_started_cluster(cluster: Cluster) -> None:
    first = cluster.producer_ids.next()
    assert not isinstance(first, int)
    assert await first == 0
    assert cluster.producer_ids.next() == 1
