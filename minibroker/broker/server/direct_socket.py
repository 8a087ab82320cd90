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

from minibroker.broker.server.write_queue import COPIED_BYTES_MAX

if TYPE_CHECKING:
    import asyncio

    from minibroker.broker.server.write_queue import WriteQueue
    from minibroker.broker.storage.disk import Disk

TURN_BYTES: Final = 2 << 20
"""Bytes of one turn of the loop, at most. One megabyte takes some 0.1 ms."""


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
            place = self._disk.place_of(buffer)
            try:
                if place is not None:
                    handle, position = place
                    size_bytes = min(len(buffer) - start, room)
                    count = self._disk.files.send(
                        self._socket_fd, handle, position + start, size_bytes
                    )
                else:
                    buffers = queue.front(min(COPIED_BYTES_MAX, room))
                    size_bytes = sum(map(len, buffers))
                    count = os.writev(self._socket_fd, buffers) if buffers else 0
            except OSError:
                return True  # the socket is full, or the transport meets the error, too
            queue.drop(count)
            room -= count
            if count < size_bytes or not count:
                return True
        return False
