"""Records of one format for a reader of an older one (Fetch v0-3); records of any format, read.

Last station of a Fetch by an old consumer, between the log and the answer. `down_convert` writes a
slice of a log in the consumer's format, batch by batch and no further than its fetch limit. So
that limit and one unfolded batch bound the memory. Batches that have the format already go out
unchanged.

Record headers, leader epochs, producer ids and whole control batches are lost. A compressed batch
becomes one wrapper in the same codec. An uncompressed one becomes as many messages as it has
records, without those below the offset that was asked for (librdkafka counts on that).

Differs from Kafka: Kafka's answer is as long as the unconverted bytes were, padded with a message
that claims to be longer than the answer. Here the answer ends where the messages end.

Source: Kafka RecordsUtil, LazyDownConversionRecords, LazyDownConversionRecordsSend; KIP-283.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import Final

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.records.batch import (
    APPEND_TIME_FLAG,
    MAGIC_AT,
    RECORDS_AT,
    BatchHeader,
    iterate_headers,
)
from minibroker.kafka.records.compression import NONE, ZSTD
from minibroker.kafka.records.message_set import V1, build_message_set, decode_message
from minibroker.kafka.records.record import (
    INT64_BYTES_MAX,
    Record,
    decode_records,
    read_varint,
)

_NOT_FOR_OLD: Final = b"\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x3d"
"""Offset -1 and the length of an empty batch, nothing more: a consumer that reads on finds a
message larger than its limit, and says so, instead of asking the same again for ever."""

_V0_HEAD: Final = Struct(">bbi")
_V1_HEAD: Final = Struct(">bbqi")
_START: Final = Struct(">qiI")
_INT32: Final = Struct(">i")


def read_records(buffer: bytes | memoryview, position: int, header: BatchHeader) -> list[Record]:
    """Return all records of the batch or message at `position`. Raises CorruptionError."""
    if header.magic == 2:
        return decode_records(buffer, position, header=header)
    return decode_message(buffer, position, header=header)


def is_readable_as(records: memoryview, magic: int, unseen_magic: int = 0) -> bool:
    """Return whether everything in `records` (whole batches, the last perhaps cut) has format
    `magic` or an older one. A last batch that is cut before its magic counts as `unseen_magic`.
    """
    end = 0
    for position, header in iterate_headers(records):
        if header.magic > magic:
            return False
        end = position + header.size_bytes
    if end == len(records):
        return True
    return (unseen_magic if len(records) - end <= MAGIC_AT else records[end + MAGIC_AT]) <= magic


def down_convert(records: memoryview, magic: int, first_offset: int) -> memoryview:
    """Return `records` (whole batches, the last perhaps cut) in format `magic` (0 or 1) or older.

    At most as many bytes as `records` has, or as the first converted batch takes; the last message
    may be cut. `first_offset` is the offset that the consumer asked for. A slice without any whole
    batch gives nothing. A slice with nothing to convert (control batches) gives the start of a
    message that no fetch can hold. Raises KafkaError(UNSUPPORTED_COMPRESSION_TYPE) for zstd in the
    first batch (further on, the answer ends before it), CorruptionError.
    """
    parts: list[bytes | bytearray | memoryview] = []
    size_bytes = 0
    limit_bytes = len(records)
    is_empty = True
    for position, header in iterate_headers(records):
        is_empty = False
        if header.is_control and header.magic == 2:
            continue
        if header.codec == ZSTD:
            if not parts:
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                    f"batch at offset {header.base_offset} is compressed with zstd, "
                    f"which format {magic} does not have",
                )
            break
        converted = _convert(records, position, header, magic, first_offset)
        if not converted:
            continue
        if not parts:
            limit_bytes = max(limit_bytes, len(converted))
        parts.append(converted)
        size_bytes += len(converted)
        if size_bytes >= limit_bytes:
            break
    if not parts:
        return memoryview(b"" if is_empty else _NOT_FOR_OLD)
    if len(parts) == 1 and size_bytes <= limit_bytes:
        return memoryview(parts[0])
    return memoryview(b"".join(parts))[:limit_bytes]


def _convert(
    records: memoryview, position: int, header: BatchHeader, magic: int, first_offset: int
) -> bytes | bytearray | memoryview:
    """Return one batch converted; nothing where all its records are below `first_offset`."""
    end = position + header.size_bytes
    if header.magic <= magic:
        return records[position:end]
    append_time = header.max_timestamp if header.is_append_time else None
    if header.magic == 2 and header.codec == NONE:
        # A copy, for indexing bytes takes half the time of indexing a view.
        body = bytes(records[position + RECORDS_AT : end])
        return _convert_plain(body, header, magic, first_offset)
    decoded = read_records(records, position, header)
    if header.codec == NONE:
        decoded = [record for record in decoded if record.offset >= first_offset]
    if not decoded:
        return b""
    plain = [
        Record(record.offset, max(record.timestamp, -1), record.key, record.value)
        for record in decoded
    ]
    if header.magic != 2:
        append_time = None  # from format 1 to 0, which has no timestamps
    return build_message_set(plain, magic=magic, codec=header.codec, append_time_ms=append_time)


def _convert_plain(  # noqa: C901, PLR0912, PLR0915  calls would cost more than the work
    body: bytes, header: BatchHeader, magic: int, first_offset: int
) -> bytes:
    """Return the records of an uncompressed v2 batch (`body`) as messages. Raises CorruptionError.

    Reads records and builds messages in one walk: all records of old consumers come here.
    """
    parts: list[bytes] = []
    crc32, pack_start, pack_int32 = zlib.crc32, _START.pack, _INT32.pack
    pack_v0, pack_v1 = _V0_HEAD.pack, _V1_HEAD.pack
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.is_append_time else None
    attributes = APPEND_TIME_FLAG if append_time is not None else 0
    is_v1, position, size = magic == V1, 0, len(body)
    try:
        for _ in range(header.count):
            # Varints of one byte, and of two where a record has them as a rule, need no call.
            byte = body[position]
            if byte < 0x80:
                length, start = (byte >> 1) ^ -(byte & 1), position + 1
            elif (second := body[position + 1]) < 0x80:
                length, start = (second << 6 | (byte & 0x7F) >> 1) ^ -(byte & 1), position + 2
            else:
                length, start = read_varint(body, position)
            end = start + length
            if length < 0 or end > size:
                raise CorruptionError(f"record of {length} bytes reaches beyond its batch")
            position = end
            byte, at = body[start + 1], start + 2
            if byte < 0x80:
                timestamp = (byte >> 1) ^ -(byte & 1)
            else:
                timestamp, at = read_varint(body, start + 1, INT64_BYTES_MAX)
            byte, at = body[at], at + 1
            if byte < 0x80:
                offset = (byte >> 1) ^ -(byte & 1)
            elif (second := body[at]) < 0x80:
                offset, at = (second << 6 | (byte & 0x7F) >> 1) ^ -(byte & 1), at + 1
            else:
                offset, at = read_varint(body, at - 1)
            offset += base_offset
            if offset < first_offset:
                continue
            byte, at = body[at], at + 1
            if byte < 0x80:
                key_length = (byte >> 1) ^ -(byte & 1)
            else:
                key_length, at = read_varint(body, at - 1)
            value_at = at + key_length if key_length > 0 else at
            byte, start = body[value_at], value_at + 1
            if byte < 0x80:
                value_length = (byte >> 1) ^ -(byte & 1)
            elif (second := body[start]) < 0x80:
                value_length, start = (second << 6 | (byte & 0x7F) >> 1) ^ -(byte & 1), start + 1
            else:
                value_length, start = read_varint(body, value_at)
            value_end = start + value_length if value_length > 0 else start
            if value_end > end:
                raise CorruptionError("a field of a record reaches beyond its end")
            if is_v1:
                timestamp = base_timestamp + timestamp if append_time is None else append_time
                covered = pack_v1(V1, attributes, timestamp if timestamp > -1 else -1, key_length)
            else:
                covered = pack_v0(0, 0, key_length)
            covered += body[at:value_at] + pack_int32(value_length) + body[start:value_end]
            parts += (pack_start(offset, 4 + len(covered), crc32(covered)), covered)
    except IndexError as error:
        raise CorruptionError("a record reaches beyond its batch") from error
    return b"".join(parts)
