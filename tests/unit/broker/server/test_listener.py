"""Binding: free ports, names, a port in use, several listeners, kernel buffers."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.server.listener import KNOCKS_MAX, ListeningSocket
from minibroker.kafka.errors import StorageError
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.in_process import Serve
from tests.support.waiting import eventually

if TYPE_CHECKING:
    pass


async def test_port_0_takes_a_free_port_and_clients_are_told_which(serve: Serve) -> None:
    running = await serve()
    async with await running.connect() as client:
        answer = await client.call(MetadataRequest(topics=[]), 9)
    assert (answer.brokers[0].host, answer.brokers[0].port) == running.address
    assert running.address[1] > 0


async def test_a_port_in_use_is_one_sentence_and_leaves_nothing_behind(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(StorageError, match=f"on 127.0.0.1:{port}: .*: end the program"):
            await serve(listeners=f"PLAINTEXT://127.0.0.1:{port}")
    running = await serve(listeners=f"PLAINTEXT://127.0.0.1:{port}")
    assert running.address[1] == port


async def test_each_listener_tells_its_own_address(serve: Serve) -> None:
    running = await serve(
        **{
            "listeners": "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        }
    )
    (broker,) = running.broker.cluster.image.brokers.values()
    ports = set()
    for endpoint in broker.endpoints:
        running.broker.address = (endpoint.host, endpoint.port)
        async with await running.connect() as client:
            answer = await client.call(MetadataRequest(topics=[]), 9)
        assert answer.brokers[0].port == endpoint.port
        ports.add(endpoint.port)
    assert len(ports) == 2


async def test_a_client_of_ipv4_on_an_ipv6_socket_has_its_ipv4_address(serve: Serve) -> None:
    """The kernel says `::ffff:127.0.0.1` of it; hosts of ACLs and limits are `127.0.0.1`."""
    running = await serve(
        **{
            "listeners": "PLAINTEXT://[::ffff:127.0.0.1]:0",
            "max.connections.per.ip.overrides": "127.0.0.1:1",
        }
    )
    connections, port = running.server.connections, running.broker.ports["PLAINTEXT"]
    with socket.create_connection(("127.0.0.1", port)):
        await eventually(lambda: len(connections) == 1)
        (connection,) = connections
        assert connection.host == "127.0.0.1"
        assert connection.address.startswith("127.0.0.1:")
        with socket.create_connection(("127.0.0.1", port)) as second:
            second.setblocking(False)
            assert await asyncio.get_running_loop().sock_recv(second, 1) == b""


async def test_an_advertised_address_is_told_instead_of_the_bound_one(serve: Serve) -> None:
    running = await serve(**{"advertised.listeners": "PLAINTEXT://kafka.example:19092"})
    assert running.address == ("kafka.example", 19092)
    bound = running.server._sockets[0]._socket
    assert bound is not None
    running.broker.address = bound.getsockname()
    async with await running.connect() as client:
        answer = await client.call(MetadataRequest(topics=[]), 9)
    assert (answer.brokers[0].host, answer.brokers[0].port) == ("kafka.example", 19092)


async def test_kernel_buffers_are_set_only_when_asked_for(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffers: list[tuple[str, bool]] = []
    original = ListeningSocket._set_buffer

    def set_buffer(self: ListeningSocket, listening: socket.socket, key: str, option: int) -> None:
        old_size = listening.getsockopt(socket.SOL_SOCKET, option)
        original(self, listening, key, option)
        buffers.append((key, listening.getsockopt(socket.SOL_SOCKET, option) != old_size))

    monkeypatch.setattr(ListeningSocket, "_set_buffer", set_buffer)
    for settings, changes in (
        ({}, False),
        ({"socket.send.buffer.bytes": "30000", "socket.receive.buffer.bytes": "30000"}, True),
    ):
        buffers.clear()
        running = await serve(**settings)
        async with await running.connect() as client:
            await client.call(MetadataRequest(topics=[]), 9)
        assert buffers == [
            ("socket.receive.buffer.bytes", changes),
            ("socket.send.buffer.bytes", changes),
        ]


async def test_a_client_at_the_door_of_a_full_broker_keeps_the_loop_idle(serve: Serve) -> None:
    """The loop looks for clients only while one can be let in."""
    running = await serve(**{"max.connections": "1"})
    (listening,) = running.server._sockets
    first = await running.connect()
    await first.call(MetadataRequest(topics=[]), 9)
    # The second one is accepted, and held; the third one stays at the door.
    async with await running.connect() as second, await running.connect() as third:
        await eventually(lambda: not listening._is_watched)
        assert listening._knocks == KNOCKS_MAX
        await first.close()
        await second.call(MetadataRequest(topics=[]), 9)
        await second.close()
        await third.call(MetadataRequest(topics=[]), 9)
    await eventually(lambda: listening._is_watched and not listening._knocks)


async def test_accepting_goes_on_after_the_system_had_no_handle_left(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve()
    (listening,) = running.server._sockets
    failures = [OSError(24, "Too many open files"), OSError(24, "Too many open files")]

    class Door(socket.socket):
        """The listening socket, whose first two accepts fail."""

        def accept(self) -> tuple[socket.socket, object]:
            if failures:
                raise failures.pop()
            return super().accept()

    listening.stop_accepting()
    assert listening._task is not None
    await asyncio.wait([listening._task])
    listening._is_stopping = False
    bound = listening._socket
    assert bound is not None
    listening._socket = Door(bound.family, bound.type, bound.proto, fileno=bound.detach())
    listening._socket.setblocking(False)
    listening.start()
    refused = await running.connect()
    await eventually(lambda: "cannot accept a connection" in caplog.text)
    async with await running.connect() as client:
        await client.call(MetadataRequest(topics=[]), 9)
    (record,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert "Too many open files" in record.getMessage()
    assert "raise the limit of open files (ulimit -n)" in record.getMessage()
    await refused.close()


async def test_accepting_goes_on_after_a_bug(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve()
    new_connection = ListeningSocket._new_connection
    failures = [RuntimeError("a bug")]

    def fail_once(listening: ListeningSocket, host: str, port: int) -> Any:
        if failures:
            raise failures.pop()
        return new_connection(listening, host, port)

    monkeypatch.setattr(ListeningSocket, "_new_connection", fail_once)
    async with await running.connect() as refused:
        assert await refused.is_closed_by_broker()
    async with await running.connect() as client:
        await client.call(MetadataRequest(topics=[]), 9)
    await eventually(lambda: not running.server.connections)
    assert not running.server.connections.limits._per_host
    assert "a bug" in caplog.text
