"""The header of a record batch, format v2 (magic 2), read and patched in place.

Second station of a Produce request (after the frame was split) and of recovery. All code that holds
bytes of a log reads them through this module. It decompresses nothing and copies nothing.

One batch, big-endian, 61 bytes of header and then the records (compressed or not):

| position | field             | type   | note                                                   |
|----------|-------------------|--------|--------------------------------------------------------|
| 0        | base_offset       | int64  | offset of the first record; not covered by the CRC      |
| 8        | batch_length      | int32  | bytes after this field: size of the batch - 12          |
| 12       | leader_epoch      | int32  | not covered by the CRC                                  |
| 16       | magic             | int8   | 2; stands at the same place in formats 0 and 1          |
| 17       | crc               | uint32 | CRC-32C of everything from `attributes` on              |
| 21       | attributes        | int16  | bits, see below                                         |
| 23       | last_offset_delta | int32  | last offset - base offset                               |
| 27       | base_timestamp    | int64  | ms; record timestamps are deltas to it                  |
| 35       | max_timestamp     | int64  | ms; the append time when bit 3 is set                   |
| 43       | producer_id       | int64  | -1: not idempotent                                      |
| 51       | producer_epoch    | int16  |                                                        |
| 53       | base_sequence     | int32  | sequence of the first record, -1: none                  |
| 57       | count             | int32  | records in the batch                                   |
| 61       | records           |        |                                                         |

Attributes: bits 0-2 codec, 3 append time, 4 transactional, 5 control, 6 delete horizon.
`last_offset_delta` stays when compaction takes the last record away; `count` does not.

Formats 0 and 1 share positions 0-11 and 16: there `crc` stands at 12, `attributes` (int8) at 17
and, in format 1, the timestamp at 18. Their headers are read here too, so a walk along a log treats
all formats alike. `message_set` reads their contents.

Source: Kafka DefaultRecordBatch, ByteBufferLogInputStream, LegacyRecord; KIP-98, KIP-101.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.crc import crc32c

LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_AT: Final = 43
RECORDS_AT: Final = 61

LENGTH_FIELD_END: Final = 12
"""`batch_length` counts from here; so a batch is `batch_length + 12` bytes."""
HEADER_BYTES: Final = 61
LEGACY_LENGTH_MIN: Final = 14
"""Smallest length any format allows: crc, magic, attributes, null key, null value of format 0."""

CODEC_MASK: Final = 0x07
APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40
KNOWN_ATTRIBUTES: Final = 0x7F

NO_TIMESTAMP: Final = -1
SEQUENCE_MAX: Final = 2**31 - 1

HEADER: Final = Struct(">qiibIhiqqqhii")
NUMBERING: Final = Struct(">qii")
"""The first three fields: what the broker writes into every batch, and between them the length."""
_PREFIX: Final = Struct(">qiib")
_LEGACY: Final = Struct(">qiIbb")
_INT64: Final = Struct(">q")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_INT16: Final = Struct(">h")
_PRODUCER: Final = Struct(">qhi")

HEADER_FIELDS: Final = (
    "attributes",
    "base_offset",
    "base_sequence",
    "base_timestamp",
    "count",
    "crc",
    "last_offset_delta",
    "leader_epoch",
    "magic",
    "max_timestamp",
    "producer_epoch",
    "producer_id",
    "size_bytes",
)
"""The attributes of a `BatchHeader`. A compiled class has no `__slots__` that one could read."""


class BatchHeader:
    """The fields of one batch, as read; later changes to the buffer do not show here.

    `size_bytes` is the whole batch, header included. For formats 0 and 1, `base_offset` is the
    offset of the message (of the last inner message for a compressed wrapper), and fields that
    these formats lack are -1 (count: 1).
    """

    __slots__ = HEADER_FIELDS

    def __init__(  # noqa: PLR0917  positional, as the struct yields them: half the time of keywords
        self,
        base_offset: int,
        size_bytes: int,
        leader_epoch: int,
        magic: int,
        crc: int,
        attributes: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        count: int,
    ) -> None:
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.leader_epoch = leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.count = count

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 when the batch has none; wraps after 2³¹-1 to 0."""
        if self.base_sequence == -1:
            return -1
        return add_to_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> int:
        """Codec id, 0-7 (`records.compression` names 0-4)."""
        return self.attributes & CODEC_MASK

    @property
    def is_append_time(self) -> bool:
        return self.attributes & APPEND_TIME_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > -1

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in HEADER_FIELDS)
        return f"BatchHeader({fields})"


def add_to_sequence(sequence: int, increment: int) -> int:
    """Return `sequence + increment` on the circle 0 … 2³¹-1."""
    total = sequence + increment
    return total if total <= SEQUENCE_MAX else total - SEQUENCE_MAX - 1


def subtract_from_sequence(sequence: int, decrement: int) -> int:
    """Return `sequence - decrement` on the circle 0 … 2³¹-1."""
    difference = sequence - decrement
    return difference if difference >= 0 else difference + SEQUENCE_MAX + 1


def batch_size_at(buffer: bytes | bytearray | memoryview, position: int) -> int | None:
    """Return the size in bytes of the batch that starts at `position`, None where it is not there
    as a whole.

    Raises CorruptionError for a length or a magic that no format has. None is no corruption: bytes
    that were fetched or written may end anywhere.
    """
    available = len(buffer) - position
    if available < LENGTH_FIELD_END:
        return None
    length: int = _INT32.unpack_from(buffer, position + LENGTH_AT)[0]
    if length < LEGACY_LENGTH_MIN:
        raise CorruptionError(
            f"batch at byte {position} has length {length}, expected at least {LEGACY_LENGTH_MIN}"
        )
    if available <= MAGIC_AT:
        return None
    magic = buffer[position + MAGIC_AT]
    if magic > 2:
        raise CorruptionError(f"batch at byte {position} has magic {magic}, expected 0, 1 or 2")
    size_bytes = length + LENGTH_FIELD_END
    return size_bytes if size_bytes <= available else None


