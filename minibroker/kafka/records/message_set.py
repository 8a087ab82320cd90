"""Message sets: formats 0 (Kafka 0.8, 0.9) and 1 (0.10), read, patched in place and written.

Instead of a batch of format 2, older clients send a run of messages, each with its own offset and
CRC. Compressed messages are in the value of a wrapper message. `storage.old_formats` reads what
such producers send with this module, `conversion` writes what such consumers read.

One message, big-endian; `size` counts from `crc` on:

| position | field      | type   | note                                                          |
|----------|------------|--------|---------------------------------------------------------------|
| 0        | offset     | int64  | its own; a wrapper's: that of its last inner message           |
| 8        | size       | int32  |                                                               |
| 12       | crc        | uint32 | CRC-32 (not -32C) of everything behind it                      |
| 16       | magic      | int8   | 0 or 1                                                        |
| 17       | attributes | int8   | bits 0-2 codec (none, gzip, snappy, lz4), 3 append time (v1)   |
| 18       | timestamp  | int64  | format 1 only: ms, -1 for none; a wrapper's: the largest       |
| 18 or 26 | key        | int32 length (-1: null), bytes                                         ||
|          | value      | int32 length (-1: null), bytes; a wrapper's: messages, compressed      ||

Inner offsets are absolute in format 0 and count from the first inner message in format 1, so that a
broker can number a wrapper without unpacking it (Kafka LogValidator). A wrapper with append time
lends it to its messages. LZ4 in format 0: see `legacy_lz4`.

Source: Kafka LegacyRecord, AbstractLegacyRecordBatch, MemoryRecordsBuilder; KIP-31, KIP-32.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from struct import Struct
from typing import Final

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records import legacy_lz4
from minibroker.kafka.records.batch import (
    APPEND_TIME_FLAG,
    CODEC_MASK,
    LENGTH_FIELD_END,
    NO_TIMESTAMP,
    BatchHeader,
    read_header,
)
from minibroker.kafka.records.compression import LZ4, NONE, ZSTD, compress, decompress
from minibroker.kafka.records.record import DECOMPRESSED_BYTES_MAX, Record, TooManyRecordsError

V0: Final = 0
V1: Final = 1

CRC_AT: Final = 12
COVERED_AT: Final = 16
"""The CRC covers from here to the end."""
ATTRIBUTES_AT: Final = 17
_BODY_AT: Final = 18
_TIMESTAMP_AT: Final = 18
OVERHEAD_BYTES: Final = (26, 34)
"""Bytes of a message without key and value, by format."""
_SIZE_MIN: Final = 14

_INT64: Final = Struct(">q")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_START: Final = Struct(">qiI")
_HEAD: Final = Struct(">qiIbb")
_V0_COVERED: Final = Struct(">bbi")
_V1_COVERED: Final = Struct(">bbqi")

Data = bytes | bytearray | memoryview


class MalformedSetError(CorruptionError):
    """A wrapper with a right CRC and a content that no reader accepts (Kafka: INVALID_RECORD)."""


class UnreadableSetError(CorruptionError):
    """Compressed bytes that do not unfold, or lengths that lie (Kafka: UNKNOWN_SERVER_ERROR)."""


def crc_is_valid(buffer: Data, position: int, size_bytes: int) -> bool:
    """Return whether the CRC of the message at `position`, `size_bytes` long in all, is right."""
    stored: int = _UINT32.unpack_from(buffer, position + CRC_AT)[0]
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    return zlib.crc32(view[position + COVERED_AT : position + size_bytes]) == stored


def key_and_value(
    buffer: Data, position: int, end: int, magic: int
) -> tuple[bytes | None, bytes | None]:
    """Return key and value of the message from `position` to `end`, copied; null is None.

    Raises UnreadableSetError for lengths that reach beyond the message. Bytes left behind the value
    are ignored, as in Kafka.
    """
    at = position + _BODY_AT + 8 * magic
    key, at = _read_bytes(buffer, at, end)
    return key, _read_bytes(buffer, at, end)[0]


def _read_bytes(buffer: Data, at: int, end: int) -> tuple[bytes | None, int]:
    start = at + _INT32.size
    if start > end:
        raise UnreadableSetError(f"message ends at byte {end}, inside a length at byte {at}")
    length: int = _INT32.unpack_from(buffer, at)[0]
    if length < 0:
        return None, start
    stop = start + length
    if stop > end:
        raise UnreadableSetError(
            f"field at byte {at} declares {length} bytes, the message has {end - start} left"
        )
    return bytes(buffer[start:stop]), stop


def decode_message(
    buffer: Data,
    position: int = 0,
    *,
    header: BatchHeader | None = None,
    size_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    records_max: int | None = None,
    check_inner_crc: bool = False,
) -> list[Record]:
    """Return the records of the message at `position`: itself, or a wrapper's inner ones.

    Offsets are absolute as far as the wrapper tells (format 1 by its own offset, format 0 as they
    stand); timestamps are -1 in format 0. A wrapper unfolds to at most `size_bytes_max` bytes and
    `records_max` messages (None: any number). Raises TooManyRecordsError, MalformedSetError,
    UnreadableSetError (all CorruptionError), and CorruptionError itself for a cut message or, with
    `check_inner_crc`, a wrong CRC inside.
    """
    if header is None:
        header = read_header(buffer, position)
    end = position + header.size_bytes
    if end > len(buffer):
        raise CorruptionError(
            f"message at byte {position} has {header.size_bytes} bytes, "
            f"but only {len(buffer) - position} are there"
        )
    magic = header.magic
    key, value = key_and_value(buffer, position, end, magic)
    if header.codec == NONE:
        return [Record(header.base_offset, header.max_timestamp, key, value)]
    if value is None:
        raise MalformedSetError(f"wrapper at byte {position} has no value")
    inner = unfold(header.codec, value, magic, size_bytes_max)
    records = _inner_records(inner, header, check_inner_crc, records_max)
    if magic == V1:
        return _with_absolute_offsets(records, header.base_offset)
    return records


def unfold(codec: int, packed: bytes, magic: int, size_bytes_max: int) -> bytes:
    """Return the unfolded content of a wrapper of format `magic`. Raises MalformedSetError for
    zstd, which came with format 2; UnreadableSetError where the codec does not write such bytes, or
    they unfold to more than allowed.
    """
    if codec == ZSTD:
        raise MalformedSetError(f"zstd in a message of format {magic}")
    try:
        if codec == LZ4 and magic == V0:
            packed = legacy_lz4.to_sound(packed)
        return decompress(codec, packed, size_bytes_max)
    except CorruptionError as error:
        raise UnreadableSetError(str(error)) from error


def _inner_records(
    inner: bytes, wrapper: BatchHeader, check_crc: bool, records_max: int | None
) -> list[Record]:
    """Return the messages in a wrapper, with the offsets they carry, without one cut at the end."""
    records: list[Record] = []
    append_time = wrapper.max_timestamp if wrapper.magic == V1 and wrapper.is_append_time else None
    position = 0
    while position + LENGTH_FIELD_END <= len(inner):
        size: int = _INT32.unpack_from(inner, position + 8)[0]
        if size < _SIZE_MIN:
            raise CorruptionError(
                f"inner message at byte {position} has size {size}, expected at least {_SIZE_MIN}"
            )
        end = position + LENGTH_FIELD_END + size
        if end > len(inner):
            break
        offset, _, crc, magic, attributes = _HEAD.unpack_from(inner, position)
        if magic != wrapper.magic:
            raise MalformedSetError(
                f"inner message at byte {position} has magic {magic}, its wrapper {wrapper.magic}"
            )
        if attributes & CODEC_MASK:
            raise MalformedSetError(f"inner message at byte {position} is compressed itself")
        if check_crc and zlib.crc32(memoryview(inner)[position + COVERED_AT : end]) != crc:
            raise CorruptionError(f"CRC of the inner message at byte {position} is wrong")
        key, value = key_and_value(inner, position, end, magic)
        timestamp = NO_TIMESTAMP
        if magic == V1:
            timestamp = (
                _INT64.unpack_from(inner, position + _TIMESTAMP_AT)[0]
                if append_time is None
                else append_time
            )
        records.append(Record(offset, timestamp, key, value))
        if records_max is not None and len(records) > records_max:
            raise TooManyRecordsError(f"a wrapper holds more than {records_max} messages")
        position = end
    if not records:
        raise MalformedSetError("a wrapper holds no message")
    return records


def _with_absolute_offsets(records: list[Record], wrapper_offset: int) -> list[Record]:
    """Return inner messages of format 1 with absolute offsets.

    Some producers send every wrapper with offset 0.
    """
    last = records[-1].offset
    if wrapper_offset == 0:
        base = 0
    elif wrapper_offset < last:
        raise MalformedSetError(
            f"wrapper has offset {wrapper_offset}, its last inner message {last}"
        )
    else:
        base = wrapper_offset - last
    if base == 0:
        return records
    return [
        Record(base + record.offset, record.timestamp, record.key, record.value)
        for record in records
    ]


def assign_offset(buffer: bytearray | memoryview, position: int, offset: int) -> None:
    """Number the message at `position`; a wrapper gets its last inner offset. No CRC covers it."""
    _INT64.pack_into(buffer, position, offset)


def set_timestamp(
    buffer: bytearray | memoryview,
    position: int,
    size_bytes: int,
    timestamp: int,
    *,
    is_append_time: bool,
) -> None:
    """Give the format 1 message at `position` its timestamp (ms) and type, and its new CRC."""
    attributes = buffer[position + ATTRIBUTES_AT] & CODEC_MASK
    buffer[position + ATTRIBUTES_AT] = attributes | (APPEND_TIME_FLAG if is_append_time else 0)
    _INT64.pack_into(buffer, position + _TIMESTAMP_AT, timestamp)
    covered = memoryview(buffer)[position + COVERED_AT : position + size_bytes]
    _UINT32.pack_into(buffer, position + CRC_AT, zlib.crc32(covered))


def build_message_set(
    records: Sequence[Record],
    *,
    magic: int,
    codec: int = NONE,
    level: int | None = None,
    base_offset: int | None = None,
    append_time_ms: int | None = None,
) -> bytearray:
    """Return `records` (at least one) as a message set of format `magic`; with `codec`, a wrapper.

    Offsets: each record's own, ascending, or `base_offset` and those that follow it. Timestamps:
    each record's own, or `append_time_ms` for all (format 1). Raises ValueError for what the format
    cannot say: no records, headers, zstd, a timestamp below -1, offsets that do not grow.
    """
    _check_buildable(records, magic, codec)
    is_relative = magic == V1 and codec != NONE
    first = records[0].offset if base_offset is None else base_offset
    flag = APPEND_TIME_FLAG if append_time_ms is not None and magic == V1 else 0
    parts: list[bytes] = []
    last, max_timestamp = first - 1, NO_TIMESTAMP
    for record in records:
        offset = last + 1 if base_offset is not None else record.offset
        if offset <= last:
            raise ValueError(f"offset {offset} does not follow offset {last}")
        last = offset
        timestamp = record.timestamp if append_time_ms is None else append_time_ms
        max_timestamp = max(max_timestamp, timestamp)
        message_offset = offset - first if is_relative else offset
        parts += encode_message(magic, flag, message_offset, timestamp, record.key, record.value)
    if codec == NONE:
        return bytearray().join(parts)
    packed = compress(codec, b"".join(parts), level)
    if codec == LZ4 and magic == V0:
        packed = legacy_lz4.to_broken(packed)
    return bytearray().join(encode_message(magic, flag | codec, last, max_timestamp, None, packed))


def _check_buildable(records: Sequence[Record], magic: int, codec: int) -> None:
    if not records:
        raise ValueError("a message set needs at least one record")
    if codec not in range(ZSTD):
        raise ValueError(f"codec id {codec} is not one that format {magic} knows")
    for record in records:
        if record.headers:
            raise ValueError(f"format {magic} has no record headers")
        if record.timestamp < NO_TIMESTAMP:
            raise ValueError(f"timestamp {record.timestamp} is negative")


def encode_message(  # noqa: PLR0917  once per record of a conversion
    magic: int,
    attributes: int,
    offset: int,
    timestamp: int,
    key: Data | None,
    value: Data | None,
) -> tuple[bytes, ...]:
    """Return one message as parts to be joined: offset to CRC, then what the CRC covers."""
    key_length = -1 if key is None else len(key)
    if magic == V1:
        covered = _V1_COVERED.pack(V1, attributes, timestamp, key_length)
    else:
        covered = _V0_COVERED.pack(V0, attributes, key_length)
    if key:
        covered += key
    if value is None:
        covered += b"\xff\xff\xff\xff"
        value = b""
    else:
        covered += _INT32.pack(len(value))
    crc = zlib.crc32(value, zlib.crc32(covered))
    return _START.pack(offset, 4 + len(covered) + len(value), crc), covered, bytes(value)
