"""From rows with bytes to rows with columns: a batch in, decoded rows and dead letters out.

    RecordBatch ──decoded──► RecordBatch, key or value is a struct now
                      ├────► RecordBatch of dead letters, each with its reason
                      └────► schemas that nobody has told this task

A schema that the task does not have is told to the driver, which asks the registry, makes room for
it in the table, and runs the batch again. So tasks need no registry and no password.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from minibroker.pipeline.values.changes import faults_of
from minibroker.pipeline.values.salvage import salvaged
from minibroker.pipeline.values.wire_format import (
    FIRST_MESSAGE,
    grouped,
    split_by_message,
    with_headers,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.pipeline.values.salvage import ValueReader
    from minibroker.pipeline.values.wire_format import SchemaId, ValueGroup

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"
KINDS: Final = (AVRO, JSON, PROTOBUF)
"""Types of schemas, in the registry's words."""
TYPED_JSON: Final = "typed JSON"
"""JSON of a type that the user gave: the text is Arrow's, see `of_type`."""
JSON_EVENTS: Final = "JSON events"
"""The same, and Debezium's events with rows of that type."""

REASON: Final = "reason"
"""Column of a dead letter that the record does not have."""
READERS_MAX: Final = 256
"""Readers that a worker keeps."""
_HEADERS: Final = "headers"
UNSEEN_MAX: Final = 1000
"""Schemas that a task tells the driver, at most."""


class SchemaKey(NamedTuple):
    """The name of a schema in the values: its id, and for Protobuf the message of the file."""

    id: SchemaId
    message: tuple[int, ...] = FIRST_MESSAGE


class ValueSchema(NamedTuple):
    """One schema, as a task needs it."""

    kind: str
    text: str
    """JSON of Avro or JSON Schema; for Protobuf the descriptors in base64."""
    references: tuple[tuple[str, str], ...] = ()
    """Schemas that it refers to, as (name, text), each after those that it needs itself."""
    message: tuple[int, ...] = FIRST_MESSAGE
    reason: str = ""
    """Why its values are dead letters, empty if they are not."""
    as_numbers: bool = False
    """True: types that only Connect and Debezium name stay numbers, as in an older table."""


class ColumnDecoding(NamedTuple):
    """The way of one column from bytes to a type."""

    column: str
    """`key` or `value`."""
    schemas: Mapping[SchemaKey, ValueSchema]
    """Schemas by the header of a value; empty if the values have no header."""
    plain: ValueSchema | None
    """The schema of values without a header, None: they have one."""
    type: pa.DataType
    """Type of the decoded column: it takes in every schema that is not refused."""
    keeps_bytes: bool = False
    """True if the bytes stay, in a column `keyBytes` or `valueBytes`."""
    has_bounds: bool = False
    """True: a value with a time outside of the years 1 to 9999 is bad, since a table keeps none."""


class DecodedRecords(NamedTuple):
    """The outcome of a batch."""

    rows: pa.RecordBatch
    dead: pa.RecordBatch | None
    """Rows as they came, and the column `reason`; None: every row could be decoded."""
    unseen: Sequence[tuple[str, SchemaKey]]
    """(column, schema) that this task was not told; then the other fields are not complete."""


class _Column(NamedTuple):
    array: pa.Array
    reasons: dict[int, str]
    unseen: list[SchemaKey]


def bytes_column(column: str) -> str:
    """Return the name of the column that keeps the bytes of a decoded one."""
    return f"{column}Bytes"


