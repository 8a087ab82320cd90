"""UpdateMetadata: key 6, versions 0-8. Served where brokers share a tree.

Behaviour: Apache Kafka's controller tells of brokers and partitions; a request names only what
changed. A partition whose leader is -2 is being deleted: clients hear UNKNOWN_TOPIC_OR_PARTITION
once requests have named all partitions of its topic, and the logs go.
Order of checks: broker epoch (STALE_BROKER_EPOCH), controller epoch (STALE_CONTROLLER_EPOCH).

Versions:
- 1: several endpoints
- 2: rack
- 3: listener names
- 4: offline replicas
- 5: broker epoch, by topic
- 6: flexible
- 7: topic ids
- 8: KRaft controllers (KIP-866)

Differs from Kafka: the tree's watches feed the image too, so a request may bring nothing new. The
registered brokers come from the tree alone (`cluster/requests.py`).
Source: Kafka KafkaApis.handleUpdateMetadataRequest, ZkMetadataCache.updateMetadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.codecs import PartitionState
from minibroker.broker.cluster.requests import LEADER_DURING_DELETE, SentTopic
from minibroker.broker.cluster.sent_state import SentState
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId
from minibroker.kafka.protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.broker.handlers.common.context import RequestContext


async def handle(context: RequestContext, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
    """Take the metadata. Raises KafkaError, CoordinationError."""
    requests = context.services.cluster.requests
    requests.check_broker_epoch(request.broker_epoch, is_kraft=request.is_kraft_controller)
    await requests.take_metadata(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_ids=[broker.id for broker in request.live_brokers],
        topics=await _topics_of(request),
    )
    context.note_controller()
    return UpdateMetadataResponse()


async def _topics_of(request: UpdateMetadataRequest) -> list[SentTopic]:
    """Return the states, grouped by topic in every version; made in slices of the loop's time."""
    topics: dict[str, SentTopic] = {}
    going: dict[str, set[int]] = {}
    turn = TimeSlice()
    for name, topic_id, state in _states_of(request):
        topic = topics.get(name)
        if topic is None:
            going[name] = set()
            topic = topics[name] = SentTopic(name, topic_id, {}, going[name])
        if state.leader == LEADER_DURING_DELETE:
            going[name].add(state.partition_index)
        else:
            topic.states[state.partition_index] = _state_of(state)
        if turn.is_over:
            await turn.pause()
    return list(topics.values())


def _states_of(
    request: UpdateMetadataRequest,
) -> Iterator[tuple[str, TopicId, UpdateMetadataPartitionState]]:
    for topic in request.topic_states:
        topic_id = TopicId(topic.topic_id)
        for state in topic.partition_states:
            yield topic.topic_name, topic_id, state
    for state in request.ungrouped_partition_states:
        yield state.topic_name, TopicId(ZERO_TOPIC_ID), state


def _state_of(state: UpdateMetadataPartitionState) -> SentState:
    return SentState(
        PartitionState(state.leader, state.leader_epoch, state.isr, state.controller_epoch),
        state.zk_version,
        state.replicas,
        offline=state.offline_replicas,
    )
