"""AlterPartition: key 56, versions 0-3. Leaders send it to the controller.

Behaviour: writes the ISR that the leader of a partition wants, if its epochs are those of the
state. Each partition gets its own result: the state as it is now, or the error.

Versions:
- 1: recovery after an unclean election
- 2: topics by id, INELIGIBLE_REPLICA where it was OPERATION_NOT_ATTEMPTED
- 3: epochs of the brokers in the ISR

Source: KIP-497, KIP-704, KIP-841.

Differs from Kafka 3.9: only the leader may ask, and only for replicas, as in Kafka 4. Epochs of
brokers in the ISR are not compared, as in 3.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.isr_changes import IsrChange
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicId, TopicPartition
from minibroker.kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)

if TYPE_CHECKING:
    from minibroker.broker.cluster.image import PartitionImage
    from minibroker.broker.handlers.common.context import RequestContext

_BY_ID: Final = 2
_WITH_EPOCHS: Final = 3
"""First versions with topic ids, and with epochs of brokers."""


async def handle(context: RequestContext, request: AlterPartitionRequest) -> AlterPartitionResponse:
    """Return one result per partition. Raises KafkaError(NOT_CONTROLLER), CoordinationError."""
    cluster = context.services.cluster
    version = context.version
    if not cluster.is_controller:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    broker = cluster.image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    response = AlterPartitionResponse()
    changes: dict[TopicPartition, IsrChange] = {}
    answered: dict[str, ResponseTopicData] = {}
    for topic in request.topics:
        name = topic.topic_name
        if version >= _BY_ID:
            image_topic = cluster.image.topic_by_id.get(topic.topic_id)
            if image_topic is None:
                response.topics.append(_unknown_topic(topic))
                continue
            name = image_topic.name
        answered[name] = ResponseTopicData(topic_name=topic.topic_name, topic_id=topic.topic_id)
        for change in topic.partitions:
            changes[TopicPartition(name, change.partition_index)] = _change(
                change, TopicId(topic.topic_id), version
            )
    outcomes = await cluster.leadership.alter_isrs(
        request.broker_id,
        changes,
        ineligible=ErrorCode.INELIGIBLE_REPLICA
        if version >= _BY_ID
        else ErrorCode.OPERATION_NOT_ATTEMPTED,
    )
    for partition, outcome in outcomes.items():
        answered[partition.topic].partitions.append(_result(partition.partition, outcome))
    response.topics += answered.values()
    return response


def _change(change: Any, topic_id: TopicId, version: int) -> IsrChange:
    isr = change.new_isr
    if version >= _WITH_EPOCHS:
        isr = [broker.broker_id for broker in change.new_isr_with_epochs]
    return IsrChange(
        change.leader_epoch,
        change.partition_epoch,
        list(isr),
        change.leader_recovery_state,
        topic_id,
    )


def _unknown_topic(topic: Any) -> ResponseTopicData:
    return ResponseTopicData(
        topic_id=topic.topic_id,
        partitions=[
            ResponsePartitionData(
                partition_index=change.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_ID
            )
            for change in topic.partitions
        ],
    )


def _result(index: int, outcome: PartitionImage | ErrorCode) -> ResponsePartitionData:
    if isinstance(outcome, ErrorCode):
        return ResponsePartitionData(partition_index=index, error_code=outcome)
    return ResponsePartitionData(
        partition_index=index,
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=outcome.isr,
        leader_recovery_state=outcome.leader_recovery_state,
        partition_epoch=outcome.partition_epoch,
    )
