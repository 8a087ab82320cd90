"""The rest of a large answer: it leaves in several turns of the loop.

Last station of a request, behind `Connection.send` (records in files go by `direct_socket.py`
where they can). One write of a megabyte keeps the loop for
about a millisecond, and longer where the memory is new to the processor. So `transport.py` writes
at most `TURN_BYTES` at a time, and other clients are served in between.

Source: Kafka's NetworkSend, which also writes as much as the socket takes and then lets others go
on (`socket.send.buffer.bytes`). On loopback a socket takes more than that.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    Buffer = bytes | bytearray | memoryview

BUFFERS_MAX: Final = 1024
"""Linux takes at most this many buffers in one write (IOV_MAX)."""
COPIED_BYTES_MAX: Final = 64 << 10
"""Buffers up to this size have no place in a file (`storage.segment.COPY_BYTES_MAX`). So many bytes
between slices that have one are written with one call."""
TURN_BYTES: Final = 576 << 10
"""More than half of the megabyte that a Fetch most often asks for: it leaves in two turns."""


class WriteQueue:
    """Bytes that wait for their turn, in order. Owned by the loop."""

    __slots__ = ("_buffers", "_start", "size_bytes")

    def __init__(self) -> None:
        self._buffers: deque[Buffer] = deque()
        self._start = 0
        """Bytes of the first buffer that have left. It stays whole: by its identity one finds the
        file that it lies in."""
        self.size_bytes = 0
        """Bytes that wait, in all."""

    def add(self, buffers: Iterable[Buffer]) -> None:
        """Put these behind the others. They are not copied and must not change."""
        waiting = [*buffers]
        self._buffers.extend(waiting)
        self.size_bytes += sum(map(len, waiting))

    @property
    def first(self) -> tuple[Buffer, int]:
        """Return the first buffer that waits, and where in it the bytes begin that have not left.
        There is one.
        """
        return self._buffers[0], self._start

    def front(self, bytes_max: int) -> list[Buffer]:
        """Return the next buffers that fit into `bytes_max` whole, few enough for one call of the
        system. They stay.
        """
        buffers: list[Buffer] = []
        start = self._start
        for buffer in self._buffers:
            bytes_max -= len(buffer) - start
            if bytes_max < 0 or len(buffers) == BUFFERS_MAX:
                break
            buffers.append(memoryview(buffer)[start:] if start else buffer)
            start = 0
        return buffers

    def drop(self, count: int) -> None:
        """Forget the next `count` bytes: they have left."""
        self.size_bytes -= count
        count += self._start
        while self._buffers and count >= len(self._buffers[0]):
            count -= len(self._buffers.popleft())
        self._start = count

    def take(self, bytes_max: int = TURN_BYTES) -> list[Buffer]:
        """Return the next bytes, `bytes_max` at most, and forget them."""
        if self._start:
            self._buffers[0] = memoryview(self._buffers[0])[self._start :]
            self._start = 0
        if self.size_bytes <= bytes_max:
            buffers = [*self._buffers]
            self._buffers.clear()
            self.size_bytes = 0
            return buffers
        buffers = []
        room = bytes_max
        while room:
            buffer = self._buffers.popleft()
            size_bytes = len(buffer)
            if size_bytes > room:
                view = memoryview(buffer)
                self._buffers.appendleft(view[room:])
                buffer, size_bytes = view[:room], room
            buffers.append(buffer)
            room -= size_bytes
        self.size_bytes -= bytes_max
        return buffers
