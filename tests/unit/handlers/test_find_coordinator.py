"""FindCoordinator: the topic that it creates keeps to the limits of one request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.find_coordinator import FindCoordinatorRequest

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


@pytest.fixture
def settings() -> dict[str, str]:
    return {
        "offsets.topic.num.partitions": "2147483647",
        "transaction.state.log.num.partitions": "2147483647",
    }


@pytest.mark.parametrize("key_type", [0, 1])
async def test_a_topic_that_is_too_large_is_not_created(
    running: InProcessBroker, client: RawClient, key_type: int
) -> None:
    answer = await client.call(FindCoordinatorRequest(key="x", key_type=key_type), 1)
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert set(running.broker.cluster.image.topics) == {"t"}
