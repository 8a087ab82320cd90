"""Features: levels in force, what may be changed, and the node that Kafka 3.9 can read."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.feature_update import FeatureUpdate
from minibroker.broker.cluster.features import (
    ELIGIBLE_LEADER_REPLICAS,
    GROUP_VERSION,
    METADATA_VERSION,
    SAFE_DOWNGRADE,
    TRANSACTION_VERSION,
    UNSAFE_DOWNGRADE,
    UPGRADE,
)
from minibroker.broker.cluster.paths import DEFAULT_ENTITY
from minibroker.broker.cluster.zookeeper import ZooKeeperTree
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from tests.support.cluster import Recorder, add_broker, new_cluster

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.tree import Tree
    from tests.support.peers import ZooKeeper


async def test_a_new_cluster_has_the_newest_levels(cluster: Cluster) -> None:
    features = cluster.features
    assert features.finalized() == {GROUP_VERSION: 1, METADATA_VERSION: 33, TRANSACTION_VERSION: 2}
    assert features.epoch == 0
    assert features.level("share.version") == 0


async def test_a_changed_level_outlives_the_broker_and_kafka_sees_no_feature(
    new_tree: Callable[[], Tree],
) -> None:
    tree = new_tree()
    cluster = new_cluster(tree, Recorder())
    await cluster.start()
    update = FeatureUpdate(TRANSACTION_VERSION, 0, SAFE_DOWNGRADE)
    await cluster.features.update([update], validate_only=False)
    assert cluster.features.level(TRANSACTION_VERSION) == 0
    assert TRANSACTION_VERSION not in cluster.features.finalized()
    assert cluster.features.epoch == 1
    node = json.loads((await tree.get("/feature"))[0])
    assert (node["features"], node["version"], node["status"]) == ({}, 2, 1)
    await cluster.close()
    again = new_cluster(new_tree(), Recorder())
    await again.start()
    assert again.features.level(TRANSACTION_VERSION) == 0
    assert again.features.epoch == 1
    await again.close()


async def test_beside_kafka_the_second_transaction_protocol_is_not_in_force(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    """A coordinator on Kafka 3.9 does not know it, and clients take it from any broker."""
    features = cluster.features
    await add_broker(cluster, cluster_tree, 7, is_minibroker=False)
    assert TRANSACTION_VERSION not in features.finalized()
    async with cluster._context.lock:
        await features.stay_below_kafka()
        await features.stay_below_kafka()
    assert features.epoch == 1  # clients hear of it
    node = json.loads((await cluster_tree.get("/feature"))[0])
    assert node["minibroker_features"] == {TRANSACTION_VERSION: {"max_version_level": 0}}
    assert features.level(GROUP_VERSION) == 1
    with pytest.raises(KafkaError, match=r"Broker 7 does not support this feature\."):
        await features.update([FeatureUpdate(TRANSACTION_VERSION, 2, UPGRADE)], validate_only=False)
    async with cluster._context.lock:  # nobody reads the registrations meanwhile
        await cluster_tree.delete(paths.broker(7))
        await cluster._updater.apply_brokers({0: cluster.image.brokers[0]})
    assert features.level(TRANSACTION_VERSION) == 0  # it may come back
    await features.update([FeatureUpdate(TRANSACTION_VERSION, 2, UPGRADE)], validate_only=False)
    assert features.level(TRANSACTION_VERSION) == 2


async def test_levels_of_the_configuration_hold_until_they_are_changed(
    new_tree: Callable[[], Tree],
) -> None:
    cluster = new_cluster(new_tree(), Recorder(), feature_levels={TRANSACTION_VERSION: 1})
    await cluster.start()
    assert cluster.features.level(TRANSACTION_VERSION) == 1
    await cluster.features.update(
        [FeatureUpdate(TRANSACTION_VERSION, 2, UPGRADE)], validate_only=False
    )
    assert cluster.features.level(TRANSACTION_VERSION) == 2
    await cluster.close()


async def test_a_broker_that_passes_for_kafka_3_9_has_no_features(
    new_tree: Callable[[], Tree],
) -> None:
    cluster = new_cluster(new_tree(), Recorder(), kafka_release="3.9")
    await cluster.start()
    assert cluster.features.supported == {}
    assert cluster.features.finalized() == {}
    assert cluster.features.level(TRANSACTION_VERSION) == 0
    await cluster.close()


@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        (TRANSACTION_VERSION, 1, UPGRADE),
        (TRANSACTION_VERSION, 3, UPGRADE),
        (TRANSACTION_VERSION, -1, SAFE_DOWNGRADE),
        (TRANSACTION_VERSION, 1, 0),
        (TRANSACTION_VERSION, 1, 4),
        ("no.such.version", 1, UPGRADE),
        ("no.such.version", 0, SAFE_DOWNGRADE),
        (METADATA_VERSION, 32, UNSAFE_DOWNGRADE),
        (METADATA_VERSION, 6, UNSAFE_DOWNGRADE),
    ],
)
async def test_refused_changes_change_nothing(
    cluster: Cluster, name: str, level: int, kind: int
) -> None:
    good = FeatureUpdate(GROUP_VERSION, 0, SAFE_DOWNGRADE)
    with pytest.raises(KafkaError) as refused:
        await cluster.features.update([good, FeatureUpdate(name, level, kind)], validate_only=False)
    assert refused.value.code == ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.features.level(GROUP_VERSION) == 1
    assert cluster.features.epoch == 0


async def test_metadata_goes_back_only_where_no_record_changed(
    new_tree: Callable[[], Tree],
) -> None:
    cluster = new_cluster(new_tree(), Recorder(), kafka_release="4.0")
    await cluster.start()
    features = cluster.features
    await features.update(
        [FeatureUpdate(METADATA_VERSION, 23, SAFE_DOWNGRADE)], validate_only=False
    )
    with pytest.raises(KafkaError, match=r"Unsupported metadata\.version downgrade from 23 to 22"):
        await features.update(
            [FeatureUpdate(METADATA_VERSION, 22, SAFE_DOWNGRADE)], validate_only=False
        )
    await cluster.close()


async def test_validate_only_and_the_same_level_write_nothing(cluster: Cluster) -> None:
    features = cluster.features
    down = FeatureUpdate(TRANSACTION_VERSION, 0, SAFE_DOWNGRADE)
    await features.update([down], validate_only=True)
    assert (features.level(TRANSACTION_VERSION), features.epoch) == (2, 0)
    await features.update([down], validate_only=False)
    await features.update([down], validate_only=False)
    assert features.epoch == 1
    with pytest.raises(KafkaError, match="Can't downgrade to a newer version"):
        await features.update([down._replace(level=1)], validate_only=False)


@pytest.mark.java
async def test_another_broker_hears_of_a_change(zookeeper: ZooKeeper) -> None:
    connect = f"{zookeeper.connect}/features"
    clusters = [
        new_cluster(ZooKeeperTree(connect, session_timeout_ms=6_000), Recorder(), broker_id=number)
        for number in range(2)
    ]
    for cluster in clusters:
        await cluster.start()
    first, second = clusters
    down = FeatureUpdate(TRANSACTION_VERSION, 1, SAFE_DOWNGRADE)
    await first.features.update([down], validate_only=False)
    async with asyncio.timeout(60):
        while second.features.epoch != first.features.epoch:  # noqa: ASYNC110  ZooKeeper's time
            await asyncio.sleep(0)
    assert second.features.level(TRANSACTION_VERSION) == 1
    for cluster in clusters:
        await cluster.close()


async def test_eligible_leader_replicas_fix_the_clusters_min_insync_replicas(
    tmp_path: Path,
) -> None:
    """Put in force, the feature writes the cluster's value and removes those of the brokers."""

    def tree() -> Tree:
        return EmbeddedTree(tmp_path / "metadata.db", SystemClock())

    cluster = new_cluster(tree(), Recorder(), min_insync_replicas=2)
    await cluster.start()
    assert cluster.features.supported[ELIGIBLE_LEADER_REPLICAS] == (0, 1)
    assert cluster.features.level(ELIGIBLE_LEADER_REPLICAS) == 0
    assert cluster.config_of("brokers", DEFAULT_ENTITY) == {}
    await cluster.alter_config("brokers", "0", {"min.insync.replicas": "1", "log.roll.ms": "5"})
    up = FeatureUpdate(ELIGIBLE_LEADER_REPLICAS, 1, UPGRADE)
    await cluster.update_features([up], validate_only=True)
    assert cluster.config_of("brokers", DEFAULT_ENTITY) == {}
    await cluster.update_features([up], validate_only=False)
    assert cluster.features.finalized()[ELIGIBLE_LEADER_REPLICAS] == 1
    assert cluster.config_of("brokers", DEFAULT_ENTITY) == {"min.insync.replicas": "2"}
    assert cluster.config_of("brokers", "0") == {"log.roll.ms": "5"}
    await cluster.alter_config("brokers", DEFAULT_ENTITY, {"min.insync.replicas": "1"})
    await cluster.close()
    again = new_cluster(tree(), Recorder(), min_insync_replicas=2)
    await again.start()
    assert again.config_of("brokers", DEFAULT_ENTITY) == {"min.insync.replicas": "1"}
    await again.close()


async def test_a_cluster_may_begin_with_eligible_leader_replicas(tmp_path: Path) -> None:
    cluster = new_cluster(
        EmbeddedTree(tmp_path / "metadata.db", SystemClock()),
        Recorder(),
        feature_levels={ELIGIBLE_LEADER_REPLICAS: 1},
    )
    await cluster.start()
    assert cluster.config_of("brokers", DEFAULT_ENTITY) == {"min.insync.replicas": "1"}
    await cluster.close()


@pytest.mark.parametrize("release", ["3.9", "4.0"])
async def test_older_releases_have_no_eligible_leader_replicas(
    tmp_path: Path, release: str
) -> None:
    cluster = new_cluster(
        EmbeddedTree(tmp_path / "metadata.db", SystemClock()), Recorder(), kafka_release=release
    )
    assert ELIGIBLE_LEADER_REPLICAS not in cluster.features.supported
