"""The differences between two sides of `compare`, from the hashes of their records.

Records with the same hash are matched one by one: the first of A with the first of B, and so on, so
that duplicates count. The rest of A is missing in B, and the rest of B is only there. Two of these
with the same key are one record that was changed. A matched record is out of order if a
record of its key that A has behind it comes before it in B.

All steps work on the records of one key in one place, so they share one shuffle, by place and key.
Spark sorts on disk what does not fit into memory.

Input: `compare.source.ROW`. Output: kind, partitionA, offsetA, partitionB, offsetB, fields,
key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

MISSING: Final = "missing"
ONLY: Final = "only"
CHANGED: Final = "changed"
LATE: Final = "late"

_SEQUENCE: Final = ("place", "sequence")
_HASH: Final = (*_SEQUENCE, "first", "second")
_OF_A: Final = 0


def differences(
    rows: DataFrame, *, with_order: bool, compared: Sequence[str], tasks: int
) -> DataFrame:
    """Return a row for each record that differs or is out of order.

    Args:
        rows: of both sides.
        with_order: whether the order counts.
        compared: columns in which a changed record may differ; a changed key is another record.
    """
    together = rows.repartition(tasks, *_SEQUENCE)
    record = f.struct("partition", "offset", "value", "headers", "timestamp", "key")
    order = Window.partitionBy(*_HASH, "side").orderBy("record.partition", "record.offset")
    numbered = together.select(*_HASH, "side", record.alias("record")).select(
        "*", f.row_number().over(order).alias("number")
    )
    # Rows with a and b are matched; the rest has one of them.
    pairs = _sides_of(numbered, [*_HASH, "number"], f.col("side") == _OF_A)
    with_lateness = pairs.select("*", _is_late(with_order=with_order).alias("isLate"))
    is_left = f.col("a").isNull() | f.col("b").isNull()
    rest = with_lateness.where(is_left | f.col("isLate"))
    number = f.row_number().over(
        Window.partitionBy(*_SEQUENCE, "isLate", f.col("a").isNull()).orderBy(
            f.coalesce("a.partition", "b.partition"), f.coalesce("a.offset", "b.offset")
        )
    )
    again = rest.select(*_SEQUENCE, "isLate", "a", "b", number.alias("number"))
    groups = again.groupBy(*_SEQUENCE, "isLate", "number").agg(
        f.first("a", ignorenulls=True).alias("a"), f.first("b", ignorenulls=True).alias("b")
    )
    return _as_differences(groups, compared)


def _sides_of(rows: DataFrame, same: Sequence[str], is_of_a: Column) -> DataFrame:
    """Return a row for each group, with its record of A and of B."""
    return rows.groupBy(*same).agg(
        f.first(f.when(is_of_a, f.col("record")), ignorenulls=True).alias("a"),
        f.first(f.when(~is_of_a, f.col("record")), ignorenulls=True).alias("b"),
    )


def _is_late(*, with_order: bool) -> Column:
    """Return whether a matched record comes in B behind one that A has behind it."""
    if not with_order:
        return f.lit(False)
    window = (
        Window.partitionBy(*_SEQUENCE, "a.partition", "b.partition")
        .orderBy("b.offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    furthest = f.max("a.offset").over(window)
    is_matched = f.col("a").isNotNull() & f.col("b").isNotNull()
    return is_matched & f.coalesce(furthest > f.col("a.offset"), f.lit(False))


def _as_differences(groups: DataFrame, compared: Sequence[str]) -> DataFrame:
    in_a, in_b = f.col("a").isNotNull(), f.col("b").isNotNull()
    kind = (
        f.when(f.col("isLate"), LATE).when(in_a & in_b, CHANGED).when(in_a, MISSING).otherwise(ONLY)
    )
    differ = [
        f.when(~f.col("isLate") & (f.col(f"a.{name}") != f.col(f"b.{name}")), name)
        for name in compared
    ]
    return groups.select(
        kind.alias("kind"),
        f.col("a.partition").alias("partitionA"),
        f.col("a.offset").alias("offsetA"),
        f.col("b.partition").alias("partitionB"),
        f.col("b.offset").alias("offsetB"),
        f.concat_ws(",", *differ).alias("fields"),
        f.coalesce("a.key", "b.key").alias("key"),
    )
