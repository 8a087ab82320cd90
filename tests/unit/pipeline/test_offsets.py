"""Offsets as the connector writes them, and how much of them a batch and a task get."""

from __future__ import annotations

import itertools

import pytest

from minibroker.pipeline import offsets
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.offsets import OffsetRange, TopicPartition

A0 = TopicPartition("a", 0)
A1 = TopicPartition("a", 1)
A10 = TopicPartition("a", 10)
B0 = TopicPartition("b", 0)


def test_json_is_the_connectors_byte_for_byte() -> None:
    written = offsets.to_json({B0: 1, A10: 4, A1: 3, A0: 2})

    assert written == '{"a":{"0":2,"1":3,"10":4},"b":{"0":1}}'
    assert offsets.from_json(written, where="x") == {A0: 2, A1: 3, A10: 4, B0: 1}


@pytest.mark.parametrize(
    "text", ["", "7", "[]", '{"a": 1}', '{"a": {"x": 1}}', '{"a": {"0": "1"}}', '{"a": {"-1": 1}}']
)
def test_other_json_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(PipelineError, match=r"startingOffsets is .* as \{\"orders\""):
        offsets.from_json(text, where="startingOffsets")


def test_a_limit_is_shared_in_proportion() -> None:
    limited = offsets.limit_rows({A0: 0, A1: 100, B0: 5}, {A0: 900, A1: 200, B0: 5}, 100)

    assert limited == {A0: 90, A1: 110, B0: 5}


def test_a_limit_starves_no_small_partition_and_passes_no_end() -> None:
    limited = offsets.limit_rows({A0: 0, A1: 7}, {A0: 1_000_000, A1: 8}, 10)

    assert limited == {A0: 9, A1: 8}


def test_a_limit_larger_than_what_waits_changes_nothing() -> None:
    assert offsets.limit_rows({A0: 0}, {A0: 10}, 10) == {A0: 10}


def test_limited_batches_reach_the_end() -> None:
    start = {A0: 0, A1: 0}
    end = {A0: 997, A1: 3}
    batches = 0
    while start != end:
        start = offsets.limit_rows(start, end, 100)
        batches += 1

    assert batches <= 11


def test_one_range_is_one_task_and_empty_ones_are_none() -> None:
    ranges = [OffsetRange("a", 0, 5, 10), OffsetRange("a", 1, 3, 3)]

    assert offsets.split_ranges(ranges) == [OffsetRange("a", 0, 5, 10)]


@pytest.mark.parametrize("pieces", [2, 3, 7, 64])
def test_min_partitions_cuts_the_large_without_a_gap(pieces: int) -> None:
    ranges = [OffsetRange("a", 0, 10, 1010), OffsetRange("a", 1, 0, 1)]

    split = offsets.split_ranges(ranges, pieces_min=pieces)

    assert abs(len(split) - pieces) <= 1
    assert offsets.split_ranges(split) == split
    assert [span for span in split if span.partition == 1] == [OffsetRange("a", 1, 0, 1)]
    large = [span for span in split if span.partition == 0]
    assert (large[0].start, large[-1].end) == (10, 1010)
    assert all(left.end == right.start for left, right in itertools.pairwise(large))


def test_small_ranges_are_not_cut_for_more_tasks() -> None:
    ranges = [OffsetRange("a", 0, 0, 250), OffsetRange("a", 1, 0, 90)]

    split = offsets.split_ranges(ranges, pieces_min=16, rows_min=100)

    assert [(span.partition, span.size) for span in split] == [(0, 125), (0, 125), (1, 90)]


def test_no_range_is_longer_than_its_limit() -> None:
    split = offsets.split_ranges([OffsetRange("a", 0, 0, 10)], rows_max=4)

    assert [span.size for span in split] == [3, 3, 4]


def test_an_end_before_its_start_is_data_lost() -> None:
    lost: list[str] = []

    ranges = offsets.ranges_between({A0: 5, A1: 9}, {A0: 7, A1: 3, B0: 4}, lost.append)

    assert ranges == [OffsetRange("a", 0, 5, 7)]
    assert len(lost) == 1
    assert "a-1 ends at offset 3, before offset 9" in lost[0]
