"""DescribeQuorum: a quorum of one, and with ZooKeeper none. (Errors: beside Kafka.)"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.handlers.registry import advertised_versions, supported_versions
from minibroker.kafka.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from tests.support.in_process import InProcessBroker, ManualClock

if TYPE_CHECKING:
    from pathlib import Path

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
