"""Topics that are made behind the answer; over both homes, where no controller gives leaders."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import auto_creation
from minibroker.broker.cluster.internal_topics import NewTopic
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    task = cluster._auto_creation._task
    assert task is not None
    async with asyncio.timeout(WAIT_S):
        await task


async def test_a_creation_in_progress_is_written_once(deposed: Cluster, cluster_tree: Tree) -> None:
    names = [f"t{number}" for number in range(auto_creation.CREATED_AT_ONCE + 5)]
    async with deposed._context.lock:  # nothing is written before this is over
        for _ in range(2):
            deposed.begin_topics(dict.fromkeys(names, ONE))
        assert deposed.image.topics == {}
    await finish(deposed)
    assert sorted(await cluster_tree.children("/brokers/topics")) == sorted(names)
    assert deposed._auto_creation._pending == {}


async def test_no_more_is_under_way_than_the_limit(
    deposed: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_creation, "PENDING_MAX", 3)
    async with deposed._context.lock:
        deposed.begin_topics(dict.fromkeys("abcde", ONE))
        assert list(deposed._auto_creation._pending) == ["a", "b", "c"]
    await finish(deposed)
    deposed.begin_topics({"d": ONE})
    await finish(deposed)
    assert set(deposed.image.topics) == set("abcd")


async def test_names_that_collide_are_not_written_together(
    deposed: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    deposed.begin_topics(dict.fromkeys(["a.b", "a_b", "c"], ONE))
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
    deposed.begin_topics({"bad": ONE, "wide": NewTopic(1, 3, {}), "good": ONE})
    await finish(deposed)
    assert set(deposed.image.topics) == {"good"}
    assert "topic bad was not created: away" in caplog.text
    assert "topic wide was not created: INVALID_REPLICATION_FACTOR" in caplog.text
    monkeypatch.undo()
    deposed.begin_topics({"bad": ONE})
    await finish(deposed)
    assert set(deposed.image.topics) == {"good", "bad"}
