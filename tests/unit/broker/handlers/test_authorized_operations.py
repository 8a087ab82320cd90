"""The bit fields of what a client may do, beside Kafka's numbers of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.handlers.common.authorized_operations import ALL_OPERATIONS
from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.kafka.protocol.messages.describe_cluster import DescribeClusterRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.principals import connect_as
from tests.unit.broker.handlers.acl_requests import ALICE, SETTINGS, acl, allow

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker

# AclOperation's codes, as every client that decodes the fields has them.
CODES = {
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}


@pytest.fixture
def settings() -> dict[str, str]:
    return SETTINGS


def names_in(bits: int) -> set[str]:
    return {name for name, code in CODES.items() if bits & 1 << code}


@pytest.mark.parametrize(
    ("resource_type", "expected"),
    [
        (ResourceType.CLUSTER, set(CODES) - {"READ", "WRITE", "DELETE"}),
        (ResourceType.TOPIC, set(CODES) - {"CLUSTER_ACTION", "IDEMPOTENT_WRITE"}),
        (ResourceType.GROUP, {"READ", "DESCRIBE", "DELETE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}),
    ],
)
def test_every_operation_of_a_type(resource_type: ResourceType, expected: set[str]) -> None:
    bits = ALL_OPERATIONS[resource_type]
    assert names_in(bits) == expected
    assert not bits & ~sum(1 << code for code in CODES.values())


async def test_a_client_is_told_what_it_may_do(running: InProcessBroker) -> None:
    await allow(
        running,
        acl(Operation.READ, ResourceType.TOPIC, "t"),
        acl(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME),
    )
    topics = [MetadataRequestTopic(name="t")]
    metadata = MetadataRequest(topics=topics, include_topic_authorized_operations=True)
    cluster = DescribeClusterRequest(include_cluster_authorized_operations=True)
    async with await connect_as(running, ALICE) as alice:
        (topic,) = (await alice.call(metadata, 9)).topics
        assert names_in(topic.topic_authorized_operations) == {"READ", "DESCRIBE"}
        answer = await alice.call(cluster, 1)
        assert answer.cluster_authorized_operations == 0
        await allow(running, acl(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME))
        answer = await alice.call(cluster, 1)
        assert names_in(answer.cluster_authorized_operations) == {"CREATE", "DESCRIBE"}
        # What is kept as bytes for one client is not what another one may do.
        await allow(running, acl(Operation.WRITE, ResourceType.TOPIC, "t"))
        (topic,) = (await alice.call(metadata, 9)).topics
        assert names_in(topic.topic_authorized_operations) == {"READ", "WRITE", "DESCRIBE"}
