"""ListPartitionReassignments: moves under way, and who tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from minibroker.kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.support.cluster import add_broker

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


@pytest.fixture
def settings() -> dict[str, str]:
    """Return settings with which a stop does not wait for broker 2, which is registered only."""
    return {"controlled.shutdown.enable": "false"}


async def test_only_the_controller_lists(deposed: InProcessBroker, client: RawClient) -> None:
    answer = await client.call(ListPartitionReassignmentsRequest(topics=None), 0)
    assert (answer.error_code, answer.topics) == (ErrorCode.NOT_CONTROLLER, [])


async def test_a_move_under_way_is_listed(running: InProcessBroker, client: RawClient) -> None:
    cluster = running.broker.cluster
    await add_broker(cluster, cluster._tree, 2)
    target = ReassignablePartition(partition_index=1, replicas=[2])
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="t", partitions=[target])]
    )
    answer = await client.call(request, 0)
    assert answer.responses[0].partitions[0].error_code == 0
    for topics in (None, [ListPartitionReassignmentsTopics(name="t", partition_indexes=[1, 0, 7])]):
        moves = await client.call(ListPartitionReassignmentsRequest(topics=topics), 0)
        ((moving,),) = [topic.partitions for topic in moves.topics]
        assert moving.partition_index == 1
        assert moving.replicas == [2, 0]
        assert (moving.adding_replicas, moving.removing_replicas) == ([2], [0])
    # The leader serves on meanwhile.
    assert running.partitions.get("t", 1) is not None
