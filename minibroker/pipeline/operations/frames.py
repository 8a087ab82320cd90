"""The operations of a job (`operations.rows`) on its rows: some are left out, some are changed.

    RECORD ──chosen──► the rows of since, until, where and sample ──changed──► masked and selected

A replay calls the two with its shuffle between them; every other job calls `operated`. Masks run as
a function over Arrow batches, at about 1.4 times the speed of one called for each row by pickle.

The rows are observed: the progress of a query has the number of rows that went on, of those that
could not be masked, and the places that the rules found, under `METRIC`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa  # at run time, too: Spark evaluates the hints of the masks' function
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, BooleanType, LongType, StringType, StructField, StructType

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.explain import analysed_quietly, analysis_sentence
from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.kafka.python_rows import without_null_list
from minibroker.pipeline.operations.dated_columns import last_date
from minibroker.pipeline.operations.json_columns import parsed_schema
from minibroker.pipeline.operations.mask_rules import HEADERS
from minibroker.pipeline.operations.masked_rows import masked_rows
from minibroker.pipeline.operations.masking import NOT_WRITTEN, WAY_OUT, Masker
from minibroker.pipeline.operations.rows import BY_KEY, METRIC, PLACE_BITS, ROWS, UNMASKABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, Observation, SparkSession

    from minibroker.pipeline.operations.rows import RowOperations

_RECORD: Final = "__record"
_CHANGED: Final = "__changed"
_HASH_BITS: Final = 63
_UNREPEATABLE: Final = frozenset(
    {"CurrentDate", "CurrentTimestamp", "CurrentTime", "LocalTimestamp", "Now"}
)
_QUERIES: Final = frozenset({"InSubquery", "ListQuery", "ScalarSubquery", "Exists"})
"""Spark's expressions that have another value when a batch is repeated."""

_SPARK_TYPES: Final = {
    "key": BinaryType(),
    "value": BinaryType(),
    "headers": schemas.RECORD_WITH_HEADERS["headers"].dataType,
}


def operated(
    rows: DataFrame,
    operations: RowOperations,
    secret: bytes,
    metric: str = METRIC,
    *,
    now: Column | None = None,
) -> DataFrame:
    """Return the rows of `operations`, with the same columns; without operations `rows` itself.

    Args:
        rows: with the columns of `schemas.RECORD`, and perhaps more.
        metric: the name of the metrics; two frames in one query need two.
        now: as of `in_time`.

    Raises:
        PipelineError: the condition is none.
    """
    return changed(chosen(rows, operations, now=now), operations, secret, metric)


def chosen(rows: DataFrame, operations: RowOperations, *, now: Column | None = None) -> DataFrame:
    """Return the rows that are neither outside the time, nor left out by condition or sample.

    `now` is as of `in_time`. Raises PipelineError.
    """
    rows = in_time(rows, operations, now)
    if operations.where is not None:
        rows = _with_condition(rows, operations.where, operations.value_schema)
    if operations.sample is not None and operations.sample < 1:
        rows = rows.where(_in_sample(operations.sample, by_key=operations.sample_by == BY_KEY))
    return rows


def check_condition(
    spark: SparkSession, operations: RowOperations, value_schema: str | None = None
) -> None:
    """Raise PipelineError if `where` is no condition; nothing is read.

    A job calls it before it writes anything, so that its directory is free for a corrected one.

    Args:
        value_schema: fields of a value, where the operations name none.
    """
    if operations.where is not None:
        none = spark.createDataFrame([], schemas.RECORD_WITH_HEADERS)
        _with_condition(none, operations.where, operations.value_schema or value_schema)


