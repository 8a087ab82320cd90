"""The wire format of Confluent's serializers: which schema a value has.

    0x00 │ schema id, 4 bytes, big-endian │ payload
    0x00 │ schema id                      │ message indexes │ payload      (Protobuf)
    0x01 │ GUID of the schema, 16 bytes   │ the same

Serializers can also write all before the payload into a header of the record, `__key_schema_id` or
`__value_schema_id`. Then the value is the payload alone.

The message indexes say which message of a .proto file it is: a count and the indexes of the
messages, each inside the one before, as zigzag varints. One byte 0 stands for the first message.
"""

from __future__ import annotations

import uuid
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

MAGIC: Final = 0
HEADER_BYTES: Final = 5
GUID_MAGIC: Final = 1
GUID_HEADER_BYTES: Final = 17
FIRST_MESSAGE: Final = (0,)
_INDEXES_MAX: Final = 32
"""Messages inside each other, at most: a longer list is no schema of people."""
_VARINT_BYTES: Final = 5


SchemaId = int | str
"""Number of a schema in its registry, or its GUID."""


class ValueGroup(NamedTuple):
    """The values of an array that have the same header."""

    schema: SchemaId | None
    """None if the values do not begin with a header."""
    rows: pa.Array | None
    """Indexes of the values, rising; None: all values of the array."""
    payload: pa.Array
    """The values behind the header, or the whole values if there is none."""


def header_of(schema: int) -> bytes:
    """Return the header of a value."""
    return bytes((MAGIC,)) + schema.to_bytes(4, "big")


def with_headers(values: pa.Array, headers: pa.Array, column: str) -> pa.Array:
    """Return the values of a column, with what their record's header says in front.

    Args:
        values: bytes, or null.
        headers: of the records, as of `data_files.RECORD`.
        column: `key` or `value`.
    """
    items = headers.flatten()
    is_schema = pc.equal(pc.struct_field(items, ["key"]), f"__{column}_schema_id")
    if not pc.any(is_schema).as_py():
        return values
    records = pc.list_parent_indices(headers).filter(is_schema)
    rows = pa.array(range(len(values)), records.type)
    first = pc.index_in(rows, value_set=records)
    heads = pc.struct_field(items, ["value"]).filter(is_schema).take(first).cast(pa.binary())
    return pc.binary_join_element_wise(heads.fill_null(b""), values, pa.scalar(b""))


def grouped(values: pa.Array) -> list[ValueGroup]:
    """Return the values of an array of bytes without nulls, by their headers."""
    if not len(values):
        return []
    heads = pc.if_else(
        pc.equal(pc.binary_slice(values, 0, 1), bytes((GUID_MAGIC,))),
        pc.binary_slice(values, 0, GUID_HEADER_BYTES),
        pc.binary_slice(values, 0, HEADER_BYTES),
    )
    if pc.all(pc.equal(heads, heads[0])).as_py():
        return [_group(heads[0].as_py(), None, values)]
    codes = heads.dictionary_encode()
    order = pc.array_sort_indices(codes.indices)
    groups, start = [], 0
    for run in pc.value_counts(codes.indices.take(order)).to_pylist():
        rows = order.slice(start, run["counts"])
        start += run["counts"]
        groups.append(_group(codes.dictionary[run["values"]].as_py(), rows, values.take(rows)))
    return _without_header_together(groups, values)


def split_by_message(payload: pa.Array) -> list[tuple[tuple[int, ...] | None, ValueGroup]]:
    """Return the payloads of Protobuf by the message that they are; None: broken indexes.

    `ValueGroup.schema` is None in each of them.
    """
    is_first = pc.equal(pc.binary_slice(payload, 0, 1), b"\x00")
    if pc.all(is_first).as_py():
        return [(FIRST_MESSAGE, ValueGroup(None, None, _without(payload, 1)))]
    parts: dict[tuple[int, ...] | None, list[tuple[int, bytes]]] = {}
    for row, value in enumerate(payload.to_pylist()):
        indexes, size = message_indexes(value)
        parts.setdefault(indexes, []).append((row, value[size:]))
    return [
        (
            indexes,
            ValueGroup(
                None,
                pa.array([row for row, _ in pairs], pa.uint64()),
                pa.array([value for _, value in pairs], payload.type),
            ),
        )
        for indexes, pairs in parts.items()
    ]


def message_indexes(payload: bytes) -> tuple[tuple[int, ...] | None, int]:
    """Return the indexes at the begin of a payload and their size in bytes; None if broken."""
    count, position = _varint(payload, 0)
    if count == 0:
        return FIRST_MESSAGE, position
    if count is None or not 0 < count <= _INDEXES_MAX:
        return None, 0
    indexes = []
    for _ in range(count):
        index, position = _varint(payload, position)
        if index is None or index < 0:
            return None, 0
        indexes.append(index)
    return tuple(indexes), position


def _group(head: bytes, rows: pa.Array | None, values: pa.Array) -> ValueGroup:
    if len(head) == HEADER_BYTES and head[0] == MAGIC:
        return ValueGroup(int.from_bytes(head[1:], "big"), rows, _without(values, HEADER_BYTES))
    if len(head) == GUID_HEADER_BYTES:
        guid = str(uuid.UUID(bytes=head[1:]))
        return ValueGroup(guid, rows, _without(values, GUID_HEADER_BYTES))
    return ValueGroup(None, rows, values)


def _without(values: pa.Array, size: int) -> pa.Array:
    """Return the values without their first bytes; `binary_slice` without an end overflows."""
    return pc.binary_replace_slice(values, 0, size, b"")


def _without_header_together(groups: list[ValueGroup], values: pa.Array) -> list[ValueGroup]:
    """Return the groups, with all values that have no header in one."""
    bad = [group.rows for group in groups if group.schema is None]
    if len(bad) < 2:
        return groups
    rows = pa.concat_arrays(bad)
    rows = rows.take(pc.array_sort_indices(rows))
    return [
        *(group for group in groups if group.schema is not None),
        ValueGroup(None, rows, values.take(rows)),
    ]


def _varint(data: bytes, position: int) -> tuple[int | None, int]:
    """Return a zigzag varint and the position behind it; None if it is cut short or too long."""
    value = 0
    for index in range(_VARINT_BYTES):
        if position + index >= len(data):
            return None, position
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), position + index + 1
    return None, position
