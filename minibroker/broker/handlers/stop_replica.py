"""StopReplica: key 5, versions 0-4. Served where brokers share a tree.

Behaviour: Apache Kafka's controller stops replicas of this broker: they fetch nothing any more, and
their logs go where it says so. Each partition has a result: KAFKA_STORAGE_ERROR (its directory is
offline, or a disk does not let go of the log), FENCED_LEADER_EPOCH (its leader epoch is older than
the known one, or it is about an earlier topic of that name, which is gone), or none. A partition
that this broker does not have is stopped already.
Order of checks: broker epoch (STALE_BROKER_EPOCH), controller epoch (STALE_CONTROLLER_EPOCH).

Versions:
- 1: broker epoch, by topic
- 2: flexible
- 3: leader epoch and deletion for each partition (KIP-570)
- 4: KRaft controllers

Differs from Kafka: the answer leaves once the deletion is durable. A request about the deletion of
a topic may come late, when the name belongs to another topic. It has no topic id, so Kafka would
delete that one.
Source: Kafka KafkaApis.handleStopReplicaRequest, ReplicaManager.stopReplicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.evidence import EvidenceKind, deletion_request
from minibroker.broker.replication.control_requests import DURING_DELETE
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)

if TYPE_CHECKING:
    from minibroker.broker.cluster.requests import ControllerRequests
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.manager import PartitionManager

"""Leader epoch of a partition whose topic is being deleted."""
NOT_CHECKED: Final = (-1, DURING_DELETE)
"""Leader epochs that fence nothing; -1 is that of older versions."""


class _Stopped(NamedTuple):
    """One partition of a request."""

    topic: str
    partition: int
    leader_epoch: int
    is_deleted: bool


async def handle(context: RequestContext, request: StopReplicaRequest) -> StopReplicaResponse:
    """Stop the replicas; return a result for each, or the error of an epoch. Raises
    CoordinationError.
    """
    requests, partitions = context.services.cluster.requests, context.services.partitions
    try:
        requests.check_broker_epoch(request.broker_epoch, is_kraft=request.is_kraft_controller)
        requests.check_controller_epoch(request.controller_id, request.controller_epoch)
    except KafkaError as error:
        return StopReplicaResponse(error_code=error.code)
    context.note_controller()
    replicas = _asked_of(request)
    by_topic: dict[str, list[_Stopped]] = {}
    for item in replicas:
        by_topic.setdefault(item.topic, []).append(item)
    evidence = deletion_request(
        EvidenceKind.STOP_REPLICA, request.controller_id, request.controller_epoch
    )
    results: dict[_Stopped, ErrorCode] = {}
    # A deletion waits for the disk: what only stops comes first.
    for items in sorted(by_topic.values(), key=_deletes_any):
        results |= await _stop_topic(requests, partitions, items, evidence)
    return StopReplicaResponse(
        partition_errors=[
            StopReplicaPartitionError(
                topic_name=item.topic, partition_index=item.partition, error_code=results[item]
            )
            for item in dict.fromkeys(replicas)
        ]
    )


def error_response(
    request: StopReplicaRequest, _version: int, code: ErrorCode, _detail: str | None
) -> StopReplicaResponse:
    """Return the code at the top and for every partition, as Kafka. `handle` answers epochs."""
    return StopReplicaResponse(
        error_code=code,
        partition_errors=[
            StopReplicaPartitionError(
                topic_name=item.topic, partition_index=item.partition, error_code=code
            )
            for item in _asked_of(request)
        ],
    )


async def _stop_topic(
    requests: ControllerRequests,
    partitions: PartitionManager,
    items: list[_Stopped],
    evidence: DeletionEvidence,
) -> dict[_Stopped, ErrorCode]:
    """Stop these replicas of one topic, and delete the logs that are to go; return a code for each.
    Raises CoordinationError.

    All waiting comes before the checks: meanwhile the name may get another topic, and a replica may
    come back to this broker.
    """
    topic = items[0].topic
    is_going = any(item.leader_epoch == DURING_DELETE for item in items)
    is_alive = is_going and not await requests.is_being_deleted(topic)
    while _deletes_any(items) and partitions.deletions.is_under_way(topic):
        await partitions.deletions.wait_until_settled(topic)
        is_alive = is_going and not await requests.is_being_deleted(topic)
    results: dict[_Stopped, ErrorCode] = {}
    for item in items:
        if is_alive and item.leader_epoch == DURING_DELETE:
            results[item] = ErrorCode.FENCED_LEADER_EPOCH
        else:
            results[item] = _stop(partitions, item)
    deleted = [item for item in items if item.is_deleted and not results[item]]
    if deleted:
        indexes = [item.partition for item in deleted]
        errors = await partitions.delete_replicas(topic, indexes, evidence)
        for item in deleted:
            if item.partition not in errors:
                results[item] = ErrorCode.FENCED_LEADER_EPOCH  # it came back meanwhile
            elif errors[item.partition] is not None:
                results[item] = ErrorCode.KAFKA_STORAGE_ERROR
    return results


def _deletes_any(items: list[_Stopped]) -> bool:
    return any(item.is_deleted for item in items)


def _stop(partitions: PartitionManager, item: _Stopped) -> ErrorCode:
    """Let one replica fetch nothing any more, or return why it goes on."""
    partition = partitions.replica(item.topic, item.partition)
    if partition is None:
        return ErrorCode.NONE
    if partition.is_lost:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if item.leader_epoch not in NOT_CHECKED and item.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    partitions.stop_fetching(partition)
    return ErrorCode.NONE


def _asked_of(request: StopReplicaRequest) -> list[_Stopped]:
    """Return the partitions in their order, whatever the version."""
    is_deleted = request.delete_partitions
    replicas = [
        _Stopped(
            topic.topic_name, state.partition_index, state.leader_epoch, state.delete_partition
        )
        for topic in request.topic_states
        for state in topic.partition_states
    ]
    replicas += [
        _Stopped(topic.name, index, -1, is_deleted)
        for topic in request.topics
        for index in topic.partition_indexes
    ]
    replicas += [
        _Stopped(item.topic_name, item.partition_index, -1, is_deleted)
        for item in request.ungrouped_partitions
    ]
    return replicas
