"""Records that go out of their file, past the transport: order, bounds, and who meets an error."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any, Final

import pytest

from minibroker.broker.server import direct_socket
from minibroker.broker.server.direct_socket import DirectSocket
from minibroker.broker.server.write_queue import BUFFERS_MAX, COPIED_BYTES_MAX, WriteQueue
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import Files
from tests.support.record_requests import asking, fetch_from, part, produce_values
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from tests.support.in_process import InProcessBroker

    Serve = Callable[..., Awaitable[InProcessBroker]]

pytestmark = pytest.mark.skipif(not Files.can_send, reason="the system does not send out of files")

CONTENT: Final = os.urandom(3 << 20)
HEADER: Final = b"header"
TAIL: Final = b"tail"


class Sends:
    """Notes how much a socket takes of each `Files.send`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: list[int] = []
        real = Files.send

        def send(files: Files, *arguments: int) -> int:
            self.counts.append(0)
            self.counts[-1] = real(files, *arguments)
            return self.counts[-1]

        monkeypatch.setattr(Files, "send", send)


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    return Sends(monkeypatch)


class IdleTransport(asyncio.Transport):
    """The transport of a socket. `unsent_bytes` are said to wait in it."""

    unsent_bytes = 0
    closes = False

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def is_closing(self) -> bool:
        return self.closes


class Slice:
    """A file whose content is a slice, and a socket to a peer."""

    def __init__(self, directory: Path) -> None:
        (directory / "segment").write_bytes(CONTENT)
        self.path = f"{directory}/segment"
        self.disk = Disk()
        self.view = self.disk.slice(self.path, 5, len(CONTENT) - 5, len(CONTENT))
        self.disk.note_slice(self.view, self.path, 5)
        server = socket.create_server(("127.0.0.1", 0))
        self.peer = socket.create_connection(server.getsockname())
        self.socket, _ = server.accept()
        server.close()
        self.socket.setblocking(False)
        self.transport = IdleTransport()
        self.direct_socket = DirectSocket(self.transport, self.socket.fileno(), self.disk)
        self.queue = WriteQueue()

    def receive(self, count: int) -> bytes:
        """Return the next bytes that the peer gets."""
        self.peer.settimeout(10.0)
        content = bytearray()
        while len(content) < count:
            content += self.peer.recv(count - len(content))
        return bytes(content)

    def close(self) -> None:
        self.socket.close()
        self.peer.close()
        del self.view, self.queue
        self.disk.close()


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Slice]:
    records = Slice(tmp_path)
    yield records
    records.close()


def test_a_slice_leaves_between_what_stands_before_and_behind_it(
    records: Slice, sends: Sends
) -> None:
    view = memoryview(CONTENT)[5:100_005]
    part = records.disk.slice(records.path, 5, 100_000, len(CONTENT))
    records.disk.note_slice(part, records.path, 5)
    records.queue.add((HEADER, part, TAIL))
    assert records.direct_socket.write_from(records.queue) is False
    assert records.queue.size_bytes == 0
    assert records.receive(100_000 + 10) == HEADER + view + TAIL
    assert sends.counts == [100_000]


def test_a_full_socket_leaves_the_rest_and_the_rest_goes_on_where_it_stopped(
    records: Slice, sends: Sends
) -> None:
    records.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    records.peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    records.queue.add((HEADER, records.view, TAIL))
    total = records.queue.size_bytes
    assert records.direct_socket.write_from(records.queue) is True
    rest_bytes = records.queue.size_bytes
    assert 0 < rest_bytes < total - len(HEADER)
    content = records.receive(total - rest_bytes)
    while records.queue.size_bytes:
        records.direct_socket.write_from(records.queue)
        content += records.receive(rest_bytes - records.queue.size_bytes)
        rest_bytes = records.queue.size_bytes
    assert content == HEADER + CONTENT[5:] + TAIL
    assert len(sends.counts) > 2


def test_the_transport_goes_on_with_the_rest_of_a_slice(records: Slice) -> None:
    records.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    records.queue.add((records.view, TAIL))
    total = records.queue.size_bytes
    records.direct_socket.write_from(records.queue)
    content = records.receive(total - records.queue.size_bytes)
    rest = b"".join(records.queue.take(1 << 30))
    assert records.queue.size_bytes == 0
    assert content + rest == CONTENT[5:] + TAIL


def test_a_turn_has_a_bound(records: Slice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_socket, "TURN_BYTES", 10_000)
    records.queue.add((records.view,))
    assert records.direct_socket.write_from(records.queue) is False
    assert records.queue.size_bytes == len(CONTENT) - 5 - 10_000


def test_a_turn_has_its_bound_with_bytes_of_no_file_behind_a_slice(
    records: Slice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_socket, "TURN_BYTES", 1 << 20)
    part = records.disk.slice(records.path, 5, (1 << 20) - 100, len(CONTENT))
    records.disk.note_slice(part, records.path, 5)
    records.queue.add((part, bytes(300), part))
    size_bytes = records.queue.size_bytes
    records.direct_socket.write_from(records.queue)
    assert size_bytes - records.queue.size_bytes <= 1 << 20


