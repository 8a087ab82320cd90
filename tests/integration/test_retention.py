"""Retention over the wire: settings are altered, time passes, and clients see the remaining
records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from minibroker.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.in_process import START_MS, InProcessBroker, ManualClock, batch_of
from tests.support.record_requests import asking, earliest, first, part, produce

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.in_process import RawClient

CHECK_MS = 1_000
HOUR_MS = 3_600_000
BATCH_BYTES = len(batch_of(b"x" * 400))
SETTINGS = {
    "log.retention.check.interval.ms": str(CHECK_MS),
    "log.initial.task.delay.ms": str(CHECK_MS),
}


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[InProcessBroker]:
    """Yield a broker whose topic `t` has one batch a segment."""
    async with InProcessBroker(tmp_path, SETTINGS, clock=ManualClock()) as broker:
        await broker.create_topic("t", segment_bytes=str(BATCH_BYTES + 10))
        yield broker


@pytest.fixture
async def client(running: InProcessBroker) -> AsyncIterator[RawClient]:
    async with await running.connect() as connected:
        for number in range(5):
            records = batch_of(b"x" * 400, timestamp=START_MS + number * HOUR_MS)
            answer = await connected.call(produce(records), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
        yield connected


async def alter(client: RawClient, key: str, value: str) -> None:
    config = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
    answer = await client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0


async def size_of(client: RawClient) -> int:
    topic = DescribableLogDirTopic(topic="t", partitions=[0])
    answer = await client.call(DescribeLogDirsRequest(topics=[topic]), 4)
    return int(answer.results[0].topics[0].partitions[0].partition_size)


def advance(running: InProcessBroker, elapsed_ms: int) -> None:
    clock = running.broker.clock
    assert isinstance(clock, ManualClock)
    clock.advance(elapsed_ms)


async def test_a_lower_size_acts_with_the_next_check(
    running: InProcessBroker, client: RawClient
) -> None:
    assert await size_of(client) == 5 * BATCH_BYTES
    await alter(client, "retention.bytes", str(2 * BATCH_BYTES))
    assert await earliest(client) == 0
    advance(running, CHECK_MS)
    assert await earliest(client) == 3
    assert await size_of(client) == 2 * BATCH_BYTES
    refused = first(await client.call(asking(part(offset=2)), 12))
    assert refused.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_old_records_go_and_the_active_segment_with_them(
    running: InProcessBroker, client: RawClient
) -> None:
    await alter(client, "retention.ms", str(HOUR_MS))
    starts = []
    for _ in range(7):
        advance(running, HOUR_MS)
        starts.append(await earliest(client))
    assert starts == [0, 1, 2, 3, 4, 5, 5]
    assert await size_of(client) == 0
    answer = await client.call(produce(batch_of(b"next", timestamp=START_MS + 9 * HOUR_MS)), 9)
    assert answer.responses[0].partition_responses[0].base_offset == 5


async def test_a_topic_that_keeps_everything_keeps_it(
    running: InProcessBroker, client: RawClient
) -> None:
    await alter(client, "retention.ms", "-1")
    advance(running, 10_000 * HOUR_MS)
    assert await earliest(client) == 0


async def test_a_slice_that_a_reader_holds_outlives_its_segment(
    running: InProcessBroker, client: RawClient
) -> None:
    partition = running.partitions.get("t", 0)
    records = partition.read(0, 1 << 20, isolation_level=0).records
    content = bytes(records)
    await alter(client, "retention.bytes", "1")
    advance(running, CHECK_MS)
    advance(running, partition.log.config.file_delete_delay_ms)
    running.broker.workers.close()
    assert bytes(records) == content
