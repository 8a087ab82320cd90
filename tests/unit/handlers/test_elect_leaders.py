"""ElectLeaders where another broker is the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


@pytest.mark.parametrize("version", range(3))
async def test_only_the_controller_elects(
    deposed: InProcessBroker, client: RawClient, version: int
) -> None:
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0])])
    answer = await client.call(request, version)
    assert answer.error_code == 0
    assert (
        answer.replica_election_results[0].partition_result[0].error_code
        == ErrorCode.NOT_CONTROLLER
    )