def in_time(rows: DataFrame, operations: RowOperations, now: Column | None = None) -> DataFrame:
    """Return the rows from `since` on and before `until`; a record without a time is in no range.

    Directories of an archive with other dates are not read.

    Args:
        rows: with the columns of `schemas.RECORD`, and perhaps `date`.
        now: for a job that sets aside records which are dated far ahead of it (`record_times`):
            nobody knows whether these are in the range, so they stay. None: they do not.
    """
    since, until = operations.since, operations.until
    if since is not None or until is not None:
        rows = rows.where(f.col("timestampType") >= 0)
    if since is not None:
        begin = f.timestamp_millis(f.lit(since.ms))
        rows = rows.where(f.col("timestamp") >= begin)
        if "date" in rows.columns:
            rows = rows.where(f.col("date") >= f.to_date(begin))
    if until is not None:
        end = f.timestamp_millis(f.lit(until.ms))
        is_far = f.lit(False) if now is None else f.col("timestamp") > last_date(now)
        if "date" in rows.columns and now is None:
            rows = rows.where(f.col("date") <= f.to_date(end))
        rows = rows.where((f.col("timestamp") < end) | is_far)
    return rows


def changed(
    rows: DataFrame,
    operations: RowOperations,
    secret: bytes,
    observed: Observation | str = METRIC,
) -> DataFrame:
    """Return the rows with masked and selected fields, observed.

    Args:
        rows: as of `chosen`.
        observed: gets the metrics; a name: the progress of the query has them under it.
    """
    if not operations.changes:
        if operations.chooses or not isinstance(observed, str):
            rows = rows.observe(observed, f.count(f.lit(1)).alias(ROWS))
        return rows
    masker = Masker(operations.rules, operations.fields, secret)
    names = [name for name in masker.columns if name in rows.columns]
    arrow_udf: Any = f.arrow_udf  # its hints know no struct
    result = arrow_udf(_function(masker, names), _result_type(names))
    inputs = [without_null_list(f.col(name), rows.schema[name].dataType) for name in names]
    observed_rows = rows.select("*", result(*inputs).alias(_CHANGED)).observe(
        observed,
        f.count_if(f.col(f"{_CHANGED}.reason").isNull()).alias(ROWS),
        f.count(f"{_CHANGED}.reason").alias(UNMASKABLE),
        f.bit_or(f"{_CHANGED}.found").alias(PLACE_BITS),
    )
    good = observed_rows.where(_is_masked(fails=not operations.skips))
    columns = [_changed(name) if name in names else f.col(name) for name in rows.columns]
    return good.select(*columns)


def found_in(rows: DataFrame, operations: RowOperations, secret: bytes, limit: int) -> int:
    """Return the bits of the places that rows have, see `operations.met_places`; reads them.

    Args:
        rows: as of `chosen`.
        limit: rows that are looked at, at most.
    """
    masker = Masker(operations.rules, operations.fields, secret)
    names = [name for name in masker.columns if name in rows.columns]
    arrow_udf: Any = f.arrow_udf  # its hints know no struct
    result = arrow_udf(_function(masker, names), _result_type(names))
    inputs = [without_null_list(f.col(name), rows.schema[name].dataType) for name in names]
    bits = rows.select(result(*inputs).alias(_CHANGED)).select(f"{_CHANGED}.found").limit(limit)
    [row] = bits.agg(f.bit_or("found")).collect()
    return row[0] or 0


def _changed(name: str) -> Column:
    """Return a masked column. Headers that are null stay so: masks got an empty list for them."""
    masked = f.col(f"{_CHANGED}.{name}")
    return f.when(f.col(name).isNotNull(), masked).alias(name) if name == HEADERS else masked


def condition_columns(rows: DataFrame, value_schema: str | None = None) -> DataFrame:
    """Return the columns that a condition sees, and the row itself as a struct.

    Keys and values are text, or a value is a struct of its fields, all null if it is no JSON of
    them. `headers` is a map; of two headers with one name it has the last.
    """
    text = f.col("value").cast("string")
    value = (
        text
        if value_schema is None
        else f.from_json(text, parsed_schema(value_schema, value_schema))
    )
    others = [name for name in rows.columns if name not in _SPARK_TYPES]
    headers = _header_map() if "headers" in rows.columns else f.lit(None).cast("map<string,string>")
    return rows.select(
        f.struct(*rows.columns).alias(_RECORD),
        f.col("key").cast("string").alias("key"),
        value.alias("value"),
        headers.alias("headers"),
        *others,
    )