def decoded(
    batch: pa.RecordBatch, columns: Sequence[ColumnDecoding], by: Sequence[str] = ()
) -> DecodedRecords:
    """Decode the columns of a batch; a value that is null stays null.

    Args:
        by: key of the rows that the records change (`changes`): one that is no change is dead, too.
            Empty: the records are no changes.

    Raises JobUsageError: no row has such a column.
    """
    names, arrays = list(batch.schema.names), list(batch.columns)
    reasons: dict[int, str] = {}
    unseen: list[tuple[str, SchemaKey]] = []
    for decoding in columns:
        at = names.index(decoding.column)
        values = arrays[at].cast(pa.binary())
        if decoding.plain is None and _HEADERS in batch.schema.names:
            values = with_headers(values, batch.column(_HEADERS), decoding.column)
        column = _column(values, decoding)
        if decoding.keeps_bytes:
            names.append(bytes_column(decoding.column))
            arrays.append(arrays[at])
        arrays[at] = column.array
        for row, reason in column.reasons.items():
            reasons.setdefault(row, f"its {decoding.column} {reason}")
        unseen += [(decoding.column, key) for key in column.unseen]
    rows = pa.RecordBatch.from_arrays(arrays, names)
    if by and not unseen:
        for row, reason in faults_of(rows["value"], rows["key"], by).items():
            reasons.setdefault(row, f"it {reason}")
    if not reasons:
        return DecodedRecords(rows, None, unseen)
    bad = sorted(reasons)
    dead = batch.take(pa.array(bad, pa.int64())).append_column(
        REASON, pa.array([reasons[row] for row in bad], pa.string())
    )
    is_good = pa.array([row not in reasons for row in range(batch.num_rows)], pa.bool_())
    return DecodedRecords(rows.filter(is_good), dead, unseen)


@functools.lru_cache(maxsize=READERS_MAX)
def reader_of(schema: ValueSchema) -> ValueReader:
    """Return the reader of a schema; libraries are imported only then.

    Raises ValueError: it is no schema, or no columns can hold its values.
    """
    if schema.kind == AVRO:
        from minibroker.pipeline.values.avro_values import AvroReader  # noqa: PLC0415  an extra

        texts = tuple(text for _, text in schema.references)
        return AvroReader(schema.text, texts, as_numbers=schema.as_numbers)
    if schema.kind == PROTOBUF:
        from minibroker.pipeline.values.protobuf_values import (  # noqa: PLC0415  an extra
            ProtobufReader,
        )

        return ProtobufReader(schema.text, schema.message)
    from minibroker.pipeline.values.json_schemas import type_of  # noqa: PLC0415
    from minibroker.pipeline.values.json_values import JsonReader, RowReader  # noqa: PLC0415

    if schema.kind == JSON_EVENTS:
        from minibroker.pipeline.values.json_events import EventReader  # noqa: PLC0415

        return EventReader(_type_of(schema.text))
    if schema.kind == TYPED_JSON:
        return RowReader(_type_of(schema.text))
    references = dict(schema.references)
    return JsonReader(type_of(schema.text, references, as_numbers=schema.as_numbers))


def of_type(kind: pa.DataType, *, is_event: bool = False) -> ValueSchema:
    """Return the schema of JSON values of a type, or of events with such rows, too."""
    return ValueSchema(JSON_EVENTS if is_event else TYPED_JSON, _type_text(kind))


def to_json(columns: Sequence[ColumnDecoding]) -> str:
    """Return the decodings as text, for the options of a sink."""
    return json.dumps(
        [
            {
                "column": decoding.column,
                "schemas": [
                    [key.id, key.message, schema] for key, schema in decoding.schemas.items()
                ],
                "plain": decoding.plain,
                "type": _type_text(decoding.type),
                "keepsBytes": decoding.keeps_bytes,
                "hasBounds": decoding.has_bounds,
            }
            for decoding in columns
        ]
    )


def from_json(text: str) -> list[ColumnDecoding]:
    """Return the decodings that `to_json` has turned into text."""
    return [
        ColumnDecoding(
            column=decoding["column"],
            schemas={
                SchemaKey(id_, tuple(message)): _schema(schema)
                for id_, message, schema in decoding["schemas"]
            },
            plain=None if decoding["plain"] is None else _schema(decoding["plain"]),
            type=_type_of(decoding["type"]),
            keeps_bytes=decoding["keepsBytes"],
            has_bounds=decoding["hasBounds"],
        )
        for decoding in json.loads(text)
    ]


