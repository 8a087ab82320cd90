"""The columns of a frame as the parts of records.

Those of the standard connector's sink, and the time of the record besides:

| column      | type                                      | absent or null                       |
|-------------|-------------------------------------------|--------------------------------------|
| `value`     | binary or string                          | required; null is a tombstone        |
| `key`       | binary or string                          | no key                               |
| `topic`     | string                                    | the option `topic`, which wins       |
| `partition` | int                                       | by the key as Java's clients do it   |
| `timestamp` | timestamp                                 | the time of writing                  |
| `headers`   | array<struct<key string, value binary>>   | none                                 |

Others, as `offset` of the sources, are left alone. A record of the very epoch, and one of message
format v0 (-1 ms), gets the time of writing, too.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.schemas import HEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa
    from pyspark.sql.types import DataType

BY_KEY: Final = -1
NOW: Final = 0
NO_TIMESTAMP_MS: Final = -1

_BYTES: Final = (BinaryType, StringType)
_TYPES: Final[dict[str, tuple[type[DataType], ...]]] = {
    "value": _BYTES,
    "key": _BYTES,
    "topic": (StringType,),
    "partition": (IntegerType,),
    "timestamp": (TimestampType, TimestampNTZType),
    "headers": (ArrayType,),
}
COLUMNS: Final = tuple(_TYPES)

Columns = tuple[
    "Iterable[Any]",
    "Iterable[Any]",
    "Iterable[Any]",
    "Iterable[Any]",
    "Iterable[Any]",
    "Iterable[Any]",
]


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raise PipelineError for columns that the sink cannot write, before it starts."""
    if "value" not in schema.fieldNames():
        raise PipelineError(
            f"the sink needs a column 'value' and the frame has {_names_text(schema)}: "
            "select one, as to_json(struct(*)) as value"
        )
    if topic is None and "topic" not in schema.fieldNames():
        raise PipelineError(
            f"the sink needs the option 'topic' or a column 'topic' and the frame has "
            f"{_names_text(schema)}: say where the rows go"
        )
    for field in schema.fields:
        types = _TYPES.get(field.name)
        if types is None:
            continue
        is_right = isinstance(field.dataType, types)
        if field.name == "headers":
            is_right = is_right and _are_headers(field.dataType)
        if not is_right:
            names = " or ".join(
                ArrayType(HEADER).simpleString() if kind is ArrayType else kind.typeName()
                for kind in types
            )
            raise PipelineError(
                f"the column {field.name!r} is of type {field.dataType.simpleString()} and the "
                f"sink needs {names}: cast it"
            )


def _are_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = [(field.name, field.dataType) for field in kind.elementType.fields]
    return fields == [(field.name, field.dataType) for field in HEADER.fields]


def _names_text(schema: StructType) -> str:
    return ", ".join(schema.fieldNames()) or "none"


def columns(batch: pa.RecordBatch, topic: str | None) -> Columns:
    """Return topic, value, key, partition, timestamp and headers of the rows of an Arrow batch.

    A column that the batch has is a list; of another one each row has the same value.

    Raises:
        PipelineError: a row without topic, or of a time before the epoch.
    """
    names = batch.schema.names
    count = batch.num_rows

    def column(name: str, absent: Any) -> Iterable[Any]:
        if name not in names:
            return repeat(absent, count)
        return _CONVERSIONS[name](batch.column(name))

    return (
        repeat(topic, count) if topic is not None else column("topic", None),
        column("value", None),
        column("key", None),
        column("partition", BY_KEY),
        column("timestamp", NOW),
        column("headers", None),
    )


def _to_bytes(column: pa.Array) -> list[bytes | None]:
    import pyarrow as pa  # noqa: PLC0415  slow to import, and only tasks need it

    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    return column.to_pylist()  # type: ignore[no-any-return]


def _to_topics(column: pa.Array) -> list[str]:
    if column.null_count:
        raise PipelineError(
            "a row has null in the column 'topic' and the sink has no option 'topic': fill the "
            "column or set the option"
        )
    return column.to_pylist()  # type: ignore[no-any-return]


def _to_partitions(column: pa.Array) -> list[int]:
    if column.null_count:
        column = column.fill_null(BY_KEY)
    return column.to_pylist()  # type: ignore[no-any-return]


def _to_milliseconds(column: pa.Array) -> list[int]:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute  # noqa: PLC0415

    times = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    times = times.fill_null(NOW)
    earliest = compute.min(times).as_py()
    if earliest is not None and earliest < NO_TIMESTAMP_MS:
        raise PipelineError(
            f"a row has {earliest} ms in the column 'timestamp' and records have times since "
            "1970: null stands for the time of writing"
        )
    times_ms: list[int] = times.to_pylist()
    return (
        [max(timestamp, NOW) for timestamp in times_ms] if earliest == NO_TIMESTAMP_MS else times_ms
    )


def _to_headers(column: pa.Array) -> list[list[tuple[str, bytes | None]] | None]:
    flat = column.flatten()
    if flat.null_count or flat.field("key").null_count:
        raise PipelineError(
            "a row has a header without a key in the column 'headers', and each header of a record "
            "has one: fill the key or leave the header out"
        )
    return [
        [(header["key"], header["value"]) for header in headers] if headers else None
        for headers in column.to_pylist()
    ]


_CONVERSIONS: Final[dict[str, Callable[[pa.Array], Iterable[Any]]]] = {
    "value": _to_bytes,
    "key": _to_bytes,
    "topic": _to_topics,
    "partition": _to_partitions,
    "timestamp": _to_milliseconds,
    "headers": _to_headers,
}
