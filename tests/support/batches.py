"""Record batches, format v2, built and read without minibroker's own code: an independent judge.

    base_offset int64 | batch_length int32 | leader_epoch int32 | magic int8 | crc uint32 |
    attributes int16 | last_offset_delta int32 | base_timestamp int64 | max_timestamp int64 |
    producer_id int64 | producer_epoch int16 | base_sequence int32 | count int32

all big-endian, 61 bytes, then the records. The CRC-32C covers everything that follows it.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from contextlib import suppress
from typing import Any, NamedTuple

import crc32c
import lz4.frame

HEADER = struct.Struct(">qiibIhiqqqhii")
FIELDS = (
    "base_offset",
    "batch_length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
)
CRC_START = 21
LENGTH_START = 12

TIMESTAMP = 1_700_000_000_000
"""Default timestamp of records in the scenarios, in ms."""

OLD_CRC_END = 16
"""Start of the bytes that the CRC of a message v0 or v1 covers."""

GZIP, LZ4 = 1, 3
LZ4_CHECKSUM_AT = 6

APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20


class Item(NamedTuple):
    """One record to build; `timestamp_ms` None means the batch's."""

    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


def batch(
    *items: Item | bytes,
    timestamp_ms: int = TIMESTAMP,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    attributes: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
    magic: int = 2,
    payload: bytes | None = None,
    count: int | None = None,
    last_offset_delta: int | None = None,
) -> bytes:
    """Return one batch of `items` (a bare bytes is a value without a key).

    `payload`, `count` and `last_offset_delta` replace the right values: for compressed records, and
    for wrong batches.
    """
    records = [item if isinstance(item, Item) else Item(item) for item in items]
    times = [timestamp_ms if r.timestamp_ms is None else r.timestamp_ms for r in records]
    base_timestamp = times[0] if times else timestamp_ms
    body = payload
    if body is None:
        body = b"".join(
            _record(record, delta, time - base_timestamp)
            for delta, (record, time) in enumerate(zip(records, times, strict=True))
        )
    total = HEADER.size + len(body)
    head = bytearray(HEADER.size)
    HEADER.pack_into(
        head,
        0,
        base_offset,
        total - LENGTH_START,
        leader_epoch,
        magic,
        0,
        attributes,
        len(records) - 1 if last_offset_delta is None else last_offset_delta,
        base_timestamp,
        max(times, default=timestamp_ms),
        producer_id,
        producer_epoch,
        sequence,
        len(records) if count is None else count,
    )
    whole = bytes(head) + body
    return with_crc(whole)


def with_crc(whole: bytes) -> bytes:
    """Return the same batch with the CRC of its current bytes."""
    crc = crc32c.crc32c(whole[CRC_START:])
    return whole[: CRC_START - 4] + struct.pack(">I", crc) + whole[CRC_START:]


def _record(item: Item, offset_delta: int, timestamp_delta: int) -> bytes:
    body = b"\x00" + varint(timestamp_delta) + varint(offset_delta)
    body += _sized(item.key) + _sized(item.value) + varint(len(item.headers))
    for name, value in item.headers:
        body += _sized(name) + _sized(value)
    return varint(len(body)) + body


def _sized(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def varint(value: int) -> bytes:
    """Return a number as records have it, by zigzag, as far as 64 bits."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def describe(records: bytes | None) -> list[dict[str, Any]] | str | None:
    """Return every whole batch of a Fetch answer as a mapping that compares and prints well.

    A batch cut at the end counts as one entry that says how many bytes of it there are.
    """
    if records is None:
        return None
    descriptions: list[dict[str, Any]] = []
    position = 0
    while position < len(records):
        remaining = len(records) - position
        size = (
            struct.unpack_from(">i", records, position + 8)[0] + LENGTH_START
            if remaining > 12
            else 0
        )
        if remaining < 17 or remaining < size:
            descriptions.append({"cut_after_bytes": remaining})
            break
        whole = records[position : position + size]
        descriptions.append(_describe_batch(whole) if whole[16] == 2 else _describe_message(whole))
        position += size
    return descriptions


def _describe_message(whole: bytes) -> dict[str, Any]:
    """Return a message of format v0 or v1, with its content if it is compressed.

    offset int64 | size int32 | crc uint32 | magic int8 | attributes int8 | v1: timestamp int64 |
    key bytes | value bytes. The CRC-32 covers everything that follows it.
    """
    offset, _, crc, magic, attributes = struct.unpack_from(">qiIbb", whole)
    is_right = crc == zlib.crc32(whole[OLD_CRC_END:])
    described: dict[str, Any] = {
        "offset": offset,
        "crc": "right" if is_right else "wrong",
        "magic": magic,
        "attributes": attributes,
    }
    position = OLD_CRC_END + 2
    if magic == 1:
        (described["timestamp"],) = struct.unpack_from(">q", whole, position)
        position += 8
    described["key"], position = _old_bytes(whole, position)
    value, position = _old_bytes(whole, position)
    assert position == len(whole), "bytes behind the value of a message"
    codec = attributes & 0x07
    if codec and value is not None:
        unpack = {GZIP: gzip.decompress, LZ4: _unpacked_lz4}[codec]
        described["inside"] = describe(unpack(value))
    else:
        described["value"] = value
    return described


def _unpacked_lz4(frame: bytes) -> bytes:
    """Return the content of a frame whose header checksum may be wrong, as Kafka's in format v0."""
    for checksum in range(256):
        mended = bytearray(frame)
        mended[LZ4_CHECKSUM_AT] = checksum
        with suppress(RuntimeError):
            return bytes(lz4.frame.decompress(bytes(mended)))
    raise AssertionError("no LZ4 frame")


def _old_bytes(whole: bytes, position: int) -> tuple[bytes | None, int]:
    (size,) = struct.unpack_from(">i", whole, position)
    start = position + 4
    return (None, start) if size < 0 else (whole[start : start + size], start + size)


def _describe_batch(whole: bytes) -> dict[str, Any]:
    fields = HEADER.unpack_from(whole)
    described: dict[str, Any] = dict(zip(FIELDS, fields, strict=True))
    described["crc"] = "right" if with_crc(whole) == whole else "wrong"
    described["records"] = whole[HEADER.size :].hex()
    if described["attributes"] & APPEND_TIME:
        described["max_timestamp"] = "append time"
    return described
