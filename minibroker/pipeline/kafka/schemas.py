"""The columns of a record: the contract between sources, transforms, jobs and sinks.

They are those of Spark's own Kafka source, in its order, so that either source feeds any job:

| column        | Spark                     | Arrow                        | null means  |
|---------------|---------------------------|------------------------------|-------------|
| key           | binary                    | binary                       | no key      |
| value         | binary                    | binary                       | a tombstone |
| topic         | string                    | string                       |             |
| partition     | int                       | int32                        |             |
| offset        | bigint                    | int64                        |             |
| timestamp     | timestamp                 | timestamp[us, UTC]           |             |
| timestampType | int: 0 create, 1 append   | int32                        |             |
| headers       | array<struct<key, value>> | list<struct<string, binary>> | no headers  |

`headers` is there only with the option `includeHeaders`. A record of message format v0 has no
timestamp: its type is -1 and its timestamp one millisecond before the epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    import pyarrow as pa

HEADER: Final = StructType(
    [StructField("key", StringType()), StructField("value", BinaryType())],
)

RECORD: Final = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)

RECORD_WITH_HEADERS: Final = StructType(
    [*RECORD.fields, StructField("headers", ArrayType(HEADER))],
)

RANGE: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("start", LongType()),
        StructField("end", LongType()),
    ]
)
"""Columns of a source with `emit=ranges`: an `offsets.OffsetRange` in each row."""

ARCHIVE: Final = StructType([*RECORD_WITH_HEADERS.fields, StructField("date", DateType())])
"""Columns of archived files: a record with headers; `topic` and its `date` (UTC) are directories.
"""

ARCHIVE_PARTITION_COLUMNS: Final = ("topic", "date")

NO_TIMESTAMP_TYPE: Final = -1


def record_schema(*, include_headers: bool) -> StructType:
    """Return the columns of a source with or without `includeHeaders`."""
    return RECORD_WITH_HEADERS if include_headers else RECORD


def arrow_schema(*, include_headers: bool) -> pa.Schema:
    """Return `record_schema` for the first batch that a Python source yields to Spark."""
    return to_arrow(record_schema(include_headers=include_headers))


def to_arrow(columns: StructType) -> pa.Schema:
    """Return the Arrow schema of these columns."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415  slow to import

    return to_arrow_schema(columns, timezone="UTC")
