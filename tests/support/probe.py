"""The smallest possible question to a broker: does it answer Metadata with a controller?

It is written by hand on purpose, so that it does not depend on minibroker's own codec.
"""

from __future__ import annotations

import socket
import struct

from tests.support.connection import receive_exactly

METADATA_V1_NO_TOPICS = struct.pack(">hhih5si", 3, 1, 7, 5, b"probe", 0)


def answers_metadata(host: str, port: int, timeout_s: float = 5.0) -> bool:
    """Return whether HOST:PORT answers Metadata v1 with a broker and a live controller."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.sendall(
                struct.pack(">i", len(METADATA_V1_NO_TOPICS)) + METADATA_V1_NO_TOPICS
            )
            (size,) = struct.unpack(">i", receive_exactly(connection, 4))
            answer = receive_exactly(connection, size)
    except OSError:
        return False
    broker_count, position = struct.unpack_from(">i", answer, 4)[0], 8
    broker_ids = []
    for _ in range(broker_count):
        broker_ids.append(struct.unpack_from(">i", answer, position)[0])
        position = _after_string(answer, position + 4) + 4
        position = _after_string(answer, position)
    (controller_id,) = struct.unpack_from(">i", answer, position)
    return controller_id in broker_ids


def _after_string(buffer: bytes, position: int) -> int:
    length: int = struct.unpack_from(">h", buffer, position)[0]
    return position + 2 + max(length, 0)
