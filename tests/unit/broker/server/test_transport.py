"""Frames, order, back-pressure and the end of one connection, as a peer on a socket sees them."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from asyncio.selector_events import _SelectorSocketTransport
from struct import pack
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.handlers import api_versions, create_topics
from minibroker.broker.partitions.append_queue import Flusher
from minibroker.broker.server import dispatch as dispatch_module
from minibroker.broker.server import transport as transport_module
from minibroker.broker.server import write_queue
from minibroker.broker.server.request_memory import BUFFER_BYTES
from minibroker.broker.server.write_queue import TURN_BYTES, WriteQueue
from minibroker.broker.storage.files import Files
from minibroker.broker.worker import Caller, Workers
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError
from minibroker.kafka.protocol.api_keys import PRODUCE
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from minibroker.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.in_process import TIMEOUT_S, Serve, batch_of, request_frame
from tests.support.record_requests import fetch_from, produce_values
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.broker.server.transport import ClientTransport
    from tests.support.in_process import InProcessBroker


VERSIONS = ApiVersionsRequest(client_software_name="t", client_software_version="1")
VERSIONS_KEY = 18
KILOBYTE = 1024


def metadata_frame(correlation_id: int) -> bytes:
    return request_frame(MetadataRequest(topics=[]), 9, correlation_id)


def only_connection(running: InProcessBroker) -> ClientTransport:
    (connection,) = running.server.connections
    return connection


def filled_of(running: InProcessBroker) -> int:
    """Bytes of all connections that no request has taken yet."""
    return sum(
        connection.connection.receive_buffer.end for connection in running.server.connections
    )


# Frames.


@pytest.mark.parametrize("step", [1, 3, 7, 4096])
async def test_requests_are_answered_however_their_bytes_arrive(serve: Serve, step: int) -> None:
    running = await serve()
    stream = b"".join(metadata_frame(number) for number in (1, 2, 3))
    async with await running.connect() as client:
        for start in range(0, len(stream), step):
            client.writer.write(stream[start : start + step])
            await client.writer.drain()
            await asyncio.sleep(0)
        for number in (1, 2, 3):
            client.expect(3, 9, number)
            assert (await client.receive()).brokers[0].node_id == 0


async def test_bytes_of_the_next_frame_wait_for_their_rest(serve: Serve) -> None:
    running = await serve()
    whole, next_one = metadata_frame(1), metadata_frame(2)
    async with await running.connect() as client:
        client.writer.write(whole + next_one[:9])
        client.expect(3, 9, 1)
        await client.receive()
        client.writer.write(next_one[9:])
        client.expect(3, 9, 2)
        await client.receive()


async def test_a_frame_of_several_megabytes_works_and_its_buffer_is_given_back(
    serve: Serve,
) -> None:
    running = await serve(**{"message.max.bytes": "8000000"})
    await running.create_topic("large")
    value = bytes(5_000_000)
    async with await running.connect() as client:
        answer = await client.call(produce_values("large", value), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        received = only_connection(running).connection.receive_buffer
        assert received.size_bytes == 0
        fetched = await client.call(fetch_from("large"), 11)
        assert bytes(fetched.responses[0].partitions[0].records).endswith(value[:100] + b"\0")


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        (-1, "request size -1 bytes"),
        (-(2**31), "request size -2147483648 bytes"),
        (2**31 - 1, "request size 2147483647 bytes"),
        (1_000_001, "socket.request.max.bytes"),
    ],
)
async def test_a_size_beyond_the_limits_ends_the_connection_and_no_other(
    serve: Serve, caplog: pytest.LogCaptureFixture, size: int, reason: str
) -> None:
    running = await serve(**{"socket.request.max.bytes": "1000000"})
    async with await running.connect() as other, await running.connect() as client:
        client.writer.write(metadata_frame(1) + pack(">i", size))
        client.expect(3, 9, 1)
        await client.receive()
        assert await client.is_closed_by_broker()
        (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
        host, port = client.writer.get_extra_info("sockname")[:2]
        assert f"{host}:{port}" in record.getMessage()
        assert reason in record.getMessage()
        await other.call(MetadataRequest(topics=[]), 9)
    assert running.broker.services.metrics.malformed_requests == 1


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"", "holds no request header"),
        (b"\0", "holds no request header"),
        (pack(">hhih", 999, 0, 1, -1), "no API has key 999"),
        (pack(">hhih", -1, 0, 1, -1), "no API has key -1"),
        (pack(">hhih", 3, 99, 1, -1) + b"\0", "Metadata (key 3) version 99 is not served"),
        (pack(">hhih", 3, -1, 1, -1), "Metadata (key 3) version -1 is not served"),
        (pack(">hhih", 79, 1, 1, -1) + b"\0", "ShareAcknowledge (key 79) version 1 is not served"),
        (pack(">hhih", 3, 1, 1, 500), "client id of 500 bytes"),
        (pack(">hhihi", 3, 1, 1, -1, 2**30), "Metadata v1"),
    ],
)
async def test_a_malformed_request_ends_the_connection_with_one_log_line(
    serve: Serve, caplog: pytest.LogCaptureFixture, frame: bytes, reason: str
) -> None:
    running = await serve()
    async with await running.connect() as other, await running.connect() as client:
        client.writer.write(pack(">i", len(frame)) + frame + metadata_frame(2))
        assert await client.is_closed_by_broker()
        (record,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
        assert reason in record.getMessage()
        await other.call(MetadataRequest(topics=[]), 9)


async def test_an_announced_size_takes_no_memory_before_its_bytes_are_there(serve: Serve) -> None:
    running = await serve()
    async with await running.connect() as client:
        client.writer.write(pack(">i", 100_000_000) + bytes(1000))
        await eventually(lambda: filled_of(running) == 1004)
        assert only_connection(running).connection.receive_buffer.size_bytes == BUFFER_BYTES


async def test_the_buffer_grows_only_with_received_bytes(serve: Serve) -> None:
    running = await serve()
    async with await running.connect() as client:
        client.writer.write(pack(">i", 100_000_000) + bytes(300_000))
        await eventually(lambda: filled_of(running) == 300_004)
        assert only_connection(running).connection.receive_buffer.size_bytes <= 4 * 300_004


async def test_a_connection_that_holds_no_bytes_holds_no_buffer(serve: Serve) -> None:
    running = await serve()
    await running.create_topic("t")
    async with await running.connect() as client:
        await client.call(VERSIONS, 3)
        assert only_connection(running).connection.receive_buffer.size_bytes == 0
        client.send(fetch_from("t", max_wait_ms=60_000), 11)
        await eventually(lambda: only_connection(running).connection.is_busy)
        assert only_connection(running).connection.receive_buffer.size_bytes == 0


# Order.


async def test_a_waiting_request_holds_those_behind_it(serve: Serve) -> None:
    running = await serve()
    await running.create_topic("t")
    async with await running.connect() as client, await running.connect() as producer:
        client.send(MetadataRequest(topics=[]), 9)
        client.send(fetch_from("t", max_wait_ms=60_000), 11)
        client.send(MetadataRequest(topics=[]), 9)
        client.send(VERSIONS, 3)
        await client.receive()
        await eventually(lambda: any(c.connection.is_busy for c in running.server.connections))
        assert not client.reader._buffer  # type: ignore[attr-defined]
        await producer.call(produce_values("t", b"x"), 9)
        fetched = await client.receive()
        assert len(fetched.responses[0].partitions[0].records) > 0
        assert (await client.receive()).cluster_id == running.broker.cluster.image.cluster_id
        assert (await client.receive()).error_code == 0


async def test_hundreds_of_pipelined_requests_are_answered_in_order(serve: Serve) -> None:
    running = await serve()
    await running.create_topic("t")
    async with await running.connect() as client:
        for number in range(700):
            client.send(produce_values("t", b"%d" % number), 9)
            if number % 50 == 0:
                client.send(MetadataRequest(topics=[]), 9)
        offsets = []
        for number in range(700):
            answer = await client.receive()
            offsets.append(answer.responses[0].partition_responses[0].base_offset)
            if number % 50 == 0:
                await client.receive()
        assert offsets == list(range(700))


async def test_a_request_without_an_answer_is_passed_over(serve: Serve) -> None:
    running = await serve()
    await running.create_topic("t")
    async with await running.connect() as client:
        client.writer.write(request_frame(produce_values("t", b"a", acks=0), 9, 1))
        client.correlation_id = 1
        answer = await client.call(produce_values("t", b"b"), 9)
        assert answer.responses[0].partition_responses[0].base_offset == 1


async def test_nothing_is_handled_behind_a_failed_produce_without_acks(serve: Serve) -> None:
    running = await serve()
    await running.create_topic("t")
    async with await running.connect() as client:
        preceding = request_frame(produce_values("t", b"before"), 9, 1)
        failing = request_frame(produce_values("nowhere", b"x", acks=0), 9, 2)
        behind = request_frame(produce_values("t", b"behind"), 9, 3)
        client.writer.write(preceding + failing + behind)
        client.expect(0, 9, 1)
        answer = await client.receive()
        assert answer.responses[0].partition_responses[0].base_offset == 0
        assert await client.is_closed_by_broker()
    assert running.partitions.get("t", 0).log_end_offset == 1


@pytest.mark.pure("watches ClientTransport._hold_back")
async def test_pipelined_requests_give_way_when_their_turn_is_over(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "TURN_NS", -1)
    monkeypatch.setattr(dispatch_module, "RUN_NS", -1)
    held_back: list[None] = []
    hold_back = transport_module.ClientTransport._hold_back

    def hold_back_noting(self: transport_module.ClientTransport) -> None:
        held_back.append(None)
        hold_back(self)

    monkeypatch.setattr(transport_module.ClientTransport, "_hold_back", hold_back_noting)
    running = await serve()
    async with await running.connect() as client:
        for _ in range(20):
            client.send(MetadataRequest(topics=[]), 9)
        for _ in range(20):
            assert (await client.receive()).brokers
        assert (await client.call(VERSIONS, 0)).error_code == 0
    assert len(held_back) >= 19  # nothing is left behind the last


# Back-pressure.


@pytest.mark.pure("watches Dispatcher.finish")
async def test_pipelined_requests_pile_up_no_more_than_the_bytes_of_a_run(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    finish = dispatch_module.Dispatcher.finish

    def finish_noting(self: dispatch_module.Dispatcher, *arguments: Any) -> list[Any]:
        parts = finish(self, *arguments)
        sizes.append(sum(map(len, parts)))
        return parts

    monkeypatch.setattr(dispatch_module.Dispatcher, "finish", finish_noting)
    monkeypatch.setattr(dispatch_module, "RUN_NS", 10**18)
    running = await serve()
    await running.create_topic("t", 500)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    async with await running.connect() as client:
        client.writer.write(b"".join(request_frame(request, 1, n) for n in range(100)))
        for number in range(100):
            client.expect(3, 1, number)
            assert len((await client.receive()).topics[0].partitions) == 500
    assert sum(sizes) > 4 * dispatch_module.RUN_BYTES_MAX
    assert max(sizes) < dispatch_module.RUN_BYTES_MAX + sum(sizes) / 100


def write_lines_without_pause(transport: asyncio.Transport, buffers: Iterable[bytes]) -> None:
    """Write as asyncio of Python 3.12.0 to 3.12.7 and 3.13.0: nothing is paused by it."""
    transport._maybe_pause_protocol = lambda: None  # type: ignore[attr-defined]
    transport.write(b"".join(buffers))
    del transport._maybe_pause_protocol  # type: ignore[attr-defined]


@pytest.mark.parametrize("pauses", [True, False])
async def test_a_peer_that_does_not_read_is_not_read_either(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, pauses: bool
) -> None:
    if not pauses:
        monkeypatch.setattr(_SelectorSocketTransport, "writelines", write_lines_without_pause)
    monkeypatch.setattr(transport_module, "TURN_NS", 10**18)  # only the peer stops the reading
    running = await serve(**{"socket.send.buffer.bytes": "16384"})
    await running.create_topic("t")
    async with await running.connect() as client:
        async with await running.connect() as producer:
            await producer.call(produce_values("t", bytes(500_000)), 9)
        await eventually(lambda: len(running.server.connections) == 1)
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]
        request = request_frame(fetch_from("t"), 11, 7, client_id="x" * 30_000)
        connection = only_connection(running)
        count = 0
        while connection._transport.is_reading():
            client.writer.write(request)
            count += 1
            await asyncio.sleep(0)
            assert count < 2000
        assert connection._is_paused
        assert connection.connection.receive_buffer.size_bytes <= 2 * BUFFER_BYTES
        waiting = connection._transport.get_write_buffer_size()
        assert waiting <= transport_module.WRITE_HIGH_WATER_BYTES + 600_000
        client.reader._transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(count):
            assert len(await client.receive_frame()) > 500_000


async def test_a_large_answer_leaves_in_turns_and_others_are_served_between(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Files, "can_send", False)
    monkeypatch.setattr(write_queue.WriteQueue, "take", note_turns(turns := []))
    running = await serve(**{"message.max.bytes": "8000000"})
    await running.create_topic("t")
    async with await running.connect() as client, await running.connect() as neighbour:
        await client.call(produce_values("t", bytes(4_000_000)), 9)
        client.send(fetch_from("t"), 11)
        client.send(VERSIONS, 0)
        await eventually(lambda: turns)
        await neighbour.call(MetadataRequest(topics=[]), 9)
        fetched = await client.receive()
        assert len(fetched.responses[0].partitions[0].records) > 4_000_000
        assert (await client.receive()).error_code == 0
    assert len(turns) > 4_000_000 / write_queue.TURN_BYTES
    assert max(turns) <= write_queue.TURN_BYTES


def note_turns(turns: list[int]) -> Callable[..., list[Any]]:
    """Return `WriteQueue.take` that notes how many bytes it gives."""
    take = write_queue.WriteQueue.take

    def take_noting(self: write_queue.WriteQueue, *bytes_max: int) -> list[Any]:
        parts = take(self, *bytes_max)
        turns.append(sum(map(len, parts)))
        return parts

    return take_noting


async def test_an_answer_in_turns_is_whole_though_the_broker_stops(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Files, "can_send", False)
    running = await serve(**{"message.max.bytes": "8000000"})
    await running.create_topic("t")
    async with await running.connect() as client:
        await client.call(produce_values("t", bytes(4_000_000)), 9)
        connection = only_connection(running)
        take = write_queue.WriteQueue.take

        def stopped_after(self: write_queue.WriteQueue, *bytes_max: int) -> list[Any]:
            """Stop the connection before the second turn."""
            if not bytes_max:
                asyncio.get_running_loop().call_soon(connection.stop)
            return take(self, *bytes_max)

        monkeypatch.setattr(write_queue.WriteQueue, "take", stopped_after)
        fetched = await client.call(fetch_from("t"), 11)
        assert len(fetched.responses[0].partitions[0].records) > 4_000_000
        assert await client.is_closed_by_broker()


async def test_requests_behind_a_waiting_one_fill_the_buffer_and_no_more(serve: Serve) -> None:
    running = await serve()
    await running.create_topic("t")
    name = "n" * KILOBYTE
    async with await running.connect(name) as client, await running.connect() as producer:
        client.send(fetch_from("t", max_wait_ms=60_000), 11)
        await eventually(lambda: any(c.connection.is_busy for c in running.server.connections))
        (waiting,) = [c for c in running.server.connections if c.connection.is_busy]
        count = 8 * BUFFER_BYTES // KILOBYTE
        for _ in range(count):
            client.send(VERSIONS, 0)
        await eventually(lambda: not waiting._transport.is_reading())
        assert waiting.connection.receive_buffer.size_bytes <= 2 * BUFFER_BYTES
        await producer.call(produce_values("t", b"x"), 9)
        await client.receive()
        for _ in range(count):
            assert (await client.receive()).error_code == 0


async def test_the_buffer_does_not_grow_with_every_wait(serve: Serve) -> None:
    running = await serve()
    await running.create_topic("t")
    async with await running.connect() as client:
        count = 4 * BUFFER_BYTES // KILOBYTE
        poll = request_frame(fetch_from("t", max_wait_ms=1), 11, 1, "n" * KILOBYTE)
        client.writer.write(poll * count)
        for _ in range(count):
            await client.receive_frame()
        assert only_connection(running).connection.receive_buffer.size_bytes <= 2 * BUFFER_BYTES


# The end.


async def test_a_half_closed_peer_is_closed_as_kafka_does(serve: Serve) -> None:
    running = await serve()
    await running.create_topic("t")
    client = await running.connect()
    client.send(fetch_from("t", max_wait_ms=60_000), 11)
    await eventually(lambda: running.partitions.get("t", 0).waiters)
    client.writer.write_eof()
    assert await client.is_closed_by_broker()
    await eventually(lambda: not running.server.connections)
    await client.close()


async def test_a_lost_connection_leaves_no_waiting_fetch_behind(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve()
    await running.create_topic("t")
    client = await running.connect()
    client.send(fetch_from("t", max_wait_ms=60_000), 11)
    await eventually(lambda: running.partitions.get("t", 0).waiters)
    client.writer.transport.abort()
    await eventually(lambda: not running.server.connections)
    await eventually(lambda: not running.partitions.get("t", 0).waiters)
    async with await running.connect() as other:
        await other.call(produce_values("t", b"x"), 9)
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


async def test_work_that_has_begun_is_finished_though_its_client_went(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve()
    arrival, go_on = asyncio.Event(), asyncio.Event()
    create = create_topics.handle

    async def slow(context: Any, request: Any) -> CreateTopicsResponse:
        arrival.set()
        await go_on.wait()
        return await create(context, request)

    monkeypatch.setattr(create_topics, "handle", slow)
    client = await running.connect()
    client.send(new_topic("late"), 5)
    await arrival.wait()
    client.writer.transport.abort()
    await eventually(lambda: not running.server.connections)
    go_on.set()
    await eventually(lambda: "late" in running.broker.cluster.image.topics)
    await eventually(lambda: running.server.connections._tasks_running == 0)


def new_topic(name: str) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


async def test_an_error_of_a_task_whose_client_went_is_logged(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve()
    arrival, go_on = asyncio.Event(), asyncio.Event()

    async def failing(context: Any, request: Any) -> None:
        arrival.set()
        await go_on.wait()
        raise RuntimeError("no luck")

    monkeypatch.setattr(create_topics, "handle", failing)
    client = await running.connect()
    client.send(new_topic("t"), 5)
    await arrival.wait()
    client.writer.transport.abort()
    await eventually(lambda: not running.server.connections)
    go_on.set()
    await eventually(lambda: running.server.connections._tasks_running == 0)
    (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert "CreateTopics" in record.getMessage()


async def test_a_broken_answer_closes_the_connection_instead_of_hanging_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve()

    def broken(context: Any, request: Any) -> ApiVersionsResponse:
        return ApiVersionsResponse(error_code="none")  # type: ignore[arg-type]

    monkeypatch.setattr(api_versions, "handle", broken)
    async with await running.connect() as client, await running.connect() as other:
        client.send(VERSIONS, 3)
        assert await client.is_closed_by_broker()
        await other.call(MetadataRequest(topics=[]), 9)
    (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert "ApiVersions" in record.getMessage()
    assert record.exc_info is not None


async def test_an_error_while_waiting_becomes_an_answer(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve()

    async def failing(context: Any, request: Any) -> None:
        await asyncio.sleep(0)
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    monkeypatch.setattr(create_topics, "handle", failing)
    async with await running.connect() as client:
        answer = await client.call(new_topic("t"), 5)
        assert answer.topics[0].error_code == ErrorCode.NOT_CONTROLLER


async def test_a_connection_is_not_idle_after_a_long_wait(
    serve: Serve,
) -> None:
    running = await serve()
    await running.create_topic("t")
    async with await running.connect() as client:
        client.send(fetch_from("t", max_wait_ms=60_000), 11)
        await eventually(lambda: running.partitions.get("t", 0).waiters)
        connection = only_connection(running)
        connection.last_active_s = 0.0
        running.partitions.wake_all()
        await client.receive()
        assert connection.last_active_s > 0


async def test_several_frames_in_one_read_are_one_write_to_disk(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve()
    await running.create_topic("t")
    log = running.partitions.get("t", 0).log
    writes = []

    def counting(fd: int, buffers: list[Any], position: int) -> int:
        writes.append(len(buffers))
        return os.pwritev(fd, buffers, position)

    monkeypatch.setattr(type(log.disk.files), "pwritev", staticmethod(counting))
    async with await running.connect() as client:
        await client.call(produce_values("t", b"first"), 9)
        writes.clear()
        raw = b"".join(request_frame(produce_values("t", b"%d" % n), 9, n) for n in range(10))
        client.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.writer.write(raw)
        for _ in range(10):
            await client.receive_frame()
    assert 10 in writes  # the worker may write checkpoints beside it


async def test_answers_before_one_that_cannot_be_encoded_are_sent(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve()
    encode = ApiVersionsResponse.write

    def fail_in_version_1(self: ApiVersionsResponse, writer: Any, version: int) -> None:
        if version == 1:
            raise TypeError("a bug")
        encode(self, writer, version)

    monkeypatch.setattr(ApiVersionsResponse, "write", fail_in_version_1)
    async with await running.connect() as client:
        frames = [request_frame(VERSIONS, version, 7) for version in (0, 1, 0)]
        client.writer.write(b"".join(frames))
        client.expect(VERSIONS_KEY, 0, 7)
        assert (await client.receive()).error_code == 0
        assert await client.is_closed_by_broker()
    assert len([r for r in caplog.records if "closing connection" in r.getMessage()]) == 1


async def test_staged_records_are_written_though_the_client_went(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve()
    await running.create_topic("t")
    partition = running.partitions.get("t", 0)
    arrival, goes_on = asyncio.Event(), asyncio.Event()

    async def stage_late(context: Any, request: Any) -> CreateTopicsResponse:
        arrival.set()
        await goes_on.wait()
        partition.append(memoryview(batch_of(b"x")), -1, 0, PartitionProduceResponse())
        return CreateTopicsResponse()

    monkeypatch.setattr(create_topics, "handle", stage_late)
    async with await running.connect() as client:
        client.send(new_topic("u"), 5)
        async with asyncio.timeout(TIMEOUT_S):
            await arrival.wait()
    await eventually(lambda: not running.server.connections)
    goes_on.set()
    await eventually(lambda: partition.high_watermark == 1)
    assert not running.partitions.appends.staged


# Requests that want no answer.


async def test_requests_without_an_answer_are_counted(serve: Serve) -> None:
    running = await serve()
    await running.create_topic("t")
    async with await running.connect() as client:
        for number in (1, 2, 3):
            client.writer.write(request_frame(produce_values("t", b"a", acks=0), 9, number))
        client.correlation_id = 3
        await client.call(VERSIONS, 0)
    counted = running.broker.services.metrics.requests["Produce"]
    times = counted.by_name()
    assert times["TotalTimeMs"].count == times["LocalTimeMs"].count == 3


async def test_an_error_of_the_whole_request_ends_a_connection_that_wants_no_answer(
    serve: Serve,
) -> None:
    running = await serve()
    await running.create_topic("t")
    async with await running.connect() as client:
        preceding = request_frame(produce_values("t", b"before"), 9, 1)
        transactional = batch_of(
            b"a", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True
        )
        data = PartitionProduceData(index=0, records=transactional)
        topics = [TopicProduceData(name="t", partition_data=[data])]
        failing = request_frame(ProduceRequest(acks=0, topic_data=topics), 9, 2)
        client.writer.write(
            preceding + failing + request_frame(produce_values("t", b"behind"), 9, 3)
        )
        client.expect(0, 9, 1)
        answer = await client.receive()
        assert answer.responses[0].partition_responses[0].base_offset == 0
        assert await client.is_closed_by_broker()
    assert running.partitions.get("t", 0).log_end_offset == 1


async def test_a_disk_that_refuses_ends_a_connection_that_wants_no_answer(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve()
    await running.create_topic("t")

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no room")

    async with await running.connect() as client:
        await client.call(produce_values("t", b"a"), 9)
        monkeypatch.setattr(Files, "pwritev", refuse)
        client.send(produce_values("t", b"b", acks=0), 9)
        assert await client.is_closed_by_broker()
        monkeypatch.undo()


async def test_pipelined_commits_are_not_answered_before_the_disk_has_them(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve()
    await running.create_topic("t")
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata="x"
    )
    commit = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no room")

    async with await running.connect() as client:
        await client.call(FindCoordinatorRequest(key="g"), 3)
        await client.call(commit, 8)
        monkeypatch.setattr(Files, "pwritev", refuse)
        client.writer.write(b"".join(request_frame(commit, 8, number) for number in range(3)))
        for number in range(3):
            client.expect(8, 8, number)
            answer = await client.receive()
            assert answer.topics[0].partitions[0].error_code != ErrorCode.NONE
        monkeypatch.undo()


# Bytes of large answers leave in order, in pieces of a bounded size.


def test_bytes_leave_in_order_and_in_bounded_pieces() -> None:
    queue = WriteQueue()
    parts = [b"a" * 5, b"", bytearray(b"b" * 7), memoryview(b"c" * 2)]
    queue.add(parts)
    assert queue.size_bytes == 14
    pieces = []
    while queue.size_bytes:
        pieces.append(b"".join(queue.take(4)))
    assert pieces == [b"aaaa", b"abbb", b"bbbb", b"cc"]


def test_bytes_that_come_later_stand_behind() -> None:
    queue = WriteQueue()
    queue.add([b"abc"])
    assert queue.take(2) == [b"ab"]
    queue.add([b"d"])
    assert b"".join(queue.take(9)) == b"cd"
    assert queue.size_bytes == 0
    assert queue.take() == []


def test_a_turn_copies_nothing() -> None:
    queue = WriteQueue()
    records = bytes(2 * TURN_BYTES)
    queue.add([records])
    first, second = queue.take(), queue.take()
    assert [len(first), len(second)] == [1, 1]
    assert all(isinstance(piece, memoryview) and piece.obj is records for piece in first + second)


# `flush.messages`: the answer leaves when the records are on the disk, and nothing else waits.


class HeldFlushes(Caller):
    """Stands where the flush worker does: an fsync is done when the test says so."""

    def __init__(self, running: InProcessBroker) -> None:
        self.work: list[Any] = []
        self._came = asyncio.Event()
        running.partitions.appends.flusher = Flusher(Workers.by(self).flushes)

    def run_then(self, task: Any, done: Any) -> None:
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
        answer = await other.call(fetch_from("synced"), 12)
        assert answer.responses[0].partitions[0].high_watermark == 0
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
        client._unanswered.clear()
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
        answer = await reader.receive()
        assert answer.responses[0].partitions[0].high_watermark == 1


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
