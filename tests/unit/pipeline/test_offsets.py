"""Offsets as the connector writes them, and how much of them a batch and a task get."""

from __future__ import annotations

import itertools

import pytest

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline import offsets
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.offsets import OffsetRange

A0 = TopicPartition("a", 0)
A1 = TopicPartition("a", 1)
A10 = TopicPartition("a", 10)
B0 = TopicPartition("b", 0)


def test_json_is_the_connectors_byte_for_byte() -> None:
    json_text = offsets.to_json({B0: 1, A10: 4, A1: 3, A0: 2})

    assert json_text == '{"a":{"0":2,"1":3,"10":4},"b":{"0":1}}'
    assert offsets.from_json(json_text, origin="x") == {A0: 2, A1: 3, A10: 4, B0: 1}


@pytest.mark.parametrize(
    "text", ["", "7", "[]", '{"a": 1}', '{"a": {"x": 1}}', '{"a": {"0": "1"}}', '{"a": {"-1": 1}}']
)
def test_other_json_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(PipelineError, match=r"startingOffsets is .* as \{\"orders\""):
        offsets.from_json(text, origin="startingOffsets")


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
    assert all(first_span.end == right.start for first_span, right in itertools.pairwise(large))


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


def whole_of(groups: list[list[OffsetRange]]) -> dict[TopicPartition, list[tuple[int, int]]]:
    """Return the ranges of each partition, where one goes on behind the other as one."""
    joined: dict[TopicPartition, list[tuple[int, int]]] = {}
    for span in itertools.chain.from_iterable(groups):
        joined_span = joined.setdefault(TopicPartition(span.topic, span.partition), [])
        if joined_span and joined_span[-1][1] == span.start:
            joined_span[-1] = (joined_span[-1][0], span.end)
        else:
            joined_span.append((span.start, span.end))
    return joined


@pytest.mark.parametrize("groups_max", [1, 2, 3, 7, 16, 1000])
@pytest.mark.parametrize("cut_min", [1, 50])
def test_groups_hold_each_offset_once_in_order(groups_max: int, cut_min: int) -> None:
    ranges = [
        OffsetRange("a", number, number * 7, number * 7 + size)
        for number, size in enumerate([0, 1, 400, 3, 60, 0, 1_000, 49, 2])
    ]

    groups = offsets.group_ranges(ranges, groups_max=groups_max, cut_min=cut_min)

    assert len(groups) <= groups_max
    assert all(groups)
    assert sorted(itertools.chain.from_iterable(groups)) == list(
        itertools.chain.from_iterable(groups)
    )
    assert whole_of(groups) == {
        TopicPartition("a", span.partition): [(span.start, span.end)]
        for span in ranges
        if span.size
    }


def test_ten_thousand_partitions_are_a_few_tasks_of_one_size() -> None:
    ranges = [OffsetRange("a", number, 0, 200 + number % 3) for number in range(10_000)]

    groups = offsets.group_ranges(ranges, groups_max=8, cut_min=100)

    sizes = [sum(span.size for span in group) for group in groups]
    assert len(groups) == 8
    assert max(sizes) - min(sizes) <= 2 * 202


def test_a_large_partition_is_cut_and_small_ones_share_a_task() -> None:
    ranges = [OffsetRange("a", 0, 0, 900), OffsetRange("a", 1, 5, 105), OffsetRange("a", 2, 0, 200)]

    assert offsets.group_ranges(ranges, groups_max=3) == [
        [OffsetRange("a", 0, 0, 400)],
        [OffsetRange("a", 0, 400, 800)],
        [OffsetRange("a", 0, 800, 900), OffsetRange("a", 1, 5, 105), OffsetRange("a", 2, 0, 200)],
    ]


def test_few_records_are_few_tasks() -> None:
    ranges = [OffsetRange("a", number, 0, 10) for number in range(100)]

    assert len(offsets.group_ranges(ranges, groups_max=16, group_min=250)) == 4
    assert len(offsets.group_ranges(ranges, groups_max=16, group_min=5_000)) == 1
    assert offsets.group_ranges([], groups_max=16) == []


def test_tasks_are_of_one_size_in_bytes_where_records_differ() -> None:
    ranges = [OffsetRange("large", 0, 0, 100), OffsetRange("small", 0, 0, 1_000)]
    record_bytes = {"large": 1_000, "small": 100}.__getitem__

    assert offsets.group_ranges(ranges, groups_max=2, record_bytes=record_bytes) == [
        [OffsetRange("large", 0, 0, 100)],
        [OffsetRange("small", 0, 0, 1_000)],
    ]


MIB = 1 << 20


def test_a_limit_in_bytes_is_shared_in_proportion() -> None:
    limited = offsets.limit_bytes(
        {A0: 0, A1: 100, B0: 5}, {A0: 90_000, A1: 10_100, B0: 5}, 10 * MIB, lambda _: 1024, {}
    )

    assert limited[B0] == 5
    assert 1024 + 7_000 < limited[A0] < 1024 + 7_500
    assert 1024 + 700 < limited[A1] - 100 < 1024 + 800
    assert (limited[A0] + limited[A1] - 100) * 1024 <= 10 * MIB


def test_with_too_many_partitions_for_the_bytes_they_take_turns() -> None:
    partitions = [TopicPartition("a", number) for number in range(100)]
    start, end = dict.fromkeys(partitions, 0), dict.fromkeys(partitions, 10_000)
    waited: dict[TopicPartition, int] = {}
    turns: list[set[TopicPartition]] = []
    for batch in range(10):
        limited = offsets.limit_bytes(start, end, 10 * MIB, lambda _: 1024, waited)
        moved = {partition for partition in partitions if limited[partition] > start[partition]}
        assert all(limited[partition] - start[partition] == 1024 for partition in moved)
        waited |= dict.fromkeys(moved, batch)
        turns.append(moved)
        start = limited

    assert [len(moved) for moved in turns] == [10] * 10
    assert set().union(*turns) == set(partitions)


def test_a_record_larger_than_the_limit_is_read() -> None:
    assert offsets.limit_bytes({A0: 3}, {A0: 9}, 10, lambda _: 1_000, {}) == {A0: 4}


def test_fewer_bytes_than_the_limit_are_read_at_once() -> None:
    assert offsets.limit_bytes({A0: 3}, {A0: 9}, 6_000, lambda _: 1_000, {}) == {A0: 9}
