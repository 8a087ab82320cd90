"""Filters of a query that choose what is read: on topic, partition, offset and the first time.

    where("partition = 3 and offset >= 1000") ──narrowed──► the part of the ranges that can match
    where("timestamp >= '2026-11-28'") ──since_ms──► the time that the broker is asked about

Spark applies every filter once more, so a filter that is not known here is no error.
"""

from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql.datasource import Filter

    from minibroker.pipeline.offsets import OffsetRange

_COMPARISONS: Final[dict[type[Filter], Callable[[Any, Any], bool]]] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def since_ms(filters: Iterable[Filter]) -> int | None:
    """Return the time before which no record is wanted, in milliseconds since 1970; None: no bound.

    A last time is no bound of what is read: behind the first record of that time there can be
    earlier ones.
    """
    bounds = [
        min(times)
        for condition in filters
        if getattr(condition, "attribute", ()) == ("timestamp",)
        and (times := _least_times(condition))
    ]
    latest = max(bounds, default=0)
    return latest if latest > 0 else None


def _least_times(condition: Any) -> list[int]:
    """Return times of which one is not later than any record that a filter lets through."""
    if not isinstance(condition, (EqualTo, GreaterThan, GreaterThanOrEqual, In)):
        return []
    values = condition.value if isinstance(condition, In) else (condition.value,)
    if not all(isinstance(value, datetime) and value.tzinfo for value in values):
        return []
    return [(value - _EPOCH) // timedelta(milliseconds=1) for value in values]


def narrowed(ranges: Iterable[OffsetRange], filters: Iterable[Filter]) -> list[OffsetRange]:
    """Return the ranges without offsets that no filter lets through; empty ones are left out.

    Args:
        ranges: what the options name.
        filters: all of them hold for each row of the result.
    """
    conditions = [
        condition for condition in filters if getattr(condition, "attribute", ()) in _COLUMNS
    ]
    spans = []
    for span in ranges:
        rest: OffsetRange | None = span
        for condition in conditions:
            if rest is not None:
                rest = _COLUMNS[condition.attribute](rest, condition)  # type: ignore[attr-defined]
        if rest is not None and rest.size > 0:
            spans.append(rest)
    return spans


def _by_name(span: OffsetRange, condition: Any) -> OffsetRange | None:
    if isinstance(condition, EqualTo):
        return span if span.topic == condition.value else None
    return span if not isinstance(condition, In) or span.topic in condition.value else None


def _by_number(span: OffsetRange, condition: Any) -> OffsetRange | None:
    if isinstance(condition, In):
        return span if span.partition in condition.value else None
    compare = _COMPARISONS.get(type(condition))
    return span if compare is None or compare(span.partition, condition.value) else None


def _by_offset(span: OffsetRange, condition: Any) -> OffsetRange | None:
    start, end = span.start, span.end
    if isinstance(condition, In):
        numbers = [value for value in condition.value if value is not None]
        if not numbers:
            return None
        start, end = max(start, min(numbers)), min(end, max(numbers) + 1)
    elif isinstance(condition, EqualTo):
        start, end = max(start, condition.value), min(end, condition.value + 1)
    elif isinstance(condition, GreaterThan):
        start = max(start, condition.value + 1)
    elif isinstance(condition, GreaterThanOrEqual):
        start = max(start, condition.value)
    elif isinstance(condition, LessThan):
        end = min(end, condition.value)
    elif isinstance(condition, LessThanOrEqual):
        end = min(end, condition.value + 1)
    return span._replace(start=start, end=end) if start < end else None


_COLUMNS: Final = {("topic",): _by_name, ("partition",): _by_number, ("offset",): _by_offset}
