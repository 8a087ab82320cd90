"""Large requests: decoded beside the loop, answered in order."""

from __future__ import annotations

import threading
from struct import pack
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.server import decoder as decoder_module
from minibroker.broker.server.decoder import LARGE_FRAME_BYTES
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.in_process import TIMEOUT_S, Serve, request_frame
from tests.support.record_requests import fetch_from, parts_of_answer, produce_values
from tests.support.waiting import eventually

if TYPE_CHECKING:
    pass

METADATA = MetadataRequest(topics=[])
MANY_TOPICS = MetadataRequest(
    topics=[MetadataRequestTopic(name=f"unknown-{number:05}") for number in range(3000)],
    allow_auto_topic_creation=False,
)


class Gate:
    """Stands for `read_request` in the worker: holds each request until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[threading.Thread] = []
        self.may_read = threading.Event()
        self._read = decoder_module.read_request
        monkeypatch.setattr(decoder_module, "read_request", self.read)

    def read(self, *arguments: Any) -> Any:
        self.threads.append(threading.current_thread())
        self.may_read.wait(TIMEOUT_S)
        return self._read(*arguments)


async def test_a_large_request_is_decoded_elsewhere_and_answered_in_order(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve()
    gate = Gate(monkeypatch)
    async with await running.connect() as client, await running.connect() as other:
        client.send(MANY_TOPICS, 9)
        client.send(METADATA, 9)
        await eventually(lambda: gate.threads)
        await other.call(METADATA, 9)
        gate.may_read.set()
        assert len((await client.receive()).topics) == 3000
        assert (await client.receive()).topics == []
    assert gate.threads[0] is not threading.main_thread()
    assert len(gate.threads) == 1


async def test_a_large_request_that_is_malformed_ends_its_connection(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve()
    async with await running.connect() as client:
        body = pack(">hhihi", 3, 1, 7, -1, 1 << 20) + bytes(LARGE_FRAME_BYTES)
        client.writer.write(pack(">i", len(body)) + body)
        assert await client.is_closed_by_broker()
    await eventually(lambda: running.broker.services.metrics.malformed_requests == 1)
    (record,) = [line for line in caplog.records if "closing connection" in line.getMessage()]
    assert "Metadata v1" in record.getMessage()


async def test_a_client_that_leaves_while_its_request_is_decoded_is_forgotten(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve()
    gate = Gate(monkeypatch)
    async with await running.connect() as client:
        client.send(MANY_TOPICS, 9)
        await eventually(lambda: gate.threads)
    await eventually(lambda: not running.server.connections)
    gate.may_read.set()
    async with await running.connect() as client:
        assert len((await client.call(MANY_TOPICS, 9)).topics) == 3000


async def test_a_long_poll_that_was_decoded_so_takes_no_place_of_a_task(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve()
    await running.create_topic("t")
    monkeypatch.setattr("minibroker.broker.server.dispatch.LARGE_FRAME_BYTES", 16)
    async with await running.connect() as client, await running.connect() as producer:
        client.send(fetch_from("t", max_wait_ms=60_000), 11)
        partition = running.partitions.get("t", 0)
        await eventually(lambda: partition.waiters)
        await eventually(lambda: running.server.connections._tasks_running == 0)
        await producer.call(produce_values("t", b"x"), 9)
        assert parts_of_answer(await client.receive())[0][1] == 1
        client.send(fetch_from("t", 1, max_wait_ms=60_000), 11)
        await eventually(lambda: partition.waiters)
    await eventually(lambda: not partition.waiters)


async def test_records_of_a_large_produce_are_not_decoded_elsewhere(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve()
    await running.create_topic("t")
    gate = Gate(monkeypatch)
    request = produce_values("t", bytes(2 * LARGE_FRAME_BYTES))
    assert len(request_frame(request, 2, 1)) > LARGE_FRAME_BYTES
    async with await running.connect() as client:
        await client.call(request, 9)
    assert not gate.threads
