"""`flush.messages`: the answer leaves when the records are on the disk, and nothing else waits."""

from __future__ import annotations

import asyncio
from struct import pack
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.append_queue import Flusher, fail_answer
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import StorageError
from minibroker.kafka.protocol.api_keys import PRODUCE
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.in_process import TIMEOUT_S, request_frame
from tests.support.record_requests import fetch_from, produce_values

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.in_process import InProcessBroker

    Serve = Callable[..., Awaitable[InProcessBroker]]


class HeldFlushes:
    """Stands where the flush worker does: an fsync is done when the test says so."""

    def __init__(self, running: InProcessBroker) -> None:
        self.work: list[Any] = []
        self._came = asyncio.Event()
        running.partitions.appends.flusher = Flusher(lambda _path: self._run_then, fail_answer)

    def _run_then(self, task: Any, done: Any) -> None:
        self.work.append((task, done))
        self._came.set()

    async def wait(self) -> None:
        """Until there is one to do."""
        async with asyncio.timeout(TIMEOUT_S):
            await self._came.wait()

    async def finish_one(self, error: StorageError | None = None) -> None:
        await self.wait()
        task, done = self.work.pop(0)
        if not self.work:
            self._came.clear()
        task()
        done(error)


async def start(serve: Serve, **settings: str) -> tuple[InProcessBroker, HeldFlushes]:
    """A broker with topics `synced` (every record) and `plain`, and its fsyncs."""
    running = await serve(**settings)
    await running.create_topic("synced", flush_messages="1")
    await running.create_topic("plain")
    return running, HeldFlushes(running)


def result_of(answer: Any) -> Any:
    return answer.responses[0].partition_responses[0]


async def ask_round(client: Any) -> None:
    """A round trip of another connection: whatever could have been answered before, was."""
    await client.call(MetadataRequest(topics=[]), 9)


@pytest.mark.parametrize("version", [2, 9])
async def test_the_answer_waits_and_other_connections_do_not(serve: Serve, version: int) -> None:
    running, flushes = await start(serve)
    async with await running.connect() as client, await running.connect() as other:
        client.send(produce_values("synced", b"a"), version)
        client.send(MetadataRequest(topics=[]), 9)
        await flushes.wait()
        await other.call(produce_values("plain", b"x"), 9)
        seen = await other.call(fetch_from("synced"), 12)
        assert seen.responses[0].partitions[0].high_watermark == 0
        early = asyncio.ensure_future(client.receive())
        await ask_round(other)
        assert not early.done()
        await flushes.finish_one()
        assert result_of(await early).base_offset == 0
        await client.receive()  # the request behind it
        assert flushes.work == []


async def test_a_disk_that_refuses_is_told_the_producer(serve: Serve) -> None:
    running, flushes = await start(serve)
    async with await running.connect() as client:
        client.send(produce_values("synced", b"a"), 9)
        client.send(produce_values("synced", b"b"), 9)
        await flushes.finish_one(StorageError("no"))
        for _ in range(2):
            result = result_of(await client.receive())
            assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert result.base_offset == -1


async def test_a_producer_without_acks_is_held_as_well(serve: Serve) -> None:
    """Kafka's network thread hears of the append after the fsync: the next request waits."""
    running, flushes = await start(serve)
    async with await running.connect() as client, await running.connect() as other:
        client.send(produce_values("synced", b"a", acks=0), 9)
        client._sent.clear()
        client.send(MetadataRequest(topics=[]), 9)
        await flushes.wait()
        early = asyncio.ensure_future(client.receive())
        await ask_round(other)
        assert not early.done()
        await flushes.finish_one()
        await early


async def test_a_waiting_consumer_gets_synced_records(serve: Serve) -> None:
    running, flushes = await start(serve)
    async with await running.connect() as client, await running.connect() as reader:
        reader.send(fetch_from("synced", max_wait_ms=20_000), 12)
        client.send(produce_values("synced", b"a"), 9)
        await flushes.finish_one()
        assert result_of(await client.receive()).error_code == 0
        found = await reader.receive()
        assert found.responses[0].partitions[0].high_watermark == 1


async def test_a_client_that_goes_leaves_the_sync_alone(serve: Serve) -> None:
    running, flushes = await start(serve)
    async with await running.connect() as client:
        client.send(produce_values("synced", b"a"), 9)
        await flushes.wait()
    async with await running.connect() as other:
        await ask_round(other)
        await flushes.finish_one()
        assert running.partitions.get("synced", 0).high_watermark == 1
        other.send(produce_values("synced", b"b"), 9)
        await flushes.finish_one()
        assert result_of(await other.receive()).base_offset == 1


async def test_an_answer_is_not_lost_to_malformed_bytes_behind_it(serve: Serve) -> None:
    running, flushes = await start(serve)
    async with await running.connect() as client:
        client.expect(PRODUCE, 9, 1)
        client.writer.write(request_frame(produce_values("synced", b"a"), 9, 1) + pack(">i", -1))
        await flushes.finish_one()
        assert result_of(await client.receive()).base_offset == 0
        assert await client.reader.read() == b""
    assert running.broker.services.metrics.malformed_requests == 1


async def test_a_stop_waits_for_the_answer(serve: Serve) -> None:
    running, flushes = await start(serve)
    async with await running.connect() as client:
        client.send(produce_values("synced", b"a"), 9)
        await flushes.wait()
        stopping = asyncio.ensure_future(running.stop())
        answer = asyncio.ensure_future(client.receive())
        await flushes.finish_one()
        assert result_of(await answer).base_offset == 0
        await stopping


async def test_with_the_brokers_own_worker(serve: Serve) -> None:
    running = await serve(**{"log.flush.interval.messages": "1"})
    await running.create_topic("t")
    async with await running.connect() as client:
        for number in range(5):
            assert result_of(await client.call(produce_values("t", b"x"), 9)).base_offset == number
            assert running.partitions.get("t", 0).log.recovery_point == number + 1
