"""Buffers of connections that share one memory, without connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.server.receive_buffer import ReceiveBuffer
from minibroker.broker.server.request_memory import SIZE_BYTES, RequestMemory

if TYPE_CHECKING:
    from collections.abc import Callable

UNLIMITED = -1


class Connections:
    """Buffers that share one memory; what the loop would call soon is called by `turn`."""

    def __init__(self, max_bytes: int = UNLIMITED) -> None:
        self._soon: list[Callable[[], object]] = []
        self.memory = RequestMemory(max_bytes, self._soon.append)
        self.resumed: list[ReceiveBuffer] = []

    def new(self) -> ReceiveBuffer:
        """Return the buffer of one more connection."""
        buffer = ReceiveBuffer(self.memory, lambda: self.resumed.append(buffer))
        return buffer

    def turn(self) -> None:
        """Let the loop turn once."""
        soon, self._soon[:] = list(self._soon), []
        for call in soon:
            call()


def receive(buffer: ReceiveBuffer, data: bytes) -> int:
    """Receive `data` like the kernel, in as many reads as it takes, until there is no memory.

    Return how many bytes were read.
    """
    position = 0
    while position < len(data) and not buffer.lacks_memory:
        room = buffer.room()
        part = data[position : position + len(room)]
        room[: len(part)] = part
        buffer.note_received(len(part))
        position += len(part)
        if buffer.end - buffer.start <= SIZE_BYTES:
            buffer.compact()  # as a connection does after each read
    return position


def handle(buffer: ReceiveBuffer, size_bytes: int) -> None:
    """Take so many bytes as whole frames, which are handled."""
    buffer.start += size_bytes
    buffer.compact()


def unhandled(buffer: ReceiveBuffer) -> bytes:
    """Return the bytes that no request has taken yet."""
    return bytes(buffer.view[buffer.start : buffer.end])
