"""AlterPartition, as the leader of a partition sends it to the controller."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.image import TopicImage
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker


def request_of(
    controller: InProcessBroker,
    version: int,
    isr: list[int],
    *,
    partition_epoch: int = 0,
    index: int = 0,
) -> AlterPartitionRequest:
    """Return the request of broker 2 for the ISR of `t`."""
    image = controller.broker.cluster.image
    partition = RequestPartitionData(
        partition_index=index, leader_epoch=0, partition_epoch=partition_epoch
    )
    if version < 3:
        partition.new_isr = isr
    else:
        partition.new_isr_with_epochs = [BrokerState(broker_id=broker_id) for broker_id in isr]
    topic = RequestTopicData(partitions=[partition])
    if version < 2:
        topic.topic_name = "t"
    else:
        topic.topic_id = image.topics["t"].topic_id
    return AlterPartitionRequest(broker_id=2, broker_epoch=image.brokers[2].epoch, topics=[topic])


async def ask(
    broker: InProcessBroker, request: AlterPartitionRequest, version: int
) -> AlterPartitionResponse:
    async with await broker.connect() as client:
        answer: AlterPartitionResponse = await client.call(request, version)
        return answer


@pytest.mark.parametrize("version", range(4))
async def test_the_leader_gets_the_isr_that_it_wants(
    controller: InProcessBroker, version: int
) -> None:
    image = controller.broker.cluster.image
    answer = await ask(controller, request_of(controller, version, [2, 0]), version)
    assert answer.error_code == 0
    (topic,) = answer.topics
    if version < 2:
        assert topic.topic_name == "t"
    else:
        assert topic.topic_id == image.topics["t"].topic_id
    (partition,) = topic.partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 2, 0)
    assert (partition.isr, partition.partition_epoch) == ([2, 0], 1)
    assert image.topics["t"].partitions[0].isr == [2, 0]


@pytest.mark.parametrize("version", [1, 2])
async def test_each_partition_has_its_own_error(controller: InProcessBroker, version: int) -> None:
    for request, code in (
        (request_of(controller, version, [2, 0], partition_epoch=3), ErrorCode.NOT_CONTROLLER),
        (request_of(controller, version, [2, 0], index=4), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        (topic,) = (await ask(controller, request, version)).topics
        assert [partition.error_code for partition in topic.partitions] == [code]
    controller.broker.cluster._controller._stopping_epochs[0] = (
        controller.broker.cluster.this_broker.epoch
    )
    (topic,) = (await ask(controller, request_of(controller, version, [2, 0]), version)).topics
    expected = ErrorCode.INELIGIBLE_REPLICA if version > 1 else ErrorCode.OPERATION_NOT_ATTEMPTED
    assert topic.partitions[0].error_code == expected


async def test_a_topic_id_that_is_gone_is_unknown(controller: InProcessBroker) -> None:
    request = request_of(controller, 3, [2, 0])
    request.topics.append(
        RequestTopicData(topic_id=b"x" * 16, partitions=[RequestPartitionData(partition_index=5)])
    )
    answer = await ask(controller, request, 3)
    partitions = {topic.topic_id: topic.partitions[0] for topic in answer.topics}
    assert partitions[b"x" * 16].partition_index == 5
    assert partitions[b"x" * 16].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert len(partitions) == 2


async def test_a_topic_that_is_made_again_meanwhile_is_another(controller: InProcessBroker) -> None:
    """The request waits for the lock."""
    cluster = controller.broker.cluster
    lock = cluster._context.lock
    topic = cluster.image.topics["t"]
    async with lock:
        asking = asyncio.create_task(ask(controller, request_of(controller, 3, [2, 0]), 3))
        await eventually(lambda: bool(lock._waiters))
        cluster._updater.withdraw_topic("t")
        await cluster._updater.apply_topic(TopicImage("t", new_topic_id(), topic.partitions))
    (answer,) = (await asking).topics
    assert [partition.error_code for partition in answer.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert cluster.image.topics["t"].partitions[0].isr == [2]


async def test_a_broker_of_another_epoch_is_refused(controller: InProcessBroker) -> None:
    request = request_of(controller, 3, [2, 0])
    request.broker_epoch += 1
    assert (await ask(controller, request, 3)).error_code == ErrorCode.STALE_BROKER_EPOCH
    request.broker_id = 9
    assert (await ask(controller, request, 3)).error_code == ErrorCode.STALE_BROKER_EPOCH
    controller.broker.cluster._election.lose()
    assert (await ask(controller, request, 3)).error_code == ErrorCode.NOT_CONTROLLER