def read_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """Return the header at `position`; the records behind it need not be in the buffer.

    Raises CorruptionError where the bytes end inside the header, or its length or magic belongs to
    no format.
    """
    if len(buffer) - position < HEADER_BYTES or buffer[position + MAGIC_AT] != 2:
        return _read_other_header(buffer, position)
    header = BatchHeader(*HEADER.unpack_from(buffer, position))
    header.size_bytes += LENGTH_FIELD_END
    if header.size_bytes < HEADER_BYTES:
        raise CorruptionError(
            f"batch at byte {position} has {header.size_bytes} bytes, "
            f"expected at least {HEADER_BYTES}"
        )
    return header


def read_produced_header(records: memoryview) -> BatchHeader | None:
    """Return the header of the v2 batch that a client's `records` begin with; None where they begin
    with a message of format 0 or 1, or are shorter than a header.

    Nothing is checked: `size_bytes` is what the batch claims.
    """
    if len(records) < HEADER_BYTES or records[MAGIC_AT] != 2:
        return None
    header = BatchHeader(*HEADER.unpack_from(records))
    header.size_bytes += LENGTH_FIELD_END
    return header


def _read_other_header(buffer: bytes | bytearray | memoryview, position: int) -> BatchHeader:
    """Return the header of a message of format 0 or 1. Raises CorruptionError for other bytes."""
    available = len(buffer) - position
    if available <= MAGIC_AT:
        raise CorruptionError(
            f"batch header at byte {position} is cut after {available} bytes, "
            f"expected {HEADER_BYTES}"
        )
    base_offset, length, _, magic = _PREFIX.unpack_from(buffer, position)
    if not 0 <= magic <= 2:
        raise CorruptionError(f"batch at byte {position} has magic {magic}, expected 0, 1 or 2")
    smallest = HEADER_BYTES - LENGTH_FIELD_END if magic == 2 else LEGACY_LENGTH_MIN + 8 * magic
    if length < smallest:
        raise CorruptionError(
            f"batch at byte {position} has length {length}, expected at least {smallest}"
        )
    if available < (HEADER_BYTES if magic == 2 else smallest + LENGTH_FIELD_END):
        raise CorruptionError(
            f"batch header at byte {position} is cut after {available} bytes (magic {magic})"
        )
    _, _, crc, _, attributes = _LEGACY.unpack_from(buffer, position)
    timestamp = _INT64.unpack_from(buffer, position + 18)[0] if magic == 1 else NO_TIMESTAMP
    return BatchHeader(
        base_offset,
        length + LENGTH_FIELD_END,
        -1,
        magic,
        crc,
        attributes,
        0,
        timestamp,
        timestamp,
        -1,
        -1,
        -1,
        1,
    )


def iterate_headers(
    buffer: bytes | bytearray | memoryview,
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of every batch that is in the buffer as a whole.

    A batch cut at the end of the buffer ends the walk without an error. Raises CorruptionError
    where the length or the magic belongs to no format. CRCs are not checked.
    """
    position = 0
    while (size_bytes := batch_size_at(buffer, position)) is not None:
        yield position, read_header(buffer, position)
        position += size_bytes


def assign(
    buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Write the offset and the leader epoch into the v2 batch at `position`; the CRC does not cover
    them."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + LEADER_EPOCH_AT, leader_epoch)


def set_timestamps(
    buffer: bytearray | memoryview, position: int, attributes: int, max_timestamp: int
) -> int:
    """Write attributes and the largest timestamp (ms) into the v2 batch at `position`. Write its
    new CRC, too, and return it."""
    _INT16.pack_into(buffer, position + ATTRIBUTES_AT, attributes)
    _INT64.pack_into(buffer, position + MAX_TIMESTAMP_AT, max_timestamp)
    size_bytes = _INT32.unpack_from(buffer, position + LENGTH_AT)[0] + LENGTH_FIELD_END
    crc = compute_crc(buffer, position, size_bytes)
    _UINT32.pack_into(buffer, position + CRC_AT, crc)
    return crc


def clear_producer(buffer: bytearray | memoryview, position: int, attributes: int) -> None:
    """Make the v2 batch at `position` one of no producer and no transaction. Write its new CRC.

    `attributes` are those of its header.
    """
    _INT16.pack_into(buffer, position + ATTRIBUTES_AT, attributes & ~TRANSACTIONAL_FLAG)
    _PRODUCER.pack_into(buffer, position + PRODUCER_AT, -1, -1, -1)
    size_bytes = _INT32.unpack_from(buffer, position + LENGTH_AT)[0] + LENGTH_FIELD_END
    _UINT32.pack_into(buffer, position + CRC_AT, compute_crc(buffer, position, size_bytes))


def compute_crc(buffer: bytes | bytearray | memoryview, position: int, size_bytes: int) -> int:
    """Return the CRC-32C of the v2 batch at `position`, `size_bytes` long, from `attributes` on."""
    # A view first: slicing bytes or a bytearray would copy the batch.
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    return crc32c(view[position + ATTRIBUTES_AT : position + size_bytes])


def crc_is_valid(buffer: bytes | bytearray | memoryview, position: int, size_bytes: int) -> bool:
    """Return whether the stored CRC of the v2 batch at `position` fits its `size_bytes` bytes."""
    stored: int = _UINT32.unpack_from(buffer, position + CRC_AT)[0]
    return stored == compute_crc(buffer, position, size_bytes)
