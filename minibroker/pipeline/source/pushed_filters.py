"""Filters of a query that choose what is read: on topic, partition and offset.

    where("partition = 3 and offset >= 1000") ──narrowed──► the part of the ranges that can match

Spark applies every filter once more, so a filter that is not known here is no error.
"""

from __future__ import annotations

import operator
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
