"""AlterPartition's rule as a table, then what is written."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import RECOVERING, PartitionState, encode_state
from minibroker.broker.cluster.image import PartitionImage
from minibroker.broker.cluster.isr_changes import IsrChange, altered_state
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.ids import TopicId, TopicPartition
from tests.support.cluster import add_broker, add_topic_of_kafka, stop_following
from tests.support.images import partition_image

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.tree import Operation, Tree

NAME = TopicPartition("t", 0)


def partition(*, isr: list[int], recovery: int = 0) -> PartitionImage:
    """Replicas 1, 2 and 3; broker 1 leads in epoch 5, and version 7 of the state is known."""
    return partition_image(
        leader=1,
        leader_epoch=5,
        replicas=[1, 2, 3],
        isr=isr,
        controller_epoch=2,
        partition_epoch=7,
        leader_recovery_state=recovery,
    )


@pytest.mark.parametrize(
    ("image", "change", "outcome"),
    [
        # A follower comes in, or goes; the leader epoch stays.
        (partition(isr=[1]), IsrChange(5, 7, [1, 2]), PartitionState(1, 5, [1, 2], 9)),
        (partition(isr=[1, 2]), IsrChange(5, 7, [1]), PartitionState(1, 5, [1], 9)),
        # The epochs are others.
        (partition(isr=[1]), IsrChange(6, 7, [1, 2]), ErrorCode.NOT_CONTROLLER),
        (partition(isr=[1]), IsrChange(5, 8, [1, 2]), ErrorCode.NOT_CONTROLLER),
        (partition(isr=[1]), IsrChange(4, 8, [1, 2]), ErrorCode.NOT_CONTROLLER),
        (partition(isr=[1]), IsrChange(4, 7, [1, 2]), ErrorCode.FENCED_LEADER_EPOCH),
        (partition(isr=[1]), IsrChange(5, 6, [1, 2]), ErrorCode.INVALID_UPDATE_VERSION),
        # It is so already: the leader did not get the answer.
        (partition(isr=[1, 2]), IsrChange(5, 6, [1, 2]), ErrorCode.NONE),
        (partition(isr=[1, 2]), IsrChange(5, 7, [1, 2]), ErrorCode.NONE),
        # Broker 4 is gone, or stops.
        (partition(isr=[1]), IsrChange(5, 7, [1, 3]), ErrorCode.INELIGIBLE_REPLICA),
        # After an unclean election the leader is alone until it has recovered.
        (
            partition(isr=[1], recovery=RECOVERING),
            IsrChange(5, 7, [1, 2]),
            PartitionState(1, 5, [1, 2], 9),
        ),
        (
            partition(isr=[1], recovery=RECOVERING),
            IsrChange(5, 7, [1]),
            PartitionState(1, 5, [1], 9),
        ),
        (
            partition(isr=[1], recovery=RECOVERING),
            IsrChange(5, 7, [1, 2], RECOVERING),
            ErrorCode.INVALID_REQUEST,
        ),
        (partition(isr=[1, 2]), IsrChange(5, 7, [1], RECOVERING), ErrorCode.INVALID_REQUEST),
        # No leader asks so.
        (partition(isr=[1, 2]), IsrChange(5, 7, []), ErrorCode.INVALID_REQUEST),
        (partition(isr=[1, 2]), IsrChange(5, 7, [1, 8]), ErrorCode.INVALID_REQUEST),
        (None, IsrChange(5, 7, [1]), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_altered_state(
    image: PartitionImage | None, change: IsrChange, outcome: PartitionState | ErrorCode
) -> None:
    state = altered_state(
        image,
        1,
        change,
        eligible={1, 2, 8},
        ineligible=ErrorCode.INELIGIBLE_REPLICA,
        controller_epoch=9,
    )
    assert state == outcome


def test_only_the_leader_may_ask() -> None:
    state = altered_state(
        partition(isr=[1, 2]),
        2,
        IsrChange(5, 7, [2]),
        eligible={1, 2, 3},
        ineligible=ErrorCode.INELIGIBLE_REPLICA,
        controller_epoch=9,
    )
    assert state is ErrorCode.INVALID_REQUEST


async def test_isrs_are_written_and_applied(cluster: Cluster, cluster_tree: Tree) -> None:
    await add_broker(cluster, cluster_tree, 2)
    await add_topic_of_kafka(cluster, cluster_tree, "t", [2, 0], isr=[2])
    requests = {
        NAME: IsrChange(0, 0, [2, 0]),
        TopicPartition("t", 1): IsrChange(0, 0, [2, 0]),
        TopicPartition("nowhere", 0): IsrChange(0, 0, [2, 0]),
    }
    outcomes = await cluster.leadership.alter_isrs(2, requests)
    outcome = outcomes[NAME]
    assert isinstance(outcome, PartitionImage)
    assert (outcome.isr, outcome.leader_epoch, outcome.partition_epoch) == ([2, 0], 0, 1)
    assert cluster.image.topics["t"].partitions[0] is outcome
    assert list(outcomes.values()).count(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) == 2
    data, stat = await cluster_tree.get(paths.partition_state("t", 0))
    assert (json.loads(data)["isr"], stat.version) == ([2, 0], 1)


async def test_the_lock_is_held_until_each_write_has_ended(
    cluster: Cluster, cluster_tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fails at once, and the other one takes long."""
    await add_broker(cluster, cluster_tree, 2)
    for topic in ("t", "u"):
        await add_topic_of_kafka(cluster, cluster_tree, topic, [2, 0], isr=[2])
    multi = cluster_tree.multi
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def write(operations: Sequence[Operation]) -> list[str | int]:
        if any(operation.path.startswith(paths.topic("t")) for operation in operations):
            raise CoordinationError("no answer")
        has_begun.set()
        await may_end.wait()
        return await multi(operations)

    monkeypatch.setattr(cluster_tree, "multi", write)
    change = IsrChange(0, 0, [2, 0])
    writing = asyncio.create_task(
        cluster.leadership.alter_isrs(2, {NAME: change, TopicPartition("u", 0): change})
    )
    await has_begun.wait()
    for _ in range(10):  # more turns than the error needs
        await asyncio.sleep(0)
    assert not writing.done()
    may_end.set()
    with pytest.raises(CoordinationError):
        await writing
    assert cluster.image.topics["u"].partitions[0].isr == [2, 0]


