"""ControlledShutdown, as a broker sends it to the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from tests.support.cluster import stop_following

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker


async def ask(
    broker: InProcessBroker, version: int, broker_id: int, epoch: int
) -> ControlledShutdownResponse:
    request = ControlledShutdownRequest(broker_id=broker_id, broker_epoch=epoch)
    async with await broker.connect() as client:
        answer: ControlledShutdownResponse = await client.call(request, version)
        return answer


@pytest.mark.parametrize("version", range(1, 4))
async def test_the_answer_names_what_the_broker_still_leads(
    controller: InProcessBroker, version: int
) -> None:
    epoch = controller.broker.cluster.image.brokers[2].epoch
    answer = await ask(controller, version, 2, epoch)
    assert answer.error_code == 0
    remaining = [
        (partition.topic_name, partition.partition_index)
        for partition in answer.remaining_partitions
    ]
    assert remaining == [("t", 0)]
    answer = await ask(controller, version, 0, -1)
    assert (answer.error_code, answer.remaining_partitions) == (0, [])


async def test_an_epoch_that_is_over_is_refused(controller: InProcessBroker) -> None:
    epoch = controller.broker.cluster.image.brokers[2].epoch - 1
    assert (await ask(controller, 3, 2, epoch)).error_code == ErrorCode.STALE_BROKER_EPOCH
    # Version 1 has no epoch.
    assert (await ask(controller, 1, 2, epoch)).error_code == 0
    assert (await ask(controller, 1, 9, -1)).error_code == ErrorCode.BROKER_NOT_AVAILABLE


async def test_another_broker_is_the_controller(controller: InProcessBroker) -> None:
    cluster = controller.broker.cluster
    await stop_following(cluster)  # it would hear of the nodes above, and win again
    cluster._election.lose()
    assert (await ask(controller, 3, 2, -1)).error_code == ErrorCode.NOT_CONTROLLER
