"""Records ↔ rows of archived files.

    RECORD_WITH_HEADERS ──to_archive──► ARCHIVE ──to_text──► what CSV can hold
                                           ▲                      │
                                           └───────from_text──────┘

Parquet and JSON hold every column (JSON writes bytes as base64). CSV has neither bytes nor
arrays: there bytes are base64 in one line, `=` when there are none (null is empty), and headers
are JSON of `[{"key": …, "value": base64}, …]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from minibroker.pipeline.kafka import schemas

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TEXT_HEADERS: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", StringType())])
)

CSV: Final = StructType(
    [
        StructField(
            field.name,
            StringType() if field.name in ("key", "value", "headers") else field.dataType,
        )
        for field in sorted(
            schemas.ARCHIVE.fields,
            key=lambda column: column.name in schemas.ARCHIVE_PARTITION_COLUMNS,
        )
    ]
)
"""The columns of CSV files in their order; then `topic` and `date`, the names of directories."""


_NO_BYTES: Final = "="


def _text_of(name: str) -> Column:
    text = f.replace(f.base64(name), f.lit("\r\n"), f.lit(""))
    return f.when(f.length(name) == 0, _NO_BYTES).otherwise(text).alias(name)


def _bytes_of(name: str) -> Column:
    return f.unbase64(f.when(f.col(name) == _NO_BYTES, "").otherwise(f.col(name))).alias(name)


def to_archive(records: DataFrame) -> DataFrame:
    """Return the columns of an archive; the date is that of the record's timestamp, in UTC."""
    return records.select(*schemas.RECORD_WITH_HEADERS.names, f.to_date("timestamp").alias("date"))


def to_text(rows: DataFrame) -> DataFrame:
    """Return the columns of an archive's rows that CSV can hold."""
    headers = f.transform(
        "headers",
        lambda header: f.struct(
            header["key"].alias("key"), f.base64(header["value"]).alias("value")
        ),
    )
    return rows.select(
        _text_of("key"),
        _text_of("value"),
        *("topic", "partition", "offset", "timestamp", "timestampType"),
        f.to_json(headers, {"ignoreNullFields": "false"}).alias("headers"),
        "date",
    )


def from_text(rows: DataFrame) -> DataFrame:
    """Return the archive's rows that `to_text` has turned into text."""
    headers = f.transform(
        f.from_json("headers", _TEXT_HEADERS),
        lambda header: f.struct(
            header["key"].alias("key"), f.unbase64(header["value"]).alias("value")
        ),
    )
    return rows.select(
        _bytes_of("key"),
        _bytes_of("value"),
        *("topic", "partition", "offset", "timestamp", "timestampType"),
        headers.alias("headers"),
        "date",
    )