def _with_condition(rows: DataFrame, condition: str, value_schema: str | None) -> DataFrame:
    row_columns = condition_columns(rows, value_schema)
    names = ", ".join(
        f"{field.name} {field.dataType.simpleString()}"
        for field in row_columns.schema
        if field.name != _RECORD
    )
    try:
        with analysed_quietly():
            kind = row_columns.drop(_RECORD).select(f.expr(condition)).schema[0].dataType
            result = row_columns.where(f.expr(condition))
    except PySparkException as error:
        hint = (
            "" if value_schema else "; value.FIELD needs the fields of a value, by --where-schema"
        )
        raise PipelineError(
            f"--where {condition}: {analysis_sentence(error)}; the columns are {names}{hint}"
        ) from error
    if not isinstance(kind, BooleanType):
        raise PipelineError(
            f"--where {condition} is a {kind.simpleString()}: expected a condition, such as "
            f"partition = 0; the columns are {names}"
        )
    if name := _unrepeatable(result):
        raise PipelineError(
            f"--where {condition} has {name}, which is another value when a batch is repeated "
            "after a kill: rows would be lost or twice; take --sample, --since or --until"
        )
    return result.select(f"{_RECORD}.*")


def _unrepeatable(rows: DataFrame) -> str | None:
    """Return what makes the condition of a filter another one each time, None if nothing does."""
    plan: Any = rows._jdf.queryExecution().analyzed()
    condition = plan.condition()
    if not condition.deterministic():
        return "a random function"
    waiting = [condition]
    while waiting:
        expression = waiting.pop()
        kind = expression.getClass().getSimpleName()
        if kind in _UNREPEATABLE:
            return f"{expression.prettyName()}()"
        if kind in _QUERIES:
            return "a query within it"
        children = expression.children()
        waiting += [children.apply(index) for index in range(children.size())]
    return None


def _header_map() -> Column:
    """Return a map of the headers: text of each name, the last value of it."""
    names = f.array_distinct(f.transform("headers", lambda header: header["key"]))

    def last(name: Column) -> Column:
        same = f.filter("headers", lambda header: header["key"] == name)
        return f.element_at(same, -1)["value"].cast("string")

    return f.map_from_arrays(names, f.transform(names, last))


def _in_sample(share: float, *, by_key: bool) -> Column:
    """Return whether a row is in the sample, by a hash: the same rows in every run."""
    hashed = f.xxhash64("topic", "partition", "offset")
    if by_key:
        hashed = f.when(f.col("key").isNull(), hashed).otherwise(f.xxhash64("key"))
    return f.shiftrightunsigned(hashed, 1) < f.lit(int(share * (1 << _HASH_BITS)))


def _is_masked(*, fails: bool) -> Column:
    reason = f.col(f"{_CHANGED}.reason")
    if not fails:
        return reason.isNull()
    sentence = f.concat(
        f.lit("record "),
        f.concat_ws("-", "topic", "partition"),
        f.lit(" offset "),
        f.col("offset").cast("string"),
        f.lit(NOT_WRITTEN),
        reason,
        f.lit(WAY_OUT),
    )
    return f.when(reason.isNull(), f.lit(True)).otherwise(f.raise_error(sentence).cast("boolean"))


def _result_type(names: Sequence[str]) -> StructType:
    columns = [StructField(name, _SPARK_TYPES[name]) for name in names]
    return StructType(
        [*columns, StructField("found", LongType()), StructField("reason", StringType())]
    )


def _function(masker: Masker, names: Sequence[str]) -> Callable[..., pa.Array]:
    """Return the function for the tasks: columns of a batch in, a struct of the result out."""

    def masked(*columns: pa.Array) -> pa.Array:
        return masked_rows(masker, names, columns)

    return masked
