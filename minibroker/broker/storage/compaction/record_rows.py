"""The records of a v2 batch as compaction looks at them: where they lie, their key, a value or not.

A walk over every record of a log, twice: no object for a record but one tuple, headers and values
are not touched, and the bytes of a record are found again for whoever copies it.

Source: Kafka DefaultRecord; `records.record` reads the same fields whole.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import RECORDS_AT, BatchHeader
from minibroker.kafka.records.compression import NONE, compress, decompress
from minibroker.kafka.records.record import DECOMPRESSED_BYTES_MAX, INT64_BYTES_MAX, read_varint

RECORD_BYTES_MIN: Final = 7
_BODY_BYTES_MIN: Final = 6
_ATTRIBUTES: Final = b"\x00"
"""No release gave a record's attributes a meaning; who builds a record writes zero."""


class Row(NamedTuple):
    """One record: `start` … `end` are its bytes, `rest_at` is behind the timestamp delta."""

    start: int
    rest_at: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def unfold(chunk: bytes, position: int, header: BatchHeader) -> tuple[bytes, int, int]:
    """(bytes, start, end) of the records of the v2 batch at `position`, decompressed if need be.

    Raises CorruptionError.
    """
    start, end = position + RECORDS_AT, position + header.size_bytes
    if header.codec == NONE:
        return chunk, start, end
    body = decompress(header.codec, memoryview(chunk)[start:end], DECOMPRESSED_BYTES_MAX)
    return body, 0, len(body)


def read_rows(  # noqa: C901, PLR0912, PLR0915  calls would cost more than the work
    body: bytes, start: int, end: int, count: int
) -> list[Row]:
    """`count` records, which fill `start` … `end` of `body`; raises CorruptionError otherwise."""
    if count < 0 or count * RECORD_BYTES_MIN > end - start:
        raise CorruptionError(f"batch declares {count} records in {end - start} bytes")
    rows: list[Row] = []
    add, new = rows.append, tuple.__new__
    position = start
    try:
        # Varints of one byte are taken apart here: a call for each would double the time.
        for _ in range(count):
            record_at = position
            length, at = body[position], position + 1
            if length < 0x80 and not length & 1:
                length >>= 1
            elif (second := body[at]) < 0x80 and not length & 1:
                length, at = (length & 0x7F | second << 7) >> 1, at + 1
            else:
                length, at = read_varint(body, position)
            position = at + length
            if length < _BODY_BYTES_MIN or position > end:
                raise CorruptionError(f"record of {length} bytes does not fit into its batch")
            timestamp_delta, rest_at = body[at + 1], at + 2
            if timestamp_delta < 0x80:
                timestamp_delta = (timestamp_delta >> 1) ^ -(timestamp_delta & 1)
            elif (second := body[rest_at]) < 0x80 and not timestamp_delta & 1:
                timestamp_delta = (timestamp_delta & 0x7F | second << 7) >> 1
                rest_at += 1
            else:
                timestamp_delta, rest_at = read_varint(body, at + 1, INT64_BYTES_MAX)
            offset_delta, at = body[rest_at], rest_at + 1
            if offset_delta < 0x80:
                offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
            elif (second := body[at]) < 0x80 and not offset_delta & 1:
                offset_delta, at = (offset_delta & 0x7F | second << 7) >> 1, at + 1
            else:
                offset_delta, at = read_varint(body, rest_at)
            key_length, key_at = body[at], at + 1
            if key_length < 0x80:
                key_length = (key_length >> 1) ^ -(key_length & 1)
            else:
                key_length, key_at = read_varint(body, at)
            if key_length < 0:
                key = None
            else:
                at = key_at
                key_at += key_length
                key = body[at:key_at]
            if key_at >= position:
                raise CorruptionError("the key of a record reaches beyond its end")
            # The lowest bit of a varint is its sign; a null value has the length -1.
            has_value = not body[key_at] & 1
            row = record_at, rest_at, position, timestamp_delta, offset_delta, key, has_value
            add(new(Row, row))
    except IndexError as error:
        raise CorruptionError("a record reaches beyond its batch") from error
    if position != end:
        raise CorruptionError(f"{end - position} bytes are left behind the {count} records")
    return rows


def copy_rows(body: bytes, rows: list[Row]) -> bytes:
    """Return the records of `rows` as they lie in `body`."""
    parts: list[bytes] = []
    run_start, run_end = rows[0].start, rows[0].end
    for row in rows:
        if row.start > run_end:
            parts.append(body[run_start:run_end])
            run_start = row.start
        run_end = row.end
    parts.append(body[run_start:run_end])
    return b"".join(parts)


def copy_rows_with_deltas(body: bytes, rows: list[Row], deltas: list[int]) -> bytes:
    """Return the records of `rows` with other timestamp deltas."""
    parts: list[bytes] = []
    for row, delta in zip(rows, deltas, strict=True):
        head = _ATTRIBUTES + varint(delta)
        rest = body[row.rest_at : row.end]
        parts.append(varint(len(head) + len(rest)))
        parts.append(head)
        parts.append(rest)
    return b"".join(parts)


def varint(value: int) -> bytes:
    """`value` (64 bits, signed) as a zigzag varint."""
    raw = (value << 1) ^ (value >> 63)
    if raw < 0x80:
        return _ONE_BYTE[raw]
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


_ONE_BYTE: Final = tuple(bytes((number,)) for number in range(0x80))


def fold(codec: int, body: bytes) -> bytes:
    """`body` in the codec its batch had, at the codec's own level, as Kafka's cleaner does."""
    return body if codec == NONE else compress(codec, body)
