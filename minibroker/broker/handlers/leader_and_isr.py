"""LeaderAndIsr: key 4, versions 0-7. Served where brokers share a tree.

Behaviour: Apache Kafka's controller makes this broker leader or follower of partitions. Each
partition has a result: KAFKA_STORAGE_ERROR (its directory is offline), INCONSISTENT_TOPIC_ID,
UNKNOWN_TOPIC_OR_PARTITION (this broker has no replica), STALE_CONTROLLER_EPOCH (its leader epoch is
not newer than the last one), or none.
Order of checks: broker epoch (STALE_BROKER_EPOCH), controller epoch (STALE_CONTROLLER_EPOCH), then
those of each partition in the order above, but the leader epoch before the replicas.

Versions:
- 1: new replicas are marked
- 2: broker epoch, by topic
- 3: replicas of a reassignment
- 4: flexible
- 5: topic ids, results by topic id
- 6: recovery state (KIP-704)
- 7: KRaft controllers

Differs from Kafka: a state may be known from the tree already; its first request is answered as a
new one all the same.
Source: Kafka KafkaApis.handleLeaderAndIsrRequest, ReplicaManager.becomeLeaderOrFollower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.cluster.codecs import PartitionState
from minibroker.broker.cluster.requests import SentTopic
from minibroker.broker.cluster.sent_state import SentState
from minibroker.broker.handlers.common.encoded_struct import EncodedStruct
from minibroker.broker.slices import TimeSlice, collect, end_in_slices
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, may_be_same_topic
from minibroker.kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.manager import PartitionManager

BY_TOPIC_ID: Final = 5
"""The first version whose results are grouped by topic id."""


class _RequestedState(NamedTuple):
    """One partition of a request."""

    topic: str
    topic_id: TopicId
    state: LeaderAndIsrPartitionState


async def handle(context: RequestContext, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    """Take the roles; return a result for each partition. Raises CoordinationError."""
    services = context.services
    requests, partitions = services.cluster.requests, services.partitions
    items = await collect(_requested_states(request))
    try:
        requests.check_broker_epoch(request.broker_epoch, is_kraft=request.is_kraft_controller)
        requests.check_controller_epoch(request.controller_id, request.controller_epoch)
    except KafkaError as error:
        refused = _Results(context.version, error.code)
        await end_in_slices(refused.adding((item, error.code) for item in items))
        return refused.response
    context.note_controller()
    broker_id = services.config.broker_id
    errors = await collect(_error_of(partitions, broker_id, item) for item in items)
    await requests.take_states(await _topics_of(items, errors))
    results = _Results(context.version, ErrorCode.NONE)
    await end_in_slices(
        results.adding(
            (item, error or _result_of(partitions, item))
            for item, error in zip(items, errors, strict=True)
        )
    )
    return results.response


def error_response(
    request: LeaderAndIsrRequest, version: int, code: ErrorCode, _detail: str | None
) -> LeaderAndIsrResponse:
    """Return the code at the top and for every partition, as Kafka."""
    results = _Results(version, code)
    for _ in results.adding((item, code) for item in _requested_states(request)):
        pass
    return results.response


def _requested_states(request: LeaderAndIsrRequest) -> Iterator[_RequestedState]:
    """Yield the partitions in their order, whatever the version."""
    for topic in request.topic_states:
        topic_id = TopicId(topic.topic_id)
        for state in topic.partition_states:
            yield _RequestedState(topic.topic_name, topic_id, state)
    for state in request.ungrouped_partition_states:
        yield _RequestedState(state.topic_name, TopicId(ZERO_TOPIC_ID), state)


def _error_of(partitions: PartitionManager, broker_id: int, item: _RequestedState) -> ErrorCode:
    """Return why the state of one partition is not taken, or NONE."""
    state = item.state
    partition = partitions.replica(item.topic, state.partition_index)
    if partition is not None:
        if partition.is_lost:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if not may_be_same_topic(partition.topic_id, item.topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        is_known = state.leader_epoch <= partition.requested_epoch
        if is_known or state.leader_epoch < partition.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
    if broker_id not in state.replicas:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _result_of(partitions: PartitionManager, item: _RequestedState) -> ErrorCode:
    """Return whether the partition has a log now, and note that its leader epoch was requested.

    The request has waited for the tree: another topic may have the name now, or another controller
    may have told of a later epoch.
    """
    partition = partitions.replica(item.topic, item.state.partition_index)
    if partition is None or not may_be_same_topic(partition.topic_id, item.topic_id):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # deleted meanwhile
    if item.state.leader_epoch < partition.leader_epoch:
        return ErrorCode.STALE_CONTROLLER_EPOCH
    if not partition.has_log:
        return ErrorCode.KAFKA_STORAGE_ERROR
    partition.requested_epoch = item.state.leader_epoch
    partitions.resume(partition)
    return ErrorCode.NONE


async def _topics_of(items: list[_RequestedState], errors: list[ErrorCode]) -> list[SentTopic]:
    """Return the states of partitions without an error, grouped by topic; made in slices of the
    loop's time.
    """
    topics: dict[str, SentTopic] = {}
    turn = TimeSlice()
    for item, error in zip(items, errors, strict=True):
        if turn.is_over:
            await turn.pause()
        if error:
            continue
        topic = topics.setdefault(item.topic, SentTopic(item.topic, item.topic_id, {}))
        state = item.state
        topic.states[state.partition_index] = SentState(
            PartitionState(
                state.leader,
                state.leader_epoch,
                state.isr,
                state.controller_epoch,
                state.leader_recovery_state,
            ),
            state.partition_epoch,
            state.replicas,
            state.adding_replicas,
            state.removing_replicas,
        )
    return list(topics.values())


class _Results:
    """The answer, to which the results are added one by one, as bytes already."""

    def __init__(self, version: int, code: ErrorCode) -> None:
        self.response = LeaderAndIsrResponse(error_code=int(code))
        self._version = version
        self._by_id: dict[bytes, LeaderAndIsrTopicError] = {}

    def adding(self, results: Iterable[tuple[_RequestedState, ErrorCode]]) -> Iterator[None]:
        """Add these results, one with each step."""
        for item, code in results:
            self._add(item, code)
            yield

    def _add(self, item: _RequestedState, code: ErrorCode) -> None:
        error = LeaderAndIsrPartitionError(
            partition_index=item.state.partition_index, error_code=int(code)
        )
        errors: list[Any] = self.response.partition_errors
        if self._version < BY_TOPIC_ID:
            error.topic_name = item.topic
        else:
            topic = self._by_id.get(item.topic_id)
            if topic is None:
                topic = self._by_id[item.topic_id] = LeaderAndIsrTopicError(topic_id=item.topic_id)
                self.response.topics.append(topic)
            errors = topic.partition_errors
        errors.append(EncodedStruct(error, self._version, error.error_code))
