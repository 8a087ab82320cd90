"""The socket of a client, written past its transport: records go out of their file without a copy.

Last station of a Fetch, beside `write_queue.py`. The system takes the bytes from its page cache
(`sendfile`): nobody maps, reads or copies them. This is for bytes whose turn it is: the transport
has nothing to write, and there is no TLS. The transport gets the bytes that the socket does not
take at once: it waits for the socket, and it meets the socket's errors.

Source: Kafka PlaintextTransportLayer.transferFrom.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

    from minibroker.broker.server.write_queue import Buffer, WriteQueue
    from minibroker.broker.storage.disk import Disk

TURN_BYTES: Final = 2 << 20
"""Bytes of one turn of the loop, at most. One megabyte takes some 0.1 ms."""
COPIED_BYTES_MAX: Final = 64 << 10
"""Bytes of no file that are written here, at most: the header of an answer, and what is between
its records."""


class DirectSocket:
    """The socket below one transport. Belongs to the loop."""

    __slots__ = ("_disk", "_socket_fd", "_transport")

    def __init__(self, transport: asyncio.Transport, socket_fd: int, disk: Disk) -> None:
        """Take the transport, its socket, and the disk that has the places of slices. Constant."""
        self._transport = transport
        self._socket_fd = socket_fd
        self._disk = disk

    @property
    def is_free(self) -> bool:
        """Return whether nothing of the transport has to leave first."""
        return not self._transport.get_write_buffer_size() and not self._transport.is_closing()

    def write_from(self, queue: WriteQueue) -> bool:
        """Write what waits in `queue`, `TURN_BYTES` at most; return whether it is the transport's
        turn: the socket takes no more, or what comes next is for the transport.
        """
        room = TURN_BYTES
        while queue.size_bytes and room > 0:
            buffer, start = queue.first
            size_bytes = len(buffer) - start
            count = self._write(buffer, start, min(size_bytes, room))
            queue.drop(count)
            room -= count
            if count < size_bytes and room > 0:
                return True
        return False

    def _write(self, buffer: Buffer, start: int, size_bytes: int) -> int:
        """Write bytes from `start` on; return how many the socket took."""
        place = self._disk.place_of(buffer)
        try:
            if place is not None:
                handle, position = place
                return self._disk.files.send(self._socket_fd, handle, position + start, size_bytes)
            if size_bytes <= COPIED_BYTES_MAX:
                return os.write(self._socket_fd, memoryview(buffer)[start:])
        except OSError:
            return 0  # the socket is full, or the transport meets the error, too
        return 0
