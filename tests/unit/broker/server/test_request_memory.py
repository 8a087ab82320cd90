"""The memory of all connections: large buffers are shared, and what may be read is bounded."""

from __future__ import annotations

from struct import pack

from minibroker.broker.server.request_memory import BUFFER_BYTES, SIZE_BYTES
from tests.support.receive_buffers import Connections, handle, receive, unhandled


def test_a_large_buffer_serves_the_next_large_frame_of_anybody() -> None:
    connections = Connections()
    first, second = connections.new(), connections.new()
    size = 1_000_000
    receive(first, pack(">i", size) + bytes(size))
    large = first.view
    handle(first, size + 4)
    assert first.size_bytes == 0
    assert first.room() is large  # not even its beginning is copied
    assert len(second.room()) == BUFFER_BYTES
    receive(second, pack(">i", size) + bytes(size))
    assert second.view is large
    handle(second, size + 4)
    receive(first, pack(">i", 100) + b"part")
    assert first.view is large
    first.compact()
    assert (first.size_bytes, unhandled(first)) == (BUFFER_BYTES, pack(">i", 100) + b"part")


def test_spare_buffers_are_kept_up_to_a_limit() -> None:
    connections = Connections()
    size = 3_000_000
    buffers = [connections.new() for _ in range(4)]
    for buffer in buffers:
        receive(buffer, pack(">i", size) + bytes(size))
    large = [buffer.view for buffer in buffers]
    for buffer in buffers:
        handle(buffer, size + 4)
    for buffer in buffers:
        receive(buffer, pack(">i", size) + bytes(size))
    again = [any(buffer.view is view for view in large) for buffer in buffers]
    assert sum(again) == 2


def test_where_memory_is_used_up_only_the_size_of_a_request_is_read() -> None:
    connections = Connections(100_000)
    first, second = connections.new(), connections.new()
    receive(first, pack(">i", 200_000) + b"part")
    first.compact()
    assert not first.lacks_memory  # granted as a whole while anything was left
    assert receive(second, pack(">i", 10) + bytes(10)) == SIZE_BYTES
    assert second.lacks_memory
    assert second.size_bytes == SIZE_BYTES
    receive(first, bytes(199_996))
    handle(first, 200_004)
    assert not connections.resumed
    connections.turn()
    assert connections.resumed == [second]
    receive(second, bytes(10))
    assert unhandled(second) == pack(">i", 10) + bytes(10)
    handle(second, 14)
    assert connections.memory.free == 100_000


def test_the_first_muted_client_is_granted_first() -> None:
    connections = Connections(100_000)
    holder, *muted = (connections.new() for _ in range(4))
    receive(holder, pack(">i", 200_000) + b"part")
    holder.compact()
    for buffer in muted:
        receive(buffer, pack(">i", 150_000))
    holder.abandon()
    connections.turn()
    assert connections.resumed == muted[:1]
    muted[1].abandon()
    muted[0].abandon()
    connections.turn()
    assert connections.resumed == [muted[0], muted[2]]


def test_requests_of_the_controller_are_read_though_the_memory_is_used_up() -> None:
    connections = Connections(100_000)
    first, controller = connections.new(), connections.new()
    controller.is_bounded = False
    receive(first, pack(">i", 200_000) + b"part")
    first.compact()
    free = connections.memory.free
    assert receive(controller, pack(">i", 70_000) + bytes(70_000)) == 70_004
    assert not controller.lacks_memory
    assert connections.memory.free < free
    handle(controller, 70_004)
    assert connections.memory.free == free
