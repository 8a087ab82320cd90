"""One blocking connection to a broker, for whole frames.

The raw clients of tests and benchmarks use it; each writes the bytes of its requests itself.
"""

from __future__ import annotations

import socket
import struct
from typing import Self


class FrameConnection:
    """One connection, not for several threads."""

    def __init__(
        self, host: str, port: int, *, timeout_s: float, source: str | None = None
    ) -> None:
        self.socket = socket.create_connection(
            (host, port), timeout=timeout_s, source_address=(source, 0) if source else None
        )
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket; the broker sees the end of the stream."""
        self.socket.close()

    def send_bytes(self, raw: bytes) -> None:
        """Send bytes unchanged."""
        self.socket.sendall(raw)

    def receive_frame(self) -> bytes:
        """Return the next frame, without its length.

        Raises:
            ConnectionError: closed, whole frame not received.
        """
        (size,) = struct.unpack(">i", receive_exactly(self.socket, 4))
        return receive_exactly(self.socket, size)


def receive_exactly(connection: socket.socket, size_bytes: int) -> bytes:
    """Return the next `size_bytes` bytes.

    Raises:
        ConnectionError: the peer closed before that.
    """
    parts = bytearray()
    while len(parts) < size_bytes:
        part = connection.recv(size_bytes - len(parts))
        if not part:
            raise ConnectionError(f"closed after {len(parts)} of {size_bytes} bytes")
        parts += part
    return bytes(parts)
