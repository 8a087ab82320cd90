"""FindCoordinator: how the topic that it needs is created."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.describe_cluster import DescribeClusterRequest
from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.support.in_process import TIMEOUT_S, InProcessBroker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.in_process import RawClient


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


async def test_a_broker_that_is_not_the_controller_does_not_wait_for_the_topic(
    tmp_path: Path,
) -> None:
    async with InProcessBroker(tmp_path) as running, await running.connect() as client:
        cluster = running.broker.cluster
        cluster._election.lose()
        async with cluster._context.lock:  # the answer leaves before anything is written
            answer = await client.call(FindCoordinatorRequest(key="x"), 1)
            assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await cluster._updater.wait_for_topic(
            OFFSETS_TOPIC, lambda topic: topic is not None, TIMEOUT_S
        )
        assert cluster.config_of("topics", OFFSETS_TOPIC)["cleanup.policy"] == "compact"


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster(running: InProcessBroker, client: RawClient, version: int) -> None:
    answer = await client.call(DescribeClusterRequest(), version)
    assert (answer.error_code, answer.controller_id) == (0, 0)
    assert answer.cluster_id == running.broker.cluster.image.cluster_id
    (broker,) = answer.brokers
    assert (broker.broker_id, broker.host, broker.port) == (0, *running.address)
    assert answer.cluster_authorized_operations == -(2**31)
