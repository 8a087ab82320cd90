"""Records that cannot be used: as rows for people, and as records for a topic.

The headers of a record in a topic are those of Kafka Connect's dead letter queues, so that tools
for them know these, too: `__connect.errors.topic`, `.partition`, `.offset`, `.exception.message`;
`.timestamp` is the record's own time in ms. A letter itself has the time when it is written: the
topic's retention counts by it, and a broker may refuse one that is far ahead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REASON: Final = "reason"
_HEADERS: Final = {
    "topic": "__connect.errors.topic",
    "partition": "__connect.errors.partition",
    "offset": "__connect.errors.offset",
    REASON: "__connect.errors.exception.message",
}
_TIME: Final = "__connect.errors.timestamp"


def to_rows(records: DataFrame) -> DataFrame:
    """Return text for people and, in `value_base64`, bytes for programs.

    Args:
        records: with the columns of `schemas.RECORD` and `reason`; `headers` and `date` stay if
            there are any.
    """
    rest = [name for name in ("headers", "date") if name in records.columns]
    return records.select(
        *("topic", "partition", "offset", "timestamp", REASON),
        f.make_valid_utf8(f.col("key").cast("string")).alias("key"),
        f.make_valid_utf8(f.col("value").cast("string")).alias("value"),
        _base64("key"),
        _base64("value"),
        *rest,
    )


def to_records(records: DataFrame) -> DataFrame:
    """Return the records as they came, in their order, with the reason in headers.

    Args:
        records: with the columns of `schemas.ARCHIVE` and `reason`.
    """
    time_ms = f.when(f.col("timestampType") >= 0, f.unix_millis("timestamp"))
    facts = {header: f.col(name) for name, header in _HEADERS.items()} | {_TIME: time_ms}
    own_headers = f.array(
        *(
            f.struct(f.lit(header).alias("key"), fact.cast("string").cast("binary").alias("value"))
            for header, fact in facts.items()
        )
    )
    ordered = records.coalesce(1).sortWithinPartitions("topic", "partition", "offset")
    return ordered.select(
        "key",
        "value",
        f.concat(f.coalesce("headers", f.array().cast(told_type(records))), own_headers).alias(
            "headers"
        ),
    )


def told_type(records: DataFrame) -> str:
    """Return the type of the headers."""
    return records.schema["headers"].dataType.simpleString()


def _base64(name: str) -> Column:
    """Return base64 without line breaks; Spark's has lines of 76 characters."""
    text = f.replace(f.base64(name), f.lit("\r\n"), f.lit(""))
    return text.alias(f"{name}_base64")
