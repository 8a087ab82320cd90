"""The segments to read, and their ranges: names, checkpoints, interrupted compaction."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import read_offsets
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.segments import layout as segments_layout
from minibroker.pipeline.kafka.segments.layout import find_partitions, plan_tasks
from tests.support.batches import batch

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.kafka.ids import TopicPartition


def segment(root: Path, partition: str, base_offset: int, count: int = 1, suffix: str = "") -> Path:
    directory = root / partition
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / (names.segment_file(base_offset, names.LOG) + suffix)
    path.write_bytes(batch(*[b"v"] * count, base_offset=base_offset))
    return path


def plan(*paths: Path) -> list[tuple[str, int, int, int, bool]]:
    tasks = plan_tasks(find_partitions([str(path) for path in paths]))
    return [
        (part.topic, part.partition, part.segment.base_offset, part.start_offset, part.is_newest)
        for task in tasks
        for part in task
    ]


def test_segments_are_read_in_order(tmp_path: Path) -> None:
    for partition, base_offset in [("b-1", 0), ("a-b-10", 5), ("a-b-2", 7), ("a-b-2", 0)]:
        segment(tmp_path, partition, base_offset)
    assert plan(tmp_path) == [
        ("a-b", 2, 0, 0, False),
        ("a-b", 2, 7, 0, True),
        ("a-b", 10, 5, 5, True),
        ("b", 1, 0, 0, True),
    ]
    assert plan(tmp_path / "b-1") == [("b", 1, 0, 0, True)]


def test_a_partition_without_a_record_is_one(tmp_path: Path) -> None:
    """A partition is like this from its creation until its first record."""
    segment(tmp_path, "a-0", 0)
    (tmp_path / "a-1").mkdir()
    (tmp_path / "a-1" / names.PARTITION_METADATA).touch()
    for path, numbers in ((tmp_path, [0, 1]), (tmp_path / "a-1", [1])):
        assert [partition.partition for partition in find_partitions([str(path)])] == numbers
    assert plan(tmp_path) == [("a", 0, 0, 0, True)]


def test_other_directories_and_moving_partitions_are_left_out(tmp_path: Path) -> None:
    segment(tmp_path, "a-0", 0)
    segment(tmp_path, f"a-1.{'0' * 32}-delete", 0)
    segment(tmp_path, f"a-2.{'0' * 32}-future", 0)
    segment(tmp_path, "no_partition", 0)
    segment(tmp_path, "a-0", 3, suffix=names.DELETED)
    segment(tmp_path, "a-0", 4, suffix=names.CLEANED)
    (tmp_path / "empty-0").mkdir()
    assert plan(tmp_path) == [("a", 0, 0, 0, True)]


def test_the_log_start_offset_is_taken_from_the_checkpoint(tmp_path: Path) -> None:
    for base_offset in (0, 10, 20):
        segment(tmp_path, "a-0", base_offset, 10)
    (tmp_path / names.LOG_START_OFFSETS).write_text("0\n1\na 0 13\n")
    assert plan(tmp_path) == [("a", 0, 10, 13, False), ("a", 0, 20, 13, True)]
    assert plan(tmp_path / "a-0") == plan(tmp_path)


def test_a_checkpoint_that_is_damaged_is_passed_by(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    segment(tmp_path, "a-0", 7)
    (tmp_path / names.LOG_START_OFFSETS).write_text("0\n5\na 0 13\n")
    assert plan(tmp_path) == [("a", 0, 7, 7, True)]
    assert "5 announced" in caplog.text


def test_a_finished_swap_takes_the_place_of_what_it_covers(tmp_path: Path) -> None:
    first_segment = segment(tmp_path, "a-0", 0, 5)
    covered = segment(tmp_path, "a-0", 5, 5)
    newest = segment(tmp_path, "a-0", 12, 5)
    swap = segment(tmp_path, "a-0", 5, 7, suffix=names.SWAP)
    [partition] = find_partitions([str(tmp_path)])
    assert [partition_part.path for partition_part in partition.segments] == [
        str(first_segment),
        str(swap),
        str(newest),
    ]

    segment(tmp_path, "a-0", 5, 7, suffix=names.CLEANED)  # not finished, then
    [partition] = find_partitions([str(tmp_path)])
    assert [partition_part.path for partition_part in partition.segments] == [
        str(first_segment),
        str(covered),
        str(newest),
    ]


def test_several_directories_of_one_broker(tmp_path: Path) -> None:
    segment(tmp_path / "one", "a-0", 0)
    segment(tmp_path / "two", "a-1", 0)
    assert [row[:2] for row in plan(tmp_path / "one", tmp_path / "two")] == [("a", 0), ("a", 1)]
    segment(tmp_path / "two", "a-0", 0)
    with pytest.raises(PipelineError, match=r"a-0 stands in .*one.* and in .*two"):
        plan(tmp_path / "one", tmp_path / "two")


def test_paths_that_hold_nothing_to_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="nowhere is no directory"):
        plan(tmp_path / "nowhere")
    with pytest.raises(PipelineError, match="holds no partitions"):
        plan(tmp_path)
    segment(tmp_path, "somewhere", 0)
    with pytest.raises(PipelineError, match="not named as a partition is"):
        plan(tmp_path / "somewhere")


def sized(root: Path, partition: str, sizes: list[int], *, snapshot: bool = True) -> None:
    """Make segments of these sizes, without content: the file system keeps no bytes of them."""
    for number, size in enumerate(sizes):
        os.truncate(segment(root, partition, number * 10), size)
    if snapshot:
        (root / partition / names.segment_file(0, names.SNAPSHOT)).touch()


def tasks_of(root: Path, *, whole: bool = False) -> list[list[tuple[int, int, int, int]]]:
    return [
        [(part.partition, part.segment.base_offset, part.begin, part.end) for part in task]
        for task in plan_tasks(find_partitions([str(root)]), whole=whole)
    ]


MIB = 1 << 20


def test_a_large_segment_is_several_tasks(tmp_path: Path) -> None:
    sized(tmp_path, "a-0", [192 * MIB])
    assert tasks_of(tmp_path) == [
        [(0, 0, 0, 64 * MIB)],
        [(0, 0, 64 * MIB, 128 * MIB)],
        [(0, 0, 128 * MIB, 192 * MIB)],
    ]


def test_whole_partitions_are_in_one_task_each_and_small_ones_share_one(tmp_path: Path) -> None:
    sized(tmp_path, "a-0", [192 * MIB, 1 * MIB])
    for number in (1, 2):
        sized(tmp_path, f"a-{number}", [20 * MIB])
    assert tasks_of(tmp_path, whole=True) == [
        [(0, 0, 0, 192 * MIB), (0, 10, 0, 1 * MIB)],
        [(1, 0, 0, 20 * MIB), (2, 0, 0, 20 * MIB)],
    ]


def test_small_segments_share_a_task_and_no_sliver_is_cut(tmp_path: Path) -> None:
    for number in range(100):
        sized(tmp_path, f"a-{number}", [2 * MIB])
    tasks = tasks_of(tmp_path)
    assert [len(task) for task in tasks] == [25, 25, 25, 25]
    assert all(end - begin == 2 * MIB for task in tasks for _, _, begin, end in task)


def test_the_number_of_tasks_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments_layout, "TASKS_MAX", 4)
    sized(tmp_path, "a-0", [1 << 40, 1 << 40])
    assert [sum(end - begin for *_, begin, end in task) for task in tasks_of(tmp_path)] == [
        1 << 39
    ] * 4


def test_a_partition_without_a_snapshot_is_one_task(tmp_path: Path) -> None:
    sized(tmp_path, "a-0", [64 * MIB, 64 * MIB], snapshot=False)
    assert tasks_of(tmp_path) == [[(0, 0, 0, 64 * MIB), (0, 10, 0, 64 * MIB)]]


def test_a_checkpoint_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets_in_parts: list[str] = []

    def note(files: object, path: str) -> dict[TopicPartition, int]:
        offsets_in_parts.append(path)
        return read_offsets(REAL_FILES, path)

    monkeypatch.setattr(segments_layout, "read_offsets", note)
    for number in range(50):
        segment(tmp_path, f"a-{number}", 0)
    assert len(plan(tmp_path)) == 50
    assert offsets_in_parts == [str(tmp_path / names.LOG_START_OFFSETS)]
