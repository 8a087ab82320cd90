"""AlterPartitionReassignments where another broker is the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


async def test_only_the_controller_moves(deposed: InProcessBroker, client: RawClient) -> None:
    topic = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0)])
    answer = await client.call(AlterPartitionReassignmentsRequest(topics=[topic]), 1)
    assert (answer.error_code, answer.responses) == (ErrorCode.NOT_CONTROLLER, [])
