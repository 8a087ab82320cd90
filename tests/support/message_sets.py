"""Message sets, formats 0 and 1, built and read with separate code: an independent judge.

    offset int64 | size int32 | crc uint32 | magic int8 | attributes int8 | (timestamp int64, format
    1) | key int32 length, bytes | value int32 length, bytes

all big-endian; `size` counts from the CRC on, the CRC-32 covers what follows it.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import NamedTuple

import cramjam
import lz4.frame

TIMESTAMP = 1_700_000_000_000
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
APPEND_TIME = 0x08
LZ4_CHECKSUM_OF_FORMAT_0 = {b"\x60\x40": 0x1A}
"""Flags and block size of an LZ4 frame → the header checksum in a message of format 0."""
LZ4_CHECKSUM = {b"\x60\x40": b"\x82"}
"""Flags and block size of an LZ4 frame → the right header checksum."""


class Message(NamedTuple):
    """One message of a set."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def message(
    value: bytes | None,
    key: bytes | None = b"k",
    *,
    magic: int = 1,
    offset: int = 0,
    timestamp: int = TIMESTAMP,
    attributes: int = 0,
    wrong_crc: bool = False,
) -> bytes:
    """Return one message."""
    covered = struct.pack(">bb", magic, attributes)
    if magic:
        covered += struct.pack(">q", timestamp)
    for field in (key, value):
        covered += struct.pack(">i", -1 if field is None else len(field)) + (field or b"")
    crc = zlib.crc32(covered) ^ wrong_crc
    return struct.pack(">qiI", offset, 4 + len(covered), crc) + covered


def plain(*values: bytes | None, magic: int = 1) -> bytes:
    """Return uncompressed messages, numbered from 0, 1 ms apart; the third is the latest."""
    return b"".join(
        message(value, magic=magic, offset=n, timestamp=TIMESTAMP + (n + 2) % 5)
        for n, value in enumerate(values)
    )


def wrapper(
    codec: int,
    inner: bytes,
    *,
    magic: int = 1,
    offset: int = 0,
    timestamp: int = TIMESTAMP + 4,
    attributes: int = 0,
) -> bytes:
    """Return `inner` compressed in one message."""
    packed = pack(codec, inner)
    return message(
        packed, None, magic=magic, offset=offset, timestamp=timestamp, attributes=attributes | codec
    )


def pack(codec: int, data: bytes) -> bytes:
    """Return `data` compressed as by clients; LZ4 with the right header checksum."""
    if codec == GZIP:
        return gzip.compress(data, mtime=0)
    if codec == SNAPPY:
        block = bytes(cramjam.snappy.compress_raw(data))
        head = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
        return head + struct.pack(">i", len(block)) + block
    if codec == LZ4:
        packed: bytes = lz4.frame.compress(data, block_linked=False, store_size=False)
        return packed
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data))
    return data


def unpack(codec: int, packed: bytes, magic: int) -> bytes:
    """Return the reverse of `pack`, for a broker's bytes.

    LZ4 in format 0 must have the header checksum that covers the frame's magic number as well,
    because old clients insist on it.
    """
    if codec == GZIP:
        return gzip.decompress(packed)
    if codec == SNAPPY:
        data, position = b"", 16
        while position < len(packed):
            (length,) = struct.unpack_from(">i", packed, position)
            block = packed[position + 4 : position + 4 + length]
            data += bytes(cramjam.snappy.decompress_raw(block))
            position += 4 + length
        return data
    assert codec == LZ4
    if magic == 0:
        assert packed[6] == LZ4_CHECKSUM_OF_FORMAT_0[packed[4:6]]
        packed = packed[:6] + LZ4_CHECKSUM[packed[4:6]] + packed[7:]
    unpacked: bytes = lz4.frame.decompress(packed)
    return unpacked


def parse(data: bytes) -> list[Message]:
    """Return the messages of a set, without unpacking wrappers; a cut one at the end is left out.

    A wrong CRC is an assertion error.
    """
    messages = []
    position = 0
    while position + 18 <= len(data):
        offset, size, crc, magic, attributes = struct.unpack_from(">qiIbb", data, position)
        end = position + 12 + size
        if end > len(data):
            break
        assert zlib.crc32(data[position + 16 : end]) == crc
        at, timestamp = position + 18, -1
        if magic:
            (timestamp,) = struct.unpack_from(">q", data, at)
            at += 8
        fields: list[bytes | None] = []
        for _ in range(2):
            (length,) = struct.unpack_from(">i", data, at)
            at += 4
            fields.append(None if length < 0 else data[at : at + length])
            at += max(length, 0)
        assert at == end
        messages.append(Message(offset, magic, attributes, timestamp, fields[0], fields[1]))
        position = end
    return messages


def magics(data: bytes) -> list[int]:
    """Return the format of every whole batch and message in `data`."""
    numbers = []
    position = 0
    while position + 17 <= len(data):
        size = struct.unpack_from(">i", data, position + 8)[0] + 12
        if position + size > len(data):
            break
        numbers.append(data[position + 16])
        position += size
    return numbers
