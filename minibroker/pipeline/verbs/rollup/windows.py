"""From rows with a time to aggregates over windows of it, and to records or rows of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from minibroker.pipeline.operations.json_columns import TIME
from minibroker.pipeline.values.column_names import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

WINDOW_COLUMNS: Final = ("window_start", "window_end")
DATE: Final = "date"


def rolled_up(
    rows: DataFrame,
    *,
    window_ms: int,
    slide_ms: int | None,
    watermark_ms: int,
    by: Sequence[str],
    aggregates: Sequence[str],
) -> DataFrame:
    """Return window_start, window_end, the groups, the aggregates.

    Args:
        rows: with the column `__time`.
        window_ms: how long a window is; it begins at a multiple of `slide_ms` since the epoch.
        slide_ms: distance between their beginnings; None: the length of a window.
        watermark_ms: a window is final once a time this much later than its end was seen.
        by: SQL expressions of groups.
        aggregates: SQL expressions of aggregates.
    """
    window = f.window(
        TIME,
        f"{window_ms} milliseconds",
        None if slide_ms is None else f"{slide_ms} milliseconds",
    )
    groups = [f.expr(expression) for expression in by]
    grouped = rows.withWatermark(TIME, f"{watermark_ms} milliseconds").groupBy(window, *groups)
    result = grouped.agg(*[f.expr(aggregate) for aggregate in aggregates])
    others = [f.col(quoted(name)) for name in result.columns if name != "window"]
    return result.select(
        f.col("window.start").alias("window_start"),
        f.col("window.end").alias("window_end"),
        *others,
    )


def to_records(windows: DataFrame, groups: int) -> DataFrame:
    """Return each window as a record: key and value are JSON, its time is the window's begin.

    The key is the window's begin and its groups, so that a compacted topic keeps one of each.

    Args:
        windows: as of `rolled_up`.
        groups: how many columns behind the window's are groups.
    """
    key = [windows.columns[0], *windows.columns[2 : 2 + groups]]
    return windows.select(
        _json(key).cast("binary").alias("key"),
        _json(windows.columns).cast("binary").alias("value"),
        f.col("window_start").alias("timestamp"),
    )


def to_rows(windows: DataFrame) -> DataFrame:
    """Return the rows with the date of the window's begin, which becomes a directory."""
    return windows.select("*", f.to_date("window_start").alias(DATE))


def _json(names: Sequence[str]) -> Column:
    columns = [f.col(quoted(name)) for name in names]
    return f.to_json(f.struct(*columns), {"ignoreNullFields": "false"})