async def test_a_state_that_somebody_wrote_meanwhile_is_read_again(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    await add_broker(cluster, cluster_tree, 2)
    await add_topic_of_kafka(cluster, cluster_tree, "t", [2, 0], isr=[2])
    await stop_following(cluster)
    other = PartitionState(0, 1, [0], 3)
    await cluster_tree.set(paths.partition_state("t", 0), encode_state(other))
    outcomes = await cluster.leadership.alter_isrs(2, {NAME: IsrChange(0, 0, [2, 0])})
    assert outcomes == {NAME: ErrorCode.INVALID_UPDATE_VERSION}
    assert cluster.image.topics["t"].partitions[0].leader_epoch == 1


async def test_a_topic_that_was_made_again_keeps_its_isr(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    """Its epochs are those of the one before, of which the leader speaks."""
    await add_broker(cluster, cluster_tree, 2)
    await add_topic_of_kafka(cluster, cluster_tree, "t", [2, 0], isr=[2])
    await add_topic_of_kafka(cluster, cluster_tree, "u", [2, 0], isr=[2])
    old_change = IsrChange(0, 0, [2, 0], topic_id=TopicId(b"x" * 16))
    change = IsrChange(0, 0, [2, 0], topic_id=cluster.image.topics["u"].topic_id)
    names = [NAME, TopicPartition("u", 0), TopicPartition("gone", 0)]
    changes = dict(zip(names, [old_change, change, old_change], strict=True))
    outcomes = await cluster.leadership.alter_isrs(2, changes)
    assert outcomes[NAME] is outcomes[names[2]] is ErrorCode.UNKNOWN_TOPIC_ID
    assert [cluster.image.topics[name].partitions[0].isr for name in "tu"] == [[2], [2, 0]]


async def test_a_broker_that_shuts_down_does_not_join(cluster: Cluster, cluster_tree: Tree) -> None:
    await add_broker(cluster, cluster_tree, 2)
    await add_topic_of_kafka(cluster, cluster_tree, "t", [0, 2], isr=[0])
    await cluster.leadership.shut_down_broker(2, -1)
    change = {NAME: IsrChange(0, 0, [0, 2])}
    assert await cluster.leadership.alter_isrs(0, change) == {NAME: ErrorCode.INELIGIBLE_REPLICA}
