"""Records → the bytes of one v2 batch.

Used where the broker itself writes records (transaction markers, internal topics, a topic that asks
for another codec) and by tools and tests; what producers send is stored as it came.

Source: Kafka MemoryRecordsBuilder, DefaultRecord.writeTo.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from minibroker.kafka.records.batch import (
    APPEND_TIME_FLAG,
    ATTRIBUTES_AT,
    CONTROL_FLAG,
    CRC_AT,
    HEADER,
    HEADER_BYTES,
    LENGTH_FIELD_END,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
)
from minibroker.kafka.records.compression import CODEC_IDS, NONE, compress
from minibroker.kafka.records.crc import crc32c
from minibroker.kafka.records.record import Header, Record, wrap_int64

_UINT32: Final = Struct(">I")
_ONE_BYTE_END: Final = 64
"""Numbers from 0 to below this are one byte as a varint."""


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    codec: str = "none",
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    append_time_ms: int | None = None,
    is_transactional: bool = False,
    is_control: bool = False,
    leader_epoch: int = -1,
    keep_offsets: bool = False,
) -> bytearray:
    """Return one v2 batch with `records` (at least one), big-endian, CRC included.

    Offsets: the records are numbered `base_offset`, `base_offset + 1` … in their order; with
    `keep_offsets` each keeps its own `offset` (ascending, not below `base_offset`), so that gaps
    survive. Timestamps: the first record's is the base, the largest the maximum; with
    `append_time_ms` the batch is one of LogAppendTime and that is the maximum. `level` is the
    codec's own (None: its default). Raises ValueError for no records, an unknown codec name, or an
    offset that does not fit.
    """
    if not records:
        raise ValueError("a batch needs at least one record")
    codec_id = _codec_id(codec)
    base_timestamp = records[0].timestamp
    body, last_delta, max_timestamp = _encode_all(
        records, base_offset, base_timestamp, keep_offsets
    )
    payload = body if codec_id == NONE else compress(codec_id, body, level)
    attributes = (
        codec_id
        | APPEND_TIME_FLAG * (append_time_ms is not None)
        | TRANSACTIONAL_FLAG * is_transactional
        | CONTROL_FLAG * is_control
    )
    return seal_batch(
        payload,
        attributes=attributes,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        last_delta=last_delta,
        timestamps=(base_timestamp, max_timestamp if append_time_ms is None else append_time_ms),
        producer=(producer_id, producer_epoch, base_sequence),
        count=len(records),
    )


def seal_batch(
    payload: bytes | bytearray | memoryview,
    *,
    attributes: int,
    base_offset: int,
    leader_epoch: int,
    last_delta: int,
    timestamps: tuple[int, int],
    producer: tuple[int, int, int],
    count: int,
) -> bytearray:
    """Return one v2 batch: a header, CRC included, before records that are encoded.

    Args:
        payload: the records, compressed as `attributes` say.
        attributes: the bits of the header.
        base_offset: offset of the first record.
        leader_epoch: of the header, -1 for none.
        last_delta: offset of the last record after the first.
        timestamps: of the first record, and the largest, in ms.
        producer: its id, its epoch, and the sequence of the first record.
    """
    batch = bytearray(
        HEADER.pack(
            base_offset,
            HEADER_BYTES - LENGTH_FIELD_END + len(payload),
            leader_epoch,
            2,
            0,
            attributes,
            last_delta,
            *timestamps,
            *producer,
            count,
        )
    )
    batch += payload
    with memoryview(batch) as view:
        _UINT32.pack_into(batch, CRC_AT, crc32c(view[ATTRIBUTES_AT:]))
    return batch


def _codec_id(codec: str) -> int:
    """Return the codec's bits of the attributes. Raises ValueError for an unknown codec."""
    codec_id = CODEC_IDS.get(codec)
    if codec_id is None:
        raise ValueError(f"codec {codec!r} is unknown, expected one of {', '.join(CODEC_IDS)}")
    return codec_id


def _encode_all(
    records: Sequence[Record], base_offset: int, base_timestamp: int, keep_offsets: bool
) -> tuple[bytearray, int, int]:
    """Return (bytes of all records, last offset delta, largest timestamp in ms)."""
    body = bytearray()
    max_timestamp = NO_TIMESTAMP
    delta = -1
    for record in records:
        next_delta = record.offset - base_offset if keep_offsets else delta + 1
        if not delta < next_delta < 2**31:
            raise ValueError(
                f"offset {record.offset} does not follow offset {base_offset + delta} "
                f"in a batch that starts at {base_offset}"
            )
        delta = next_delta
        timestamp_delta = wrap_int64(record.timestamp - base_timestamp)
        encode_record(body, record.key, record.value, record.headers, delta, timestamp_delta)
        max_timestamp = max(max_timestamp, record.timestamp)
    return body, delta, max_timestamp


def write_varint(out: bytearray, value: int) -> None:
    """Append `value` (64 bits, signed) as a zigzag varint."""
    raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)


def encode_record(  # noqa: PLR0917  positional: one call for each record
    out: bytearray,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header],
    offset_delta: int,
    timestamp_delta: int,
) -> None:
    """Append one record with its length."""
    body = bytearray(1)
    # Most numbers are short: they take one byte and need no call.
    if timestamp_delta == 0:
        body.append(0)
    else:
        write_varint(body, timestamp_delta)
    if offset_delta < _ONE_BYTE_END:
        body.append(offset_delta << 1)
    else:
        write_varint(body, offset_delta)
    _write_bytes(body, key)
    _write_bytes(body, value)
    if not headers:
        body.append(0)
    else:
        write_varint(body, len(headers))
        for name, header_value in headers:
            _write_bytes(body, name.encode("utf-8"))
            _write_bytes(body, header_value)
    size_bytes = len(body)
    if size_bytes < _ONE_BYTE_END:
        out.append(size_bytes << 1)
    else:
        write_varint(out, size_bytes)
    out += body


def _write_bytes(out: bytearray, data: bytes | None) -> None:
    """Append length and bytes; -1 for null."""
    if data is None:
        out.append(1)
        return
    size_bytes = len(data)
    if size_bytes < _ONE_BYTE_END:
        out.append(size_bytes << 1)
    else:
        write_varint(out, size_bytes)
    out += data
