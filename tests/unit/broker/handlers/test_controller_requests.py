"""Requests about the cluster: of its controller alone, its quorum, moves, ids for brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.handlers.registry import advertised_versions, supported_versions
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from minibroker.kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from minibroker.kafka.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from minibroker.kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from minibroker.kafka.protocol.messages.unregister_broker import UnregisterBrokerRequest
from minibroker.kafka.protocol.messages.update_features import UpdateFeaturesRequest
from tests.support.cluster import add_broker
from tests.support.in_process import InProcessBroker, ManualClock

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.in_process import RawClient


async def test_only_the_controller_changes_levels(
    deposed: InProcessBroker, client: RawClient
) -> None:
    answer = await client.call(UpdateFeaturesRequest(), 2)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER


async def test_only_the_controller_moves(deposed: InProcessBroker, client: RawClient) -> None:
    topic = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0)])
    answer = await client.call(AlterPartitionReassignmentsRequest(topics=[topic]), 1)
    assert (answer.error_code, answer.responses) == (ErrorCode.NOT_CONTROLLER, [])


async def test_a_broker_that_runs_is_not_unregistered(
    running: InProcessBroker, client: RawClient
) -> None:
    answer = await client.call(UnregisterBrokerRequest(broker_id=0), 0)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "broker 0 is running" in answer.error_message


@pytest.fixture
def settings() -> dict[str, str]:
    """Return settings with which a stop does not wait for broker 2, which is registered only."""
    return {"controlled.shutdown.enable": "false"}


async def test_only_the_controller_lists(deposed: InProcessBroker, client: RawClient) -> None:
    answer = await client.call(ListPartitionReassignmentsRequest(topics=None), 0)
    assert (answer.error_code, answer.topics) == (ErrorCode.NOT_CONTROLLER, [])


async def test_a_move_under_way_is_listed(running: InProcessBroker, client: RawClient) -> None:
    cluster = running.broker.cluster
    await add_broker(cluster, cluster.tree, 2)
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


async def ask(
    broker: InProcessBroker, broker_id: int = 2, epoch: int | None = None
) -> AllocateProducerIdsResponse:
    if epoch is None:
        epoch = broker.broker.cluster.image.brokers[2].epoch
    request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
    async with await broker.connect() as client:
        answer: AllocateProducerIdsResponse = await client.call(request, 0)
        return answer


async def test_no_two_brokers_get_the_same_ids(controller: InProcessBroker) -> None:
    first, second = await ask(controller), await ask(controller)
    assert (first.error_code, first.producer_id_start, first.producer_id_len) == (0, 0, 1000)
    assert (second.error_code, second.producer_id_start) == (0, 1000)
    own = controller.broker.cluster.producer_ids.next()
    assert not isinstance(own, int)
    assert await own == 2000


async def test_it_is_refused(controller: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = controller.broker.cluster
    assert (await ask(controller, 9)).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert (await ask(controller, 2, 1)).error_code == ErrorCode.STALE_BROKER_EPOCH

    async def away(_path: str) -> tuple[bytes, object]:
        raise CoordinationError("the tree is away")

    with monkeypatch.context() as patched:
        patched.setattr(cluster.tree, "get", away)
        assert (await ask(controller)).error_code == ErrorCode.REQUEST_TIMED_OUT
    cluster._election.lose()
    assert (await ask(controller, 9)).error_code == ErrorCode.NOT_CONTROLLER


KEY = 55


async def test_the_one_voter_is_this_broker_and_counts_changes(tmp_path: Path) -> None:
    clock = ManualClock()
    partitions = RequestTopicData(
        topic_name="__cluster_metadata", partitions=[RequestPartitionData(partition_index=0)]
    )
    async with InProcessBroker(tmp_path, clock=clock) as broker, await broker.connect() as client:
        ends = []
        for name in ("a", "b"):
            await broker.create_topic(name)
            answer = await client.call(DescribeQuorumRequest(topics=[partitions]), 2)
            ((partition,),) = (topic.partitions for topic in answer.topics)
            (voter,) = partition.current_voters
            assert (partition.leader_id, voter.replica_id, partition.observers) == (0, 0, [])
            assert voter.log_end_offset == partition.high_watermark
            assert voter.last_caught_up_timestamp == clock.now_ms()
            ((node, (listener,)),) = ((node.node_id, node.listeners) for node in answer.nodes)
            assert (node, listener.host) == (0, "127.0.0.1")
            ends.append(voter.log_end_offset)
        assert 0 < ends[0] < ends[1]


def test_it_is_not_served_with_zookeeper() -> None:
    for versions in (supported_versions, advertised_versions):
        assert KEY in versions()
        assert KEY not in versions(with_zookeeper=True)
