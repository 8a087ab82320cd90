"""Lag, from committed offsets and ends."""

from __future__ import annotations

from minibroker.pipeline.group_lag import lag_of
from minibroker.pipeline.report_facts import GroupLag


def test_lag_is_the_sum_over_partitions_that_were_read() -> None:
    found = lag_of("g", "stable", {0: 5, 1: 20}, {0: 10, 1: 20, 2: 100})
    assert found == GroupLag("g", "stable", 5, 3, 1)


def test_an_offset_beyond_the_end_is_no_lag() -> None:
    assert lag_of("g", "empty", {0: 50}, {0: 10}).lag == 0
