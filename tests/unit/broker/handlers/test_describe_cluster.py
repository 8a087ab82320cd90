"""DescribeCluster: brokers, controller, endpoint types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.handlers.common.authorized_operations import ALL_OPERATIONS
from minibroker.broker.security.acls import ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.describe_cluster import DescribeClusterRequest

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster(running: InProcessBroker, client: RawClient, version: int) -> None:
    answer = await client.call(DescribeClusterRequest(), version)
    assert (answer.error_code, answer.controller_id) == (0, 0)
    assert answer.cluster_id == running.broker.cluster.image.cluster_id
    (broker,) = answer.brokers
    assert (broker.broker_id, broker.host, broker.port) == (0, *running.address)
    assert answer.cluster_authorized_operations == -(2**31)


async def test_authorized_operations_are_told_when_asked_for(client: RawClient) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    answer = await client.call(request, 0)
    assert answer.cluster_authorized_operations == ALL_OPERATIONS[ResourceType.CLUSTER]


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(1, 0), (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
async def test_only_brokers_are_here(client: RawClient, endpoint_type: int, code: int) -> None:
    answer = await client.call(DescribeClusterRequest(endpoint_type=endpoint_type), 1)
    assert answer.error_code == code
    assert bool(answer.error_message) == bool(code)
