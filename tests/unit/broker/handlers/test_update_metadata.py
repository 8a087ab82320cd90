"""UpdateMetadata over the wire: states into the image, deletions, fencing, in every version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from tests.unit.broker.handlers.control_requests import EPOCH, Controlled

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient

NEWEST = 8


@pytest.fixture
def controlled(running: InProcessBroker) -> Controlled:
    return Controlled(running)


def request_of(
    controlled: Controlled, version: int, leader_epoch: int, *, leader: int = 0, **more: Any
) -> UpdateMetadataRequest:
    """Return a request about both partitions of `t`."""
    states = [
        UpdateMetadataPartitionState(
            topic_name="t" if version < 5 else "",
            partition_index=index,
            controller_epoch=EPOCH,
            leader=leader,
            leader_epoch=leader_epoch,
            isr=[0],
            zk_version=9,
            replicas=[0],
        )
        for index in range(2)
    ]
    request = UpdateMetadataRequest(
        controller_id=0, controller_epoch=EPOCH, live_brokers=[UpdateMetadataBroker(id=0)]
    )
    if version < 5:
        request.ungrouped_partition_states = states
    else:
        request.broker_epoch = controlled.broker_epoch
        topic_id = controlled.topic.topic_id if version >= 7 else bytes(16)
        request.topic_states = [
            UpdateMetadataTopicState(topic_name="t", topic_id=topic_id, partition_states=states)
        ]
    for name, value in more.items():
        setattr(request, name, value)
    return request


@pytest.mark.parametrize("version", range(9))
async def test_states_go_into_the_image(
    controlled: Controlled, client: RawClient, version: int
) -> None:
    answer = await client.call(request_of(controlled, version, 3), version)
    assert answer.error_code == 0
    assert [partition.leader_epoch for partition in controlled.topic.partitions] == [3, 3]
    answer = await client.call(request_of(controlled, version, 2), version)
    assert answer.error_code == 0
    assert [partition.leader_epoch for partition in controlled.topic.partitions] == [3, 3]


@pytest.mark.parametrize("version", range(9))
async def test_a_topic_that_is_deleted_loses_its_logs(
    controlled: Controlled, client: RawClient, version: int
) -> None:
    answer = await client.call(request_of(controlled, version, -2, leader=-2), version)
    assert answer.error_code == 0
    assert "t" not in controlled.cluster.image.topics
    assert controlled.logs() == []


async def test_stale_epochs_are_refused(controlled: Controlled, client: RawClient) -> None:
    stale = request_of(controlled, NEWEST, 3, broker_epoch=controlled.broker_epoch - 1)
    answer = await client.call(stale, NEWEST)
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    await client.call(request_of(controlled, NEWEST, 3), NEWEST)
    deposed = request_of(controlled, NEWEST, 4, controller_epoch=EPOCH - 1)
    answer = await client.call(deposed, NEWEST)
    assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert controlled.topic.partitions[0].leader_epoch == 3
