"""Topics that are made behind the answer; over both homes, where no controller gives leaders."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import auto_creation
from minibroker.broker.cluster.creation_limits import (
    check_added_partitions,
    check_new_partitions,
    check_records,
    records_of_topic,
)
from minibroker.broker.cluster.internal_topics import NewTopic, new_topic
from minibroker.broker.config.broker import BrokerConfig
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.tree import Operation, Tree


ONE = NewTopic(1, 1, {})
WAIT_S = 180


@pytest.fixture
def deposed(cluster: Cluster) -> Cluster:
    """The cluster, after another broker became controller."""
    cluster._election.lose()
    return cluster


async def finish(cluster: Cluster) -> None:
    """Return when nothing is under way any more."""
    task = cluster.auto_creation._task
    assert task is not None
    async with asyncio.timeout(WAIT_S):
        await task


async def test_a_creation_in_progress_is_written_once(deposed: Cluster, cluster_tree: Tree) -> None:
    names = [f"t{number}" for number in range(auto_creation.CREATED_AT_ONCE + 5)]
    async with deposed._context.lock:  # nothing is written before this is over
        for _ in range(2):
            deposed.auto_creation.begin(dict.fromkeys(names, ONE))
        assert deposed.image.topics == {}
    await finish(deposed)
    assert sorted(await cluster_tree.children("/brokers/topics")) == sorted(names)
    assert deposed.auto_creation._pending == {}


async def test_no_more_is_under_way_than_the_limit(
    deposed: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_creation, "PENDING_MAX", 3)
    async with deposed._context.lock:
        deposed.auto_creation.begin(dict.fromkeys("abcde", ONE))
        assert list(deposed.auto_creation._pending) == ["a", "b", "c"]
    await finish(deposed)
    deposed.auto_creation.begin({"d": ONE})
    await finish(deposed)
    assert set(deposed.image.topics) == set("abcd")


async def test_names_that_collide_are_not_written_together(
    deposed: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    deposed.auto_creation.begin(dict.fromkeys(["a.b", "a_b", "c"], ONE))
    await finish(deposed)
    assert set(deposed.image.topics) == {"a.b", "c"}
    assert "topic a_b was not created" in caplog.text
    assert "collides with existing topics: a.b" in caplog.text


async def test_a_topic_that_cannot_be_written_is_told_and_the_others_are(
    deposed: Cluster,
    cluster_tree: Tree,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    multi = cluster_tree.multi

    async def refuse(operations: Sequence[Operation]) -> list[str | int]:
        if any(operation.path == "/brokers/topics/bad" for operation in operations):
            raise CoordinationError("away")
        return await multi(operations)

    monkeypatch.setattr(cluster_tree, "multi", refuse)
    deposed.auto_creation.begin({"bad": ONE, "wide": NewTopic(1, 3, {}), "good": ONE})
    await finish(deposed)
    assert set(deposed.image.topics) == {"good"}
    assert "topic bad was not created: away" in caplog.text
    assert "topic wide was not created: INVALID_REPLICATION_FACTOR" in caplog.text
    monkeypatch.undo()
    deposed.auto_creation.begin({"bad": ONE})
    await finish(deposed)
    assert set(deposed.image.topics) == {"good", "bad"}


# The limits of one request that creates, and that no source of topics goes past them.


@pytest.mark.parametrize("check", [check_new_partitions, check_added_partitions, check_records])
def test_ten_thousand_are_allowed_and_one_more_is_not(check: Callable[[int], None]) -> None:
    check(10_000)
    with pytest.raises(KafkaError) as caught:
        check(10_001)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION


def test_a_topic_its_configs_and_its_partitions_are_a_record_each() -> None:
    assert records_of_topic(3, {"a": "b", "c": "d"}) == 6


@pytest.mark.parametrize("count", [10_000, 10_001, 2**31 - 1])
async def test_no_request_makes_a_topic_above_the_limit_of_partitions(
    cluster: Cluster, count: int
) -> None:
    with pytest.raises(KafkaError) as caught:
        await cluster.create_topic("large", count)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION
    assert not cluster.image.topics


async def test_no_request_adds_partitions_above_the_limit(cluster: Cluster) -> None:
    await cluster.create_topic("t", 2)
    with pytest.raises(KafkaError) as caught:
        await cluster.topics.add_partitions("t", 10_003)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION
    assert len(cluster.image.topics["t"].partitions) == 2


# Settings of the topics that the broker makes by itself.


def values_of(name: str, config: BrokerConfig) -> tuple[int, int, dict[str, str]]:
    topic = new_topic(name, config)
    return topic.partition_count, topic.replication_factor, topic.configs


def test_internal_topics_are_made_as_their_coordinators_want_them() -> None:
    config = BrokerConfig(
        {
            "offsets.topic.num.partitions": "3",
            "offsets.topic.segment.bytes": "1048576",
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.min.isr": "2",
        }
    )
    assert values_of("__consumer_offsets", config) == (
        3,
        1,
        {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "1048576"},
    )
    assert values_of("__transaction_state", config) == (
        4,
        1,
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "2",
            "segment.bytes": "104857600",
            "unclean.leader.election.enable": "false",
        },
    )


def test_any_other_topic_is_made_by_the_defaults() -> None:
    config = BrokerConfig({"num.partitions": "5"})
    assert values_of("t", config) == (5, 1, {})
