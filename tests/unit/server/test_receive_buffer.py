"""The buffer of a connection by itself: how it grows, moves and falls back."""

from __future__ import annotations

from struct import pack

from minibroker.server.receive_buffer import (
    BUFFER_BYTES,
    BUFFER_KEPT_BYTES_MAX,
    GROWTH_MAX,
    ReceiveBuffer,
)


def receive(buffer: ReceiveBuffer, data: bytes) -> None:
    """As the kernel does: behind what is there, in as many reads as it takes."""
    position = 0
    while position < len(data):
        if buffer.is_full:
            buffer.make_room()
        part = data[position : position + buffer.size_bytes - buffer.filled]
        buffer.view[buffer.filled : buffer.filled + len(part)] = part
        buffer.filled += len(part)
        position += len(part)


def unhandled(buffer: ReceiveBuffer) -> bytes:
    return bytes(buffer.view[buffer.start : buffer.filled])


def test_an_empty_buffer_begins_at_its_front_again() -> None:
    buffer = ReceiveBuffer()
    receive(buffer, b"x" * 100)
    buffer.start = 100
    buffer.compact()
    assert (buffer.start, buffer.filled) == (0, 0)


def test_a_part_of_a_frame_stays_where_the_rest_fits_behind_it() -> None:
    buffer = ReceiveBuffer()
    receive(buffer, b"x" * 100 + pack(">i", 50) + b"part")
    buffer.start = 100
    buffer.compact()
    assert (buffer.start, unhandled(buffer)) == (100, pack(">i", 50) + b"part")


def test_a_part_of_a_frame_moves_to_the_front_where_the_rest_does_not_fit() -> None:
    buffer = ReceiveBuffer()
    receive(buffer, b"x" * (BUFFER_BYTES - 8) + pack(">i", 50) + b"part")
    buffer.start = BUFFER_BYTES - 8
    buffer.compact()
    assert (buffer.start, unhandled(buffer)) == (0, pack(">i", 50) + b"part")


def test_a_part_of_a_size_is_moved_as_well() -> None:
    buffer = ReceiveBuffer()
    receive(buffer, b"x" * (BUFFER_BYTES - 2) + b"\0\0")
    buffer.start = BUFFER_BYTES - 2
    buffer.make_room()
    assert (buffer.start, unhandled(buffer), buffer.size_bytes) == (0, b"\0\0", BUFFER_BYTES)


def test_it_grows_by_steps_and_to_the_end_of_the_frame_at_most() -> None:
    """Whatever size is announced, it takes a multiple of what has come."""
    size = BUFFER_BYTES * GROWTH_MAX + 1
    sent = pack(">i", size) + bytes(range(256)) * (size // 256)
    buffer = ReceiveBuffer()
    receive(buffer, sent[: BUFFER_BYTES + 1])
    assert buffer.size_bytes == BUFFER_BYTES * GROWTH_MAX
    receive(buffer, sent[BUFFER_BYTES + 1 :])
    assert buffer.size_bytes == size + 4
    assert unhandled(buffer) == sent


def test_a_large_one_is_given_back_when_it_is_empty() -> None:
    size = BUFFER_KEPT_BYTES_MAX
    buffer = ReceiveBuffer()
    receive(buffer, pack(">i", size) + bytes(size))
    assert buffer.size_bytes == size + 4
    buffer.compact()
    assert buffer.size_bytes == size + 4  # its frame is not handled yet
    buffer.start = buffer.filled
    buffer.compact()
    assert (buffer.size_bytes, buffer.start, buffer.filled) == (BUFFER_BYTES, 0, 0)
