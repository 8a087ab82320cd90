"""From records with JSON values to rows with the values' fields, and the reason for a bad record.

    RECORD ──parsed──► fields… , record, __bad ──good──► fields… , record

`record` is a struct of the record's own columns. `__bad` is null, or the reason in words.
"""

from __future__ import annotations

import json
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
)

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.explain import analysis_sentence
from minibroker.pipeline.operations.dated_columns import bad_date
from minibroker.pipeline.operations.record_times import REASON_PARTS
from minibroker.pipeline.values.column_names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

BAD: Final = "__bad"
RECORD: Final = "record"
TIME: Final = "__time"

_DDL: Final = "DDL such as 'id BIGINT, amount DOUBLE', or Spark's schema as JSON"
_CORRUPT: Final = "__corrupt"
_VALUE: Final = "__parsed"
_OWN: Final = (BAD, RECORD, TIME, _CORRUPT, _VALUE)

NO_VALUE: Final = "it has no value (a tombstone)"
NO_TEXT: Final = "its value is not UTF-8"
NO_JSON: Final = "its value is not JSON of this schema"
NO_FIELD: Final = "its value has none of the fields"
NO_TIME: Final = "it has no time"


def parsed_schema(text: str, origin: str) -> StructType:
    """Return the fields of a schema.

    Args:
        text: DDL, or Spark's schema as JSON.
        origin: what a person gave, for the message.

    Raises:
        PipelineError: it is none.
    """
    try:
        if text.startswith("{"):
            return StructType.fromJson(json.loads(text))
        schema = StructType.fromDDL(text)
    except (PySparkException, ValueError, KeyError, TypeError) as error:
        raise PipelineError(
            f"{origin} is no schema ({analysis_sentence(error)}): expected {_DDL}"
        ) from error
    if not isinstance(schema, StructType):
        raise PipelineError(f"{origin} is a {schema.simpleString()}, no schema: expected {_DDL}")
    return schema


def clashes(schema: StructType) -> list[str]:
    """Return the fields whose name is already used here."""
    return [name for name in schema.names if name in _OWN]


def parse(records: DataFrame, schema: StructType, time: Column | None = None) -> DataFrame:
    """Return the fields of each value, `record`, `__time` and `__bad`; no row is left out.

    Args:
        records: with the columns of `schemas.RECORD`.
        schema: of the values. A missing field is null, a field of another type makes the record
            bad, a field that is not in the schema is left out.
        time: SQL expression of the event's time over the fields and `record`; None: the record's
            timestamp.
    """
    text = f.col("value").cast("string")
    read_as = _with_variants(schema).fields
    with_corrupt = StructType([*read_as, StructField(_CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    own = f.struct(*records.columns).alias(RECORD)
    value = f.from_json(text, with_corrupt, options).alias(_VALUE)
    rows = records.select(own, text.alias("__text"), value)
    no_object = f.col(_VALUE).isNull() | f.col(f"{_VALUE}.{_CORRUPT}").isNotNull()
    columns = {field.name: f.col(f"{_VALUE}.{quoted(field.name)}") for field in schema.fields}
    other = [_has_other_text(columns[field.name], field.dataType) for field in schema.fields]
    reason = (
        f.when(f.col("record.value").isNull(), NO_VALUE)
        .when(~f.is_valid_utf8("__text"), NO_TEXT)
        .when(no_object | ~f.ltrim("__text").startswith("{"), NO_JSON)
        .when(reduce(or_, other), NO_JSON)
        .when(_has_no_field(schema), f"{NO_FIELD} {', '.join(schema.names)}")
    )
    fields = [
        _plain(columns[field.name], field.dataType).alias(field.name) for field in schema.fields
    ]
    with_reason = rows.select(*fields, RECORD, reason.alias("__reason"))
    when = f.col("record.timestamp") if time is None else time
    timed = with_reason.select("*", when.alias(TIME))
    reasons = [f.col("__reason"), f.when(f.col(TIME).isNull(), NO_TIME)]
    if isinstance(timed.schema[TIME].dataType, TimestampType):  # the caller refuses another type
        # Spark's time of a batch stays the same if the batch is repeated.
        reasons.append(bad_date(f.col(TIME), f.current_timestamp()))
    return timed.select(*map(quoted, schema.names), RECORD, TIME, f.coalesce(*reasons).alias(BAD))


def _with_variants(kind: DataType) -> Any:
    """Return a type with variants in place of texts: `from_json` makes a text of any value.

    An archive of the same schema takes a text alone (`values.json_values`).
    """
    if isinstance(kind, StructType):
        inner = [StructField(field.name, _with_variants(field.dataType)) for field in kind.fields]
        return StructType(inner)
    if isinstance(kind, ArrayType):
        return ArrayType(_with_variants(kind.elementType))
    return VariantType() if isinstance(kind, StringType) else kind


def _has_other_text(column: Column, kind: DataType) -> Column:
    """Return whether a column of `_with_variants` has another value where a text has to be."""
    if isinstance(kind, StructType):
        inner = [_has_other_text(column[field.name], field.dataType) for field in kind.fields]
        return reduce(or_, inner, f.lit(False))
    if isinstance(kind, ArrayType):
        items = f.exists(column, lambda item: _has_other_text(item, kind.elementType))
        return f.coalesce(items, f.lit(False))
    if not isinstance(kind, StringType):
        return f.lit(False)
    return f.coalesce(~f.schema_of_variant(column).isin("STRING", "VOID"), f.lit(False))


def _plain(column: Column, kind: DataType) -> Column:
    """Return a column of `_with_variants` with its texts."""
    if isinstance(kind, StructType):
        inner = [
            _plain(column[field.name], field.dataType).alias(field.name) for field in kind.fields
        ]
        return f.when(column.isNotNull(), f.struct(*inner))
    if isinstance(kind, ArrayType):
        return f.transform(column, lambda item: _plain(item, kind.elementType))
    return f.variant_get(column, "$", "string") if isinstance(kind, StringType) else column


def _has_no_field(schema: StructType) -> Column:
    """Return whether a value has none of the fields; its keys are read only if all are null."""
    fields = [f.col(f"{_VALUE}.{quoted(name)}").isNull() for name in schema.names]
    names = f.array(*(f.lit(name) for name in schema.names))
    has_one = f.arrays_overlap(f.json_object_keys("__text"), names)
    return f.when(reduce(and_, fields), ~f.coalesce(has_one, f.lit(False))).otherwise(f.lit(False))


def good(rows: DataFrame) -> DataFrame:
    """Return the good rows."""
    return rows.where(f.col(BAD).isNull()).drop(BAD)


def good_or_fail(rows: DataFrame) -> DataFrame:
    """Return the good rows; the first bad value fails the task with a sentence.

    A row with a bad date is left out, like one that is too late: a producer's clock ends no job.
    """
    sentence = f.concat(
        f.lit("record "),
        f.concat_ws("-", "record.topic", "record.partition"),
        f.lit(" offset "),
        f.col("record.offset").cast("string"),
        f.lit(" cannot be used: "),
        f.col(BAD),
        f.lit("; give --dead-letters TOPIC or DIR to set such records aside, or correct the "),
        f.lit("schema"),
    )
    is_good = (
        f.when(f.col(BAD).isNull(), f.lit(True))
        .when(f.startswith(BAD, f.lit(REASON_PARTS[0])), f.lit(False))
        .otherwise(f.raise_error(sentence).cast("boolean"))
    )
    return rows.where(is_good).drop(BAD)
