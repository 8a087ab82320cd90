"""The buffer of a connection by itself: how it grows, moves and is given back."""

from __future__ import annotations

from struct import pack

import pytest

from minibroker.broker.server.receive_buffer import GROWTH_MAX, ReceiveBuffer
from minibroker.broker.server.request_memory import BUFFER_BYTES, SIZE_BYTES
from tests.support.receive_buffers import Connections, handle, receive, unhandled


@pytest.fixture
def buffer() -> ReceiveBuffer:
    return Connections().new()


def test_a_connection_without_bytes_holds_no_buffer() -> None:
    connections = Connections()
    first, second = connections.new(), connections.new()
    assert (first.size_bytes, second.size_bytes) == (0, 0)
    receive(first, b"x" * 100)
    used = first.view
    handle(first, 100)
    assert (first.size_bytes, first.start, first.end) == (0, 0, 0)
    receive(second, b"y" * 100)
    assert second.view is used


def test_a_read_that_brings_nothing_takes_no_buffer() -> None:
    connections = Connections()
    first, second = connections.new(), connections.new()
    offered = first.room()
    assert second.room() is offered
    assert first.size_bytes == second.size_bytes == 0


def test_bytes_of_one_connection_are_not_written_over_by_another() -> None:
    connections = Connections()
    first, second = connections.new(), connections.new()
    receive(first, pack(">i", 50) + b"mine")
    first.compact()
    receive(second, pack(">i", 50) + b"other")
    assert unhandled(first) == pack(">i", 50) + b"mine"


def test_a_buffer_that_is_lent_belongs_to_who_keeps_bytes_in_it() -> None:
    connections = Connections()
    first, second = connections.new(), connections.new()
    receive(first, b"x" * 100)
    assert second.room() is first.view  # as long as nobody knows whether bytes stay
    first.keep()
    receive(second, b"y" * 100)
    assert second.view is not first.view
    assert unhandled(first) == b"x" * 100
    used = first.view
    handle(first, 100)
    handle(second, 100)
    assert first.room() is used  # given back last, and once


def test_memory_of_a_connection_that_is_gone_is_not_used_again() -> None:
    """A worker may still read the frame of its last request."""
    connections = Connections()
    first, second = connections.new(), connections.new()
    receive(first, b"x" * 100)
    frame = first.view[:100]
    first.abandon()
    receive(second, b"y" * 100)
    assert bytes(frame) == b"x" * 100


def test_a_part_of_a_frame_stays_where_the_rest_fits_behind_it(buffer: ReceiveBuffer) -> None:
    receive(buffer, b"x" * 100 + pack(">i", 50) + b"part")
    handle(buffer, 100)
    assert (buffer.start, unhandled(buffer)) == (100, pack(">i", 50) + b"part")


def test_a_part_of_a_frame_moves_to_the_front_where_the_rest_does_not_fit(
    buffer: ReceiveBuffer,
) -> None:
    receive(buffer, b"x" * (BUFFER_BYTES - 8) + pack(">i", 50) + b"part")
    handle(buffer, BUFFER_BYTES - 8)
    assert (buffer.start, unhandled(buffer)) == (0, pack(">i", 50) + b"part")


def test_a_part_of_a_size_is_moved_as_well(buffer: ReceiveBuffer) -> None:
    receive(buffer, b"x" * (BUFFER_BYTES - 2) + b"\0\0")
    buffer.start = BUFFER_BYTES - 2
    room = buffer.room()
    assert (buffer.start, unhandled(buffer), len(room)) == (0, b"\0\0", BUFFER_BYTES - 2)


def test_it_grows_by_steps_and_to_the_end_of_the_frame_at_most(buffer: ReceiveBuffer) -> None:
    """It takes a multiple of the received bytes, whatever size is announced."""
    size = BUFFER_BYTES * GROWTH_MAX + 1
    frame = pack(">i", size) + bytes(range(256)) * (size // 256)
    receive(buffer, frame[: BUFFER_BYTES + 1])
    assert buffer.size_bytes == BUFFER_BYTES * GROWTH_MAX
    receive(buffer, frame[BUFFER_BYTES + 1 :])
    assert buffer.size_bytes == size + 4
    assert unhandled(buffer) == frame


def test_a_part_of_a_frame_without_memory_is_kept_and_nothing_more() -> None:
    connections = Connections(100_000)
    first, second = connections.new(), connections.new()
    receive(second, b"x" * 100 + pack(">i", 80_000) + b"part")
    receive(first, pack(">i", 200_000) + b"part")
    first.compact()
    handle(second, 100)
    assert second.lacks_memory
    assert (second.size_bytes, unhandled(second)) == (8, pack(">i", 80_000) + b"part")


def test_frames_that_wait_count_until_they_are_handled() -> None:
    connections = Connections(100_000)
    buffer = connections.new()
    receive(buffer, b"x" * 1000)
    buffer.keep()
    buffer.keep()
    assert connections.memory.free == 100_000 - BUFFER_BYTES
    handle(buffer, 1000)
    assert connections.memory.free == 100_000


# The memory of all connections: large buffers are shared, and what may be read is bounded.


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
        buffer.keep()
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
