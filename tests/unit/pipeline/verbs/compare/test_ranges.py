"""Ranges of two topics for one task: the same parts of each partition."""

from __future__ import annotations

from minibroker.pipeline.offsets import OffsetRange, group_ranges
from minibroker.pipeline.verbs.compare.ranges import TaskRanges, paired


def span(partition: int, start: int, end: int, topic: str = "a") -> OffsetRange:
    return OffsetRange(topic, partition, start, end)


def test_a_partition_is_cut_at_the_same_distance_from_its_first_offset() -> None:
    a, b = [span(0, 100, 200), span(1, 0, 0)], [span(0, 5, 95, "b"), span(2, 0, 20, "b")]
    tasks = paired(a, b, lambda ranges: group_ranges(ranges, groups_max=3))
    assert tasks == [
        TaskRanges([span(0, 100, 140)], [span(0, 5, 45, "b")]),
        TaskRanges([span(0, 140, 180)], [span(0, 45, 85, "b")]),
        TaskRanges([span(0, 180, 200)], [span(0, 85, 95, "b"), span(2, 0, 20, "b")]),
    ]


def test_one_topic_has_tasks_of_its_own() -> None:
    tasks = paired([], [span(3, 7, 9)], lambda ranges: group_ranges(ranges, groups_max=2))
    assert sorted(tasks) == [TaskRanges([], [span(3, 7, 8)]), TaskRanges([], [span(3, 8, 9)])]
    assert paired([], [], lambda ranges: group_ranges(ranges, groups_max=2)) == []
