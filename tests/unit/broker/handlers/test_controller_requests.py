"""Requests about the cluster that only its controller carries out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from minibroker.kafka.protocol.messages.unregister_broker import UnregisterBrokerRequest
from minibroker.kafka.protocol.messages.update_features import UpdateFeaturesRequest

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


async def test_only_the_controller_changes_levels(
    deposed: InProcessBroker, client: RawClient
) -> None:
    answer = await client.call(UpdateFeaturesRequest(), 2)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER


async def test_only_the_controller_moves(deposed: InProcessBroker, client: RawClient) -> None:
    topic = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0)])
    answer = await client.call(AlterPartitionReassignmentsRequest(topics=[topic]), 1)
    assert (answer.error_code, answer.responses) == (ErrorCode.NOT_CONTROLLER, [])


async def test_a_broker_that_runs_is_not_unregistered(
    running: InProcessBroker, client: RawClient
) -> None:
    answer = await client.call(UnregisterBrokerRequest(broker_id=0), 0)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "broker 0 is running" in answer.error_message
