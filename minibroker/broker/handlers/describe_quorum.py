"""DescribeQuorum: key 55, versions 0-2.

Behaviour: describes the quorum that keeps the metadata in `__cluster_metadata-0`. Here it has one
voter, this broker, because no other process changes its tree. The leader epoch is the epoch of the
controller, and the end offset is the number of the tree's last change. A request for any other
partition is answered with UNKNOWN_TOPIC_OR_PARTITION. With ZooKeeper there is no such quorum, and
the API is not advertised, as in Kafka 3.9.

Versions:
- 1: times of fetches (KIP-836)
- 2: messages, directory ids, addresses of voters (KIP-853)

Differs from Kafka: a client cannot fetch `__cluster_metadata`, and the address of the voter is the
one on the client's listener, because there is no listener for controllers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.common.leaders import endpoint_of
from minibroker.broker.slices import gather
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps

METADATA_TOPIC: Final = "__cluster_metadata"
_NOT_HOSTED: Final = "This server does not host this topic-partition."


def handle(
    context: RequestContext, request: DescribeQuorumRequest
) -> Steps[DescribeQuorumResponse]:
    """Return the quorum of this broker, or an error for each partition of the request."""
    if not _is_hosted(request):
        return (yield from _not_hosted(request))
    services = context.services
    cluster = services.cluster
    end_offset = cluster.tree.change_count
    now_ms = services.clock.now_ms()
    voter = ReplicaState(
        replica_id=cluster.broker_id,
        log_end_offset=end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    partition = ResponsePartitionData(
        partition_index=0,
        leader_id=cluster.broker_id,
        leader_epoch=cluster.image.controller_epoch,
        high_watermark=end_offset,
        current_voters=[voter],
    )
    topic = ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    response = DescribeQuorumResponse(topics=[topic])
    address = endpoint_of(context, cluster.this_broker)
    if address is not None and context.version >= 2:
        listener = Listener(name=address.listener, host=address.host, port=address.port)
        response.nodes = [Node(node_id=cluster.broker_id, listeners=[listener])]
    return response


def _is_hosted(request: DescribeQuorumRequest) -> bool:
    """Return whether the request is about the one partition of the quorum."""
    if len(request.topics) != 1:
        return False
    (topic,) = request.topics
    is_one = len(topic.partitions) == 1 and topic.partitions[0].partition_index == 0
    return is_one and topic.topic_name == METADATA_TOPIC


def _not_hosted(request: DescribeQuorumRequest) -> Steps[DescribeQuorumResponse]:
    response = DescribeQuorumResponse()
    for topic in request.topics:
        partitions = yield from gather(
            ResponsePartitionData(
                partition_index=partition.partition_index,
                error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                error_message=_NOT_HOSTED,
            )
            for partition in topic.partitions
        )
        response.topics.append(
            ResponseTopicData(topic_name=topic.topic_name, partitions=partitions)
        )
        yield
    return response
