"""Ranges that are left of filters, for all that Spark hands down."""

from __future__ import annotations

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

from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.source.pushed_filters import narrowed

TOPIC, PARTITION, OFFSET = ("topic",), ("partition",), ("offset",)
RANGES = [
    OffsetRange("a", 0, 10, 20),
    OffsetRange("a", 1, 0, 5),
    OffsetRange("b", 1, 15, 30),
]


@pytest.mark.parametrize(
    ("filters", "left"),
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
def test_ranges_keep_what_can_match(filters: list[Filter], left: list[OffsetRange]) -> None:
    assert narrowed(RANGES, filters) == left
