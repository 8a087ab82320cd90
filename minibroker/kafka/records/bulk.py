"""Keys and values of many records → the records of a v2 batch, and back, with little work a record.

`builder` and `record` do the same record by record, with every field. A producer of lines and a
consumer that shows values have a million records a second before them, of which they need few
fields, and a call for each number would take most of the time.

Source: Kafka DefaultRecord; the docstring of `record` has the layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.builder import write_varint
from minibroker.kafka.records.record import INT64_BYTES_MAX, read_varint

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORDS_MAX: Final = 10_000
"""Records of one batch that `encode_records` takes."""
_TABLE_SIZE: Final = 1 << 14
_RUN_MIN: Final = 16
"""Neighbours of one layout that are worth a look at their columns."""
_RETRY_AFTER: Final = 128
"""Records that are read one by one where neighbours were not alike, until the next look."""
_NO_RUN: Final = (0, 0, 0, 0)
_IS_CONTINUED: Final = bytes(byte >> 7 for byte in range(256))
_NULL_KEY: Final = b"\x01"
_NO_HEADERS: Final = b"\x00"


def _varint(number: int) -> bytes:
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


_VARINTS: Final = tuple(_varint(number) for number in range(_TABLE_SIZE))
"""Zigzag varints of the numbers from 0 on: offset deltas, sizes."""


def encode_records(
    values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None
) -> bytes:
    """Return the records one behind the other, with the offset deltas 0, 1, 2 … and no headers.

    Their timestamps are the base timestamp of the batch.

    Args:
        values: at most `RECORDS_MAX`; None is a tombstone.
        keys: as many as values; None: no record has a key.
    """
    if keys is not None:
        return _encode_pairs(keys, values)
    heads: dict[int, tuple[bytes, bytes]] = {}
    parts: list[bytes] = []
    add = parts.append
    width = 0
    for delta, value in zip(_VARINTS, values, strict=False):
        if len(delta) != width:
            width = len(delta)
            heads.clear()
        size = -1 if value is None else len(value)
        head = heads.get(size)
        if head is None:
            head = heads[size] = _heads_of(size, width)
        # The last byte of the record before, which has no headers, begins the next part.
        add(head[0] + delta + head[1])
        add(value or b"")
    add(_NO_HEADERS)
    return b"".join(parts)[1:]


def _heads_of(size: int, delta_bytes: int) -> tuple[bytes, bytes]:
    """Return the bytes before and behind the offset delta of a record without a key."""
    size_field = _size_field(size)
    length = 2 + delta_bytes + 1 + len(size_field) + max(size, 0) + 1
    return _NO_HEADERS + _size_field(length) + b"\x00\x00", _NULL_KEY + size_field


def _size_field(size: int) -> bytes:
    return _VARINTS[size] if 0 <= size < _TABLE_SIZE else _varint(size)


def _encode_pairs(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> bytes:
    sizes = _VARINTS
    parts: list[bytes] = []
    for delta, key, value in zip(_VARINTS, keys, values, strict=False):
        key_size = _NULL_KEY if key is None else _size_field(len(key))
        value_size = b"\x01" if value is None else _size_field(len(value))
        fields = b"".join((delta, key_size, key or b"", value_size, value or b"", _NO_HEADERS))
        length = 2 + len(fields)
        length_field = sizes[length] if length < _TABLE_SIZE else _varint(length)
        parts += (length_field, b"\x00\x00", fields)
    return b"".join(parts)


def values_of(body: bytes, count: int, base_offset: int, first_offset: int) -> list[bytes | None]:
    """Return the values of the records in `body`, which is the content of a v2 batch, uncompressed.

    Records below `first_offset` are left out. Neighbours of one layout are read column by column.
    Raises CorruptionError: the records do not fill the body.
    """
    values: list[bytes | None] = []
    first_delta = first_offset - base_offset
    position = index = 0
    try:
        while index < count:
            if first_delta <= 0 and count - index >= _RUN_MIN:
                number, hop, at, size = _read_run(body, position, count - index)
                if number:
                    stop = at + number * hop
                    values += [body[at : at + size] for at in range(at, stop, hop)]
                    position += number * hop
                    index += number
                    continue
            singly = min(count - index, _RETRY_AFTER)
            position = _read_singly(body, position, singly, first_delta, values)
            index += singly
    except IndexError as error:
        raise CorruptionError(f"a record of {count} reaches beyond its batch") from error
    if position != len(body):
        raise CorruptionError(f"{len(body) - position} bytes are left behind the {count} records")
    return values


def _read_run(body: bytes, position: int, most: int) -> tuple[int, int, int, int]:
    """Return how many records from `position` on have the layout of the first one, the bytes of
    each, and where the first value begins and its size. (0, 0, 0, 0): too few, or a null value.

    One slice takes every byte that is `hop` bytes behind the one before. Sizes are the same bytes
    in each record; timestamp and offset deltas take the same number of bytes. Raises IndexError.
    """
    length, start = read_varint(body, position)
    _, offset_at = read_varint(body, start + 1, INT64_BYTES_MAX)
    _, key_at = read_varint(body, offset_at)
    key_size, key_end = read_varint(body, key_at)
    size_at = key_end + max(key_size, 0)
    size, value_at = read_varint(body, size_at)
    hop = start + length - position
    if size < 0 or length < 0 or value_at + size != position + hop - 1 or body[position + hop - 1]:
        return _NO_RUN
    number = min(most, (len(body) - position) // hop)
    sizes = (*range(position, start), *range(key_at, key_end), *range(size_at, value_at))
    for at in (*sizes, position + hop - 1):
        column = body[at : position + number * hop : hop]
        number -= len(column.lstrip(column[:1]))
        if number < _RUN_MIN:
            return _NO_RUN
    for at in range(start + 1, key_at):
        column = body[at : position + number * hop : hop].translate(_IS_CONTINUED)
        number -= len(column.lstrip(column[:1]))
    return _NO_RUN if number < _RUN_MIN else (number, hop, value_at, size)


def _read_singly(  # noqa: PLR0912  calls would cost more than the work
    body: bytes, position: int, count: int, first_delta: int, values: list[bytes | None]
) -> int:
    """Add the values of `count` records to `values`; return the position behind them.

    Raises IndexError, CorruptionError.
    """
    add = values.append
    for _ in range(count):
        byte = body[position]
        if byte < 0x80:
            end = position + 1 + (byte >> 1)
            at = position + 2
        elif (second := body[position + 1]) < 0x80:
            end = position + 2 + (second << 6 | (byte & 0x7F) >> 1)
            at = position + 3
        else:
            length, at = read_varint(body, position)
            end = at + length
            at += 1
        if body[at] < 0x80:
            at += 1
        else:
            _, at = read_varint(body, at, INT64_BYTES_MAX)
        byte = body[at]
        at += 1
        if byte < 0x80:
            delta = byte >> 1
        elif (second := body[at]) < 0x80:
            delta = second << 6 | (byte & 0x7F) >> 1
            at += 1
        else:
            delta, at = read_varint(body, at - 1)
        byte = body[at]
        at += 1
        if byte < 0x80:
            if not byte & 1:
                at += byte >> 1
        else:
            size, at = read_varint(body, at - 1)
            at += max(size, 0)
        byte = body[at]
        at += 1
        if byte < 0x80:
            size = -1 if byte & 1 else byte >> 1
        elif (second := body[at]) < 0x80:
            size = second << 6 | (byte & 0x7F) >> 1
            at += 1
        else:
            size, at = read_varint(body, at - 1)
        stop = at + size
        if stop >= end or end <= position:
            raise CorruptionError(f"the record at byte {position} reaches beyond its end")
        if delta >= first_delta:
            add(None if size < 0 else body[at:stop])
        position = end
    return position
