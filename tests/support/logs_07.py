"""Logs of Kafka 0.7 made by hand: messages, compressed ones, and segments in a log directory.

The recorded logs of a real broker are in `tests/golden/kafka_07`.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import TYPE_CHECKING, Final

import cramjam

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
BROKER: Final = 3
"""The broker of the recorded logs."""


def message(
    payload: bytes, *, magic: int = 1, attributes: int = 0, crc: int | None = None
) -> bytes:
    """Return a message behind its length."""
    head = struct.pack(">b", magic) + (struct.pack(">b", attributes) if magic else b"")
    content = head + struct.pack(">I", zlib.crc32(payload) if crc is None else crc) + payload
    return struct.pack(">i", len(content)) + content


def packed(codec: int, *messages: bytes) -> bytes:
    """Return a message with others inside, compressed."""
    plain = b"".join(messages)
    payload = {
        NONE: lambda: plain,
        GZIP: lambda: gzip.compress(plain, mtime=0),
        SNAPPY: lambda: bytes(cramjam.snappy.compress_raw(plain)),
    }[codec]()
    return message(payload, attributes=codec)


def write_log(directory: Path, name: str, *segments: Iterable[bytes]) -> Path:
    """Write the segments of a partition, each behind the one before it; return its directory."""
    partition = directory / name
    partition.mkdir(parents=True)
    position = 0
    for messages in segments:
        content = b"".join(messages)
        (partition / f"{position:020d}.kafka").write_bytes(content)
        position += len(content)
    return partition
