"""Ranges that are left of filters, for all that Spark hands down."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from minibroker.pipeline.kafka.source.pushed_filters import narrowed, since_ms
from minibroker.pipeline.offsets import OffsetRange

TOPIC, PARTITION, OFFSET = ("topic",), ("partition",), ("offset",)
RANGES = [OffsetRange("a", 0, 10, 20), OffsetRange("a", 1, 0, 5), OffsetRange("b", 1, 15, 30)]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], RANGES),
        ([EqualTo(TOPIC, "a")], RANGES[:2]),
        ([In(TOPIC, ("b", "c"))], RANGES[2:]),
        ([EqualTo(PARTITION, 1)], RANGES[1:]),
        ([GreaterThan(PARTITION, 0), LessThan(OFFSET, 3)], [OffsetRange("a", 1, 0, 3)]),
        ([In(PARTITION, (0, 7))], RANGES[:1]),
        ([EqualTo(OFFSET, 19)], [OffsetRange("a", 0, 19, 20), OffsetRange("b", 1, 19, 20)]),
        (
            [GreaterThan(OFFSET, 18), LessThanOrEqual(OFFSET, 20), EqualTo(TOPIC, "b")],
            [OffsetRange("b", 1, 19, 21)],
        ),
        ([GreaterThanOrEqual(OFFSET, 29)], [OffsetRange("b", 1, 29, 30)]),
        ([In(OFFSET, (3, 12, None))], [OffsetRange("a", 0, 10, 13), OffsetRange("a", 1, 3, 5)]),
        ([In(OFFSET, (None,))], []),
        ([EqualTo(OFFSET, 99)], []),
        ([IsNotNull(OFFSET), EqualTo(("key",), b"k"), Not(EqualTo(OFFSET, 12))], RANGES),
    ],
)
def test_ranges_keep_what_can_match(filters: list[Filter], expected: list[OffsetRange]) -> None:
    assert narrowed(RANGES, filters) == expected


TIME = ("timestamp",)
AT = datetime(2026, 11, 28, 5, 0, 0, 1_999, tzinfo=UTC)
"""Between two milliseconds."""
AT_MS = 1_795_842_000_001
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("filters", "first_ms"),
    [
        ([], None),
        ([GreaterThan(TIME, AT)], AT_MS),
        ([GreaterThanOrEqual(TIME, AT.astimezone(timezone(HOUR)))], AT_MS),
        ([EqualTo(TIME, AT)], AT_MS),
        ([In(TIME, (AT + HOUR, AT))], AT_MS),
        ([GreaterThan(TIME, AT - HOUR), GreaterThan(TIME, AT), IsNotNull(TIME)], AT_MS),
        # Behind the first record of a time there can be earlier ones.
        ([LessThan(TIME, AT), LessThanOrEqual(TIME, AT), Not(EqualTo(TIME, AT))], None),
        ([In(TIME, (AT, None))], None),
        ([GreaterThan(TIME, AT.replace(tzinfo=None)), GreaterThan(OFFSET, 5)], None),
        # Kafka's -1 and -2 are no times.
        ([GreaterThan(TIME, datetime(1969, 12, 31, tzinfo=UTC))], None),
    ],
)
def test_a_first_time_is_a_bound_and_a_last_one_is_none(
    filters: list[Filter], first_ms: int | None
) -> None:
    assert since_ms(filters) == first_ms
