"""Several log directories over the wire: one fails, now or at start, and comes back."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.broker import Minibroker
from tests.support.in_process import InProcessBroker, ManualClock, RawClient, batch_of
from tests.support.record_requests import asking, first, offsets_in, part, produce

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKPOINT_MS = 60_000


def settings(tmp_path: Path) -> dict[str, str]:
    return {"log.dirs": f"{tmp_path}/a,{tmp_path}/b"}


async def produced(client: RawClient, index: int, value: bytes = b"v") -> int:
    """Return the error code of one record for partition `index` of `t`."""
    answer = await client.call(produce(batch_of(value), index=index), 9)
    return int(answer.responses[0].partition_responses[0].error_code)


async def described(client: RawClient) -> Any:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    return (await client.call(request, 12)).topics[0].partitions


async def until(condition: Callable[[], Any], awaited: Callable[[], Any]) -> None:
    """Ask until the condition is true."""
    async with asyncio.timeout(180):
        while not condition():
            await awaited()


def index_in(running: InProcessBroker, name: str) -> int:
    """Return the partition of `t` whose log is in the directory of this name."""
    partitions = running.partitions.of_topic("t")
    return next(
        index
        for index, partition in partitions.items()
        if partition.log.log_directory.endswith(f"/{name}")
    )


async def test_a_directory_that_fails_takes_its_partitions_offline_and_no_other(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with InProcessBroker(tmp_path, settings(tmp_path), clock=clock) as running:
        await running.create_topic("t", 2)
        lost, whole = index_in(running, "b"), index_in(running, "a")
        async with await running.connect() as client:
            assert await produced(client, lost) == await produced(client, whole) == 0
            shutil.move(tmp_path / "b", tmp_path / "unplugged")
            clock.advance(CHECKPOINT_MS)  # the checkpoint cannot be written any more
            partitions = await described(client)

            async def look() -> None:
                nonlocal partitions
                partitions = await described(client)

            await until(lambda: partitions[lost].leader_id == -1, look)
            assert partitions[lost].error_code == ErrorCode.LEADER_NOT_AVAILABLE
            assert partitions[lost].offline_replicas == [0]
            assert partitions[lost].isr_nodes == [0]
            assert (partitions[whole].leader_id, partitions[whole].offline_replicas) == (0, [])
            assert await produced(client, lost) == ErrorCode.KAFKA_STORAGE_ERROR
            fetched = first(await client.call(asking(part(lost)), 11))
            assert fetched.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert await produced(client, whole) == 0
            results = (await client.call(DescribeLogDirsRequest(topics=None), 4)).results
            assert [result.error_code for result in results] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
            assert results[1].topics == []
            await running.create_topic("new", 3)
            assert len(running.partitions.of_topic("new")) == 3
    shutil.move(tmp_path / "unplugged", tmp_path / "b")
    async with (
        InProcessBroker(tmp_path, settings(tmp_path)) as running,
        await running.connect() as client,
    ):
        assert [partition.leader_id for partition in await described(client)] == [0, 0]
        for index, count in ((lost, 1), (whole, 2)):
            fetched = first(await client.call(asking(part(index)), 11))
            assert offsets_in(fetched.records) == list(range(count))


async def test_a_directory_that_cannot_be_used_at_start_keeps_its_records_until_it_can(
    tmp_path: Path,
) -> None:
    async with InProcessBroker(tmp_path, settings(tmp_path)) as running:
        await running.create_topic("t", 2)
        lost, whole = index_in(running, "b"), index_in(running, "a")
        async with await running.connect() as client:
            assert await produced(client, lost, b"precious") == 0
    shutil.move(tmp_path / "b", tmp_path / "unplugged")
    (tmp_path / "b").write_text("in its place")
    async with (
        InProcessBroker(tmp_path, settings(tmp_path)) as running,
        await running.connect() as client,
    ):
        partitions = await described(client)
        assert (partitions[lost].leader_id, partitions[whole].leader_id) == (-1, 0)
        assert await produced(client, lost) == ErrorCode.KAFKA_STORAGE_ERROR
        assert await produced(client, whole) == 0
    (tmp_path / "b").unlink()
    shutil.move(tmp_path / "unplugged", tmp_path / "b")
    async with (
        InProcessBroker(tmp_path, settings(tmp_path)) as running,
        await running.connect() as client,
    ):
        fetched = first(await client.call(asking(part(lost)), 11))
        assert offsets_in(fetched.records) == [0]
        assert b"precious" in bytes(fetched.records)


async def test_without_the_first_directory_the_broker_ends(tmp_path: Path) -> None:
    clock = ManualClock()
    async with InProcessBroker(tmp_path, settings(tmp_path), clock=clock) as running:
        await running.create_topic("t", 2)
        async with await running.connect() as client:
            assert await produced(client, 0) == 0
        shutil.move(tmp_path / "a", tmp_path / "unplugged")
        clock.advance(CHECKPOINT_MS)
        reason = await asyncio.wait_for(running.broker.failure, 180)
        assert re.search(r"the log directory .*/a, which holds the metadata, failed", reason)
        shutil.move(tmp_path / "unplugged", tmp_path / "a")


def test_a_process_without_its_directory_says_why_and_exits_with_one(tmp_path: Path) -> None:
    broker = Minibroker(
        tmp_path / "data",
        tmp_path / "log",
        settings={"log.flush.offset.checkpoint.interval.ms": "1"},
        topics=["t"],
    )
    broker.start()
    assert broker.process is not None
    # In one step: a checkpoint that is written meanwhile would be in the way of a removal.
    shutil.move(tmp_path / "data", tmp_path / "unplugged")
    from confluent_kafka import Producer  # noqa: PLC0415  slow to import

    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    producer.produce("t", b"v")
    try:
        assert broker.process.popen.wait(180) == 1
    finally:
        producer.purge()
        broker.kill()
    log = (tmp_path / "log").read_text()
    assert re.search(r"minibroker: all log directories have failed; the last one is .*/data", log)
