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
    found = [
        min(times)
        for told in filters
        if getattr(told, "attribute", ()) == ("timestamp",) and (times := _least_times(told))
    ]
    latest = max(found, default=0)
    return latest if latest > 0 else None


def _least_times(told: Any) -> list[int]:
    """Return times of which one is not later than any record that a filter lets through."""
    if not isinstance(told, (EqualTo, GreaterThan, GreaterThanOrEqual, In)):
        return []
    values = told.value if isinstance(told, In) else (told.value,)
    if not all(isinstance(value, datetime) and value.tzinfo for value in values):
        return []
    return [(value - _EPOCH) // timedelta(milliseconds=1) for value in values]


def narrowed(ranges: Iterable[OffsetRange], filters: Iterable[Filter]) -> list[OffsetRange]:
    """Return the ranges without offsets that no filter lets through; empty ones are left out.

    Args:
        ranges: what the options name.
        filters: all of them hold for each row of the result.
    """
    wanted = [told for told in filters if getattr(told, "attribute", ()) in _COLUMNS]
    found = []
    for span in ranges:
        rest: OffsetRange | None = span
        for told in wanted:
            if rest is not None:
                rest = _COLUMNS[told.attribute](rest, told)  # type: ignore[attr-defined]
        if rest is not None and rest.size > 0:
            found.append(rest)
    return found


def _by_name(span: OffsetRange, told: Any) -> OffsetRange | None:
    if isinstance(told, EqualTo):
        return span if span.topic == told.value else None
    return span if not isinstance(told, In) or span.topic in told.value else None


def _by_number(span: OffsetRange, told: Any) -> OffsetRange | None:
    if isinstance(told, In):
        return span if span.partition in told.value else None
    compare = _COMPARISONS.get(type(told))
    return span if compare is None or compare(span.partition, told.value) else None


def _by_offset(span: OffsetRange, told: Any) -> OffsetRange | None:
    start, end = span.start, span.end
    if isinstance(told, In):
        numbers = [value for value in told.value if value is not None]
        if not numbers:
            return None
        start, end = max(start, min(numbers)), min(end, max(numbers) + 1)
    elif isinstance(told, EqualTo):
        start, end = max(start, told.value), min(end, told.value + 1)
    elif isinstance(told, GreaterThan):
        start = max(start, told.value + 1)
    elif isinstance(told, GreaterThanOrEqual):
        start = max(start, told.value)
    elif isinstance(told, LessThan):
        end = min(end, told.value)
    elif isinstance(told, LessThanOrEqual):
        end = min(end, told.value + 1)
    return span._replace(start=start, end=end) if start < end else None


_COLUMNS: Final = {("topic",): _by_name, ("partition",): _by_number, ("offset",): _by_offset}