def test_short_buffers_between_slices_leave_with_one_call(
    records: Slice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call for each would hold the loop for milliseconds, and be a packet each."""
    calls: list[int] = []
    writev = os.writev

    def note(socket_fd: int, buffers: list[bytes]) -> int:
        calls.append(len(buffers))
        return writev(socket_fd, buffers)

    monkeypatch.setattr(os, "writev", note)
    short = [b"%06d" % number for number in range(BUFFERS_MAX + 100)]
    part = records.disk.slice(records.path, 5, 100_000, len(CONTENT))
    records.disk.note_slice(part, records.path, 5)
    records.queue.add((*short, part, *short[:3]))
    assert records.direct_socket.write_from(records.queue) is False
    assert calls == [BUFFERS_MAX, 100, 3]
    content = b"".join((*short, part, *short[:3]))
    assert records.receive(len(content)) == content


@pytest.mark.parametrize("size_bytes", [COPIED_BYTES_MAX, COPIED_BYTES_MAX + 1])
def test_large_bytes_of_no_file_are_left_to_the_transport(records: Slice, size_bytes: int) -> None:
    records.queue.add((bytes(size_bytes), TAIL))
    is_left = size_bytes > COPIED_BYTES_MAX
    assert records.direct_socket.write_from(records.queue) is is_left
    assert bool(records.queue.size_bytes) is is_left


def test_a_slice_of_a_file_that_was_changed_is_left_to_the_transport(
    records: Slice, sends: Sends
) -> None:
    """Other bytes may be at its place; the slice keeps its own."""
    records.disk.windows.cut(records.path, 10)
    os.truncate(records.path, 10)
    records.queue.add((HEADER, records.view))
    assert records.direct_socket.write_from(records.queue) is True
    assert records.receive(len(HEADER)) == HEADER
    assert b"".join(records.queue.take(1 << 30)) == CONTENT[5:]
    assert sends.counts == []


def test_a_slice_of_a_file_that_is_not_open_is_left_to_the_transport(
    records: Slice, sends: Sends
) -> None:
    records.disk.handles.forget(records.path)
    records.queue.add((records.view,))
    assert records.direct_socket.write_from(records.queue) is True
    assert sends.counts == []


def test_an_error_of_the_socket_is_left_to_the_transport(records: Slice) -> None:
    records.socket.shutdown(socket.SHUT_WR)
    records.queue.add((HEADER, records.view))
    size_bytes = records.queue.size_bytes
    assert records.direct_socket.write_from(records.queue) is True
    assert records.queue.size_bytes == size_bytes


@pytest.mark.parametrize(("unsent_bytes", "closes"), [(1, False), (0, True)])
def test_nothing_is_written_past_a_transport_that_is_busy_or_closes(
    records: Slice, unsent_bytes: int, closes: bool
) -> None:
    assert records.direct_socket.is_free
    records.transport.unsent_bytes, records.transport.closes = unsent_bytes, closes
    assert not records.direct_socket.is_free


# The whole way.


async def fetched(client: Any) -> bytes:
    """Return the records of the first partition."""
    answer = await client.call(fetch_from("t"), 11)
    return bytes(answer.responses[0].partitions[0].records)


async def test_a_fetch_goes_out_of_the_file_and_holds_what_the_file_has(
    serve: Serve, sends: Sends
) -> None:
    running = await serve()
    await running.create_topic("t")
    value = os.urandom(700_000)
    async with await running.connect() as client:
        await client.call(produce_values("t", value), 9)
        records = await fetched(client)
        assert value in records
        assert await fetched(client) == records
    assert sends.counts
    assert not running.partitions.disk.windows.places
    assert 0 < max(sends.counts) <= len(records)


async def test_an_answer_of_many_short_slices_is_for_the_transport(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(os, "writev", lambda _, buffers: calls.append(len(buffers)) or 0)
    running = await serve()
    await running.create_topic("t", 20)
    async with await running.connect() as client:
        for partition in range(20):
            await client.call(produce_values("t", bytes(10_000), index=partition), 9)
        fetch = asking(
            *(part(partition, offset=0, max_bytes=50_000_000) for partition in range(20)),
            topic="t",
            max_bytes=50_000_000,
        )
        answer = await client.call(fetch, 11)
        parts = answer.responses[0].partitions
        assert [len(part_read.records) > 10_000 for part_read in parts] == [True] * 20
    assert calls == []


async def test_an_answer_keeps_its_place_among_others_of_its_connection(
    serve: Serve, sends: Sends
) -> None:
    """The answers to one read leave together: the small one waits in the transport, and the
    records may not pass it.
    """
    running = await serve()
    await running.create_topic("t")
    async with await running.connect() as client:
        await client.call(produce_values("t", os.urandom(700_000)), 9)
        records = await fetched(client)
        for _ in range(20):
            client.send(fetch_from("t"), 11)
            client.send(fetch_from("absent"), 11)
        for _ in range(20):
            answer = await client.receive()
            assert bytes(answer.responses[0].partitions[0].records) == records
            assert (await client.receive()).responses[0].partitions[0].error_code
    assert sends.counts


async def test_a_peer_that_reads_late_gets_every_byte(serve: Serve, sends: Sends) -> None:
    running = await serve(**{"message.max.bytes": "20000000"})
    await running.create_topic("t")
    value = os.urandom(12_000_000)
    async with await running.connect() as client:
        await client.call(produce_values("t", value), 9)
        client.reader._transport.pause_reading()
        client.send(fetch_from("t"), 11)
        (connection,) = running.server.connections
        await eventually(lambda: connection._is_paused)
        client.reader._transport.resume_reading()
        answer = await client.receive()
        assert value in bytes(answer.responses[0].partitions[0].records)
    assert 0 < sum(sends.counts) < len(value)
