"""Idempotent producers are forgotten by time after a restart too, though nobody appends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from tests.support.in_process import InProcessBroker, ManualClock, batch_of
from tests.support.record_requests import produce, result
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.in_process import RawClient

EXPIRATION_MS = 3000
CHECK_MS = 500
SETTINGS = {
    "producer.id.expiration.ms": str(EXPIRATION_MS),
    "producer.id.expiration.check.interval.ms": str(CHECK_MS),
}
DESCRIBE = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])


async def producer_ids(client: RawClient) -> list[int]:
    """Return the ids of the producers that the partition knows."""
    (topic,) = (await client.call(DESCRIBE, 0)).topics
    return [producer.producer_id for producer in topic.partitions[0].active_producers]


async def test_a_producer_that_comes_from_the_disk_is_forgotten_in_its_time(tmp_path: Path) -> None:
    clock = ManualClock()

    def batch(sequence: int) -> bytearray:
        return batch_of(
            b"v", timestamp=clock.ms, producer_id=7, producer_epoch=0, base_sequence=sequence
        )

    async with InProcessBroker(tmp_path, SETTINGS, clock=clock) as running:
        await running.create_topic("t")
        async with await running.connect() as client:
            for sequence in range(2):
                assert not (await result(client, produce(batch(sequence)))).error_code
    async with (
        InProcessBroker(tmp_path, SETTINGS, clock=clock) as again,
        await again.connect() as client,
    ):
        clock.advance(CHECK_MS)  # the look after a start finds nothing in memory
        assert await producer_ids(client) == [7]
        log = again.partitions.get("t", 0).log
        clock.advance(EXPIRATION_MS - CHECK_MS - 1)
        assert log.producers.loaded().producers
        clock.advance(CHECK_MS)
        await eventually(lambda: not log.producers.loaded().producers)
        assert await producer_ids(client) == []
        assert not (await result(client, produce(batch(41)))).error_code
