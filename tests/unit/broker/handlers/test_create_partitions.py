"""CreatePartitions: growing, validating, what is refused, every version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


def growing(
    count: int, *, name: str = "t", brokers: list[list[int]] | None = None, **more: Any
) -> CreatePartitionsRequest:
    assignments = None
    if brokers is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=ids) for ids in brokers]
    topic = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
    return CreatePartitionsRequest(
        topics=[topic], timeout_ms=more.pop("timeout_ms", 10_000), **more
    )


async def code(client: RawClient, request: CreatePartitionsRequest, version: int = 2) -> str:
    (result,) = (await client.call(request, version)).results
    return ErrorCode(result.error_code).name


@pytest.mark.parametrize("version", range(4))
async def test_a_topic_grows(running: InProcessBroker, client: RawClient, version: int) -> None:
    assert await code(client, growing(4), version) == "NONE"
    assert sorted(running.partitions.of_topic("t")) == [0, 1, 2, 3]


async def test_no_time_is_a_time_out_though_the_topic_grows(
    running: InProcessBroker, client: RawClient
) -> None:
    assert await code(client, growing(3, timeout_ms=0)) == "REQUEST_TIMED_OUT"
    running.partitions.get("t", 2)


@pytest.mark.parametrize("version", range(4))
async def test_too_many_partitions_are_refused_and_none_is_made(
    running: InProcessBroker, client: RawClient, version: int
) -> None:
    await running.create_topic("u")
    request = growing(5_003)
    request.topics += growing(5_001, name="u").topics
    results = (await client.call(request, version)).results
    assert [(result.name, result.error_code, result.error_message) for result in results] == [
        (
            name,
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of additional partitions per request.",
        )
        for name in ("t", "u")
    ]
    assert len(running.broker.cluster.image.topics["t"].partitions) == 2