def _column(values: pa.Array, decoding: ColumnDecoding) -> _Column:
    """Decode one column of a batch."""
    if not values.null_count:
        return _without_nulls(values, decoding)
    rows = pc.indices_nonzero(values.is_valid())
    column = _without_nulls(values.take(rows), decoding)
    at = rows.to_pylist()
    back = pa.nulls(len(values), pa.int64()).to_pylist()
    for index, row in enumerate(at):
        back[row] = index
    array = column.array.take(pa.array(back, pa.int64()))
    return _Column(array, {at[row]: why for row, why in column.reasons.items()}, column.unseen)


def _without_nulls(values: pa.Array, decoding: ColumnDecoding) -> _Column:
    if decoding.plain is not None:
        plain = salvaged(reader_of(decoding.plain), values, has_bounds=decoding.has_bounds)
        return _Column(plain.array.cast(decoding.type), dict(plain.reasons), [])
    result = _Column(pa.nulls(0, decoding.type), {}, [])
    parts, places = [], []
    for group in grouped(values):
        for key, part in _keyed(group, decoding):
            rows = _composed(group.rows, part.rows)
            column = _of_schema(key, part.payload, decoding, result.unseen)
            parts.append(column.array)
            places.append(rows)
            for row, reason in column.reasons.items():
                result.reasons[row if rows is None else rows[row].as_py()] = reason
    if len(parts) == 1 and places[0] is None:
        return result._replace(array=parts[0])
    if parts:
        order = pc.array_sort_indices(pa.concat_arrays(places))
        result = result._replace(array=pa.concat_arrays(parts).take(order))
    return result


def _keyed(group: ValueGroup, decoding: ColumnDecoding) -> list[tuple[SchemaKey | str, ValueGroup]]:
    """Return the values of a group by their schema, or by the reason why they have none."""
    if group.schema is None:
        return [
            ("does not begin with the byte 0 and the id of a schema", group._replace(rows=None))
        ]
    first = SchemaKey(group.schema)
    schema = decoding.schemas.get(first)
    if schema is None or schema.kind != PROTOBUF:
        return [(first, group._replace(rows=None))]
    return [
        ("has broken message indexes" if message is None else SchemaKey(first.id, message), part)
        for message, part in split_by_message(group.payload)
    ]


def _of_schema(
    key: SchemaKey | str, payload: pa.Array, decoding: ColumnDecoding, unseen: list[SchemaKey]
) -> _Column:
    if isinstance(key, str):
        return _all_bad(payload, decoding, key)
    schema = decoding.schemas.get(key)
    if schema is None:
        if len(unseen) < UNSEEN_MAX:
            unseen.append(key)
            return _Column(pa.nulls(len(payload), decoding.type), {}, [])
        return _all_bad(payload, decoding, f"has schema {key.id}, one of too many new ones at once")
    if schema.reason:
        return _all_bad(payload, decoding, f"has schema {key.id}, but {schema.reason}")
    column = salvaged(reader_of(schema), payload, has_bounds=decoding.has_bounds)
    reasons = {row: f"{why}, schema {key.id}" for row, why in column.reasons.items()}
    return _Column(column.array.cast(decoding.type), reasons, [])


def _all_bad(payload: pa.Array, decoding: ColumnDecoding, reason: str) -> _Column:
    reasons = dict.fromkeys(range(len(payload)), reason)
    return _Column(pa.nulls(len(payload), decoding.type), reasons, [])


def _composed(outer: pa.Array | None, inner: pa.Array | None) -> pa.Array | None:
    """Return the rows of a part of a group, in the whole array."""
    if outer is None or inner is None:
        return inner if outer is None else outer
    return outer.take(inner)


def _schema(fields: list[Any]) -> ValueSchema:
    kind, text, references, message, *rest = fields
    pairs = tuple((name, other) for name, other in references)
    return ValueSchema(kind, text, pairs, tuple(message), *rest)


def _type_text(kind: pa.DataType) -> str:
    return str(pa.schema([("it", kind)]).serialize().to_pybytes().hex())


def _type_of(text: str) -> pa.DataType:
    return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(text))).field("it").type
