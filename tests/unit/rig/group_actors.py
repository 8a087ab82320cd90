"""Consumers of a test that waits for them, one request at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.kafka.protocol.stored.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from tests.support.codec import codec_of
from tests.support.wire import Answer, WireClient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.testing import Broker
    from minibroker.testing.cluster import ClusterBroker

JOIN_VERSION = 5


def connect(broker: Broker | ClusterBroker, client_id: str = "wire") -> WireClient:
    """Return a connection to a broker."""
    host, _, port = broker.bootstrap.rpartition(":")
    return WireClient(host, int(port), client_id=client_id)


def coordinator_of(client: WireClient, group: str) -> int:
    """Return the broker that coordinates a group; the first question makes the internal topic."""
    while True:
        answer = client.call("find_coordinator", 1, key=group, key_type=0)
        if not answer["error_code"]:
            return int(answer["node_id"])


def send_join(client: WireClient, group: str, topics: Sequence[str], member_id: str) -> int:
    """Send a JoinGroup of the classic protocol; return its correlation id."""
    metadata = ConsumerProtocolSubscription(topics=list(topics), user_data=None).to_bytes(1)
    return client.send(
        "join_group",
        JOIN_VERSION,
        group_id=group,
        member_id=member_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": metadata}],
    )


def receive_join(client: WireClient, correlation_id: int) -> Answer:
    """Return the answer to a JoinGroup."""
    return client.receive(codec_of("join_group"), JOIN_VERSION, correlation_id)


def new_member_id(client: WireClient, group: str, *topics: str) -> str:
    """Return the id that the coordinator gives to a new member."""
    coordinator_of(client, group)
    return str(receive_join(client, send_join(client, group, topics, ""))["member_id"])


def join(client: WireClient, group: str, *topics: str) -> Answer:
    """Join as the first member."""
    member_id = new_member_id(client, group, *topics)
    return receive_join(client, send_join(client, group, topics, member_id))


def sync(
    client: WireClient, group: str, joined: Answer, shares: dict[str, dict[str, list[int]]]
) -> Answer:
    """Ask for the share of a generation. `shares`: member → topic → partitions, by the leader."""
    assignments = [
        {
            "member_id": member_id,
            "assignment": ConsumerProtocolAssignment(
                assigned_partitions=[
                    TopicPartition(topic=topic, partitions=partitions)
                    for topic, partitions in share.items()
                ],
                user_data=None,
            ).to_bytes(1),
        }
        for member_id, share in shares.items()
    ]
    answer = client.call(
        "sync_group",
        3,
        group_id=group,
        generation_id=joined["generation_id"],
        member_id=joined["member_id"],
        assignments=assignments,
    )
    assert answer["error_code"] == 0
    return answer


def fetch(client: WireClient, topic: str, offsets: dict[int, int], **fields: Any) -> Answer:
    """Fetch at once, without a session unless `fields` name one."""
    return client.call(
        "fetch",
        11,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        **{"session_epoch": -1, **fields},
        topics=[
            {
                "topic": topic,
                "partitions": [
                    {
                        "partition": index,
                        "fetch_offset": offset,
                        "current_leader_epoch": -1,
                        "partition_max_bytes": 1 << 20,
                    }
                    for index, offset in offsets.items()
                ],
            }
        ],
    )


def commit(
    client: WireClient, group: str, joined: Answer, topic: str, offsets: dict[int, int]
) -> None:
    """Commit offsets as a member."""
    answer = client.call(
        "offset_commit",
        7,
        group_id=group,
        generation_id_or_member_epoch=joined["generation_id"],
        member_id=joined["member_id"],
        topics=[
            {
                "name": topic,
                "partitions": [
                    {"partition_index": index, "committed_offset": offset}
                    for index, offset in offsets.items()
                ],
            }
        ],
    )
    assert answer["topics"][0]["partitions"][0]["error_code"] == 0
