"""Offsets of the source become those of the target: exactly, and never ahead of the copy."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.verbs.copy.groups import forward, rows_in
from minibroker.pipeline.verbs.copy.offset_map import (
    ENTRIES_MAX,
    FILES_MAX,
    CopiedSpan,
    OffsetMapFiles,
    TranslatedOffsets,
    thinned,
)

if TYPE_CHECKING:
    from pathlib import Path

PARTITION = TopicPartition("orders", 1)


def refuses(start: int, end: int) -> int:
    """Stand for a count that is not needed."""
    raise AssertionError((start, end))


def offsets_from(*entries: CopiedSpan) -> TranslatedOffsets:
    offsets = TranslatedOffsets()
    for entry in entries:
        offsets.add(PARTITION, entry)
    return offsets


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(0, 7), (10, 7), (11, 8), (19, 16), (20, 18), (25, 23), (30, 28), (99, 28)],
)
def test_without_gaps_it_is_arithmetic(offset: int, expected: int) -> None:
    offsets = offsets_from(CopiedSpan(10, 20, 10, 7, 16), CopiedSpan(20, 30, 10, 18, 27))
    assert offsets.translated(PARTITION, offset, refuses) == expected


def test_with_gaps_the_records_before_are_counted() -> None:
    offsets = offsets_from(CopiedSpan(10, 20, 6, 100, 105))
    questions = []

    def count(start: int, end: int) -> int:
        questions.append((start, end))
        return 4

    assert offsets.translated(PARTITION, 15, count) == 104
    assert questions == [(10, 15)]
    assert offsets.translated(PARTITION, 15, lambda start, end: 99) == 106, (
        "compacted since the copy"
    )


def test_offsets_among_those_of_others_are_the_first_one() -> None:
    """Somebody else wrote between: some records are read again, none is left out."""
    offsets = offsets_from(CopiedSpan(10, 20, 10, 100, 130))
    assert offsets.translated(PARTITION, 15, refuses) == 100
    assert offsets.translated(PARTITION, 20, refuses) == 131


def test_nothing_copied_is_no_offset() -> None:
    assert TranslatedOffsets().translated(PARTITION, 3, refuses) is None
    assert offsets_from(CopiedSpan(0, 5, 0, -1, -1)).translated(PARTITION, 3, refuses) is None
    after_a_gap = offsets_from(CopiedSpan(0, 5, 0, -1, -1), CopiedSpan(5, 9, 4, 0, 3))
    assert after_a_gap.translated(PARTITION, 3, refuses) == 0


def test_a_repeated_batch_replaces_its_entry() -> None:
    offsets = offsets_from(CopiedSpan(0, 5, 5, 0, 4), CopiedSpan(0, 5, 5, 0, 4))
    assert offsets.rows() == [["orders", 1, 0, 5, 5, 0, 4]]


def test_joined_entries_are_never_ahead() -> None:
    dice = random.Random(3)
    entries, target = [], 0
    for number in range(ENTRIES_MAX * 2):
        entries.append(CopiedSpan(number * 10, number * 10 + 10, 10, target, target + 9))
        target += 10 + dice.randint(1, 3)
    whole = TranslatedOffsets()
    for entry in entries:
        whole.add(PARTITION, entry)
    assert ENTRIES_MAX // 2 < len(whole.rows()) <= ENTRIES_MAX
    for offset in range(0, ENTRIES_MAX * 20, 7):
        exact = entries[offset // 10].first + offset % 10
        target_offset = whole.translated(PARTITION, offset, refuses)
        assert target_offset is not None
        assert target_offset <= exact
    assert whole.translated(PARTITION, ENTRIES_MAX * 20 - 1, refuses) == entries[-1].last
    assert thinned(entries[:3]) == entries[:3]


def test_the_map_is_in_files_and_they_stay_few(tmp_path: Path) -> None:
    files, directory = LocalFiles(), str(tmp_path)
    map_files = OffsetMapFiles(files, directory)
    for number in range(FILES_MAX * 2):
        row = ("orders", 1, number * 10, number * 10 + 10, 10, number * 11, number * 11 + 9)
        map_files.add(number, [row, ("orders", 2, 0, 0, 0, -1, -1)])
        map_files.add(number, [row])
    again = OffsetMapFiles(files, directory)
    assert again.map.rows() == map_files.map.rows()
    assert len(again.map.rows()) == FILES_MAX * 2
    assert len(list(tmp_path.rglob("*.json"))) <= FILES_MAX
    assert again.map.translated(PARTITION, 15, refuses) == 16


def test_a_damaged_file_of_the_map_is_named(tmp_path: Path) -> None:
    OffsetMapFiles(LocalFiles(), str(tmp_path)).add(0, [["t", 0, 0, 5, 5, 0, 4]])
    (path,) = tmp_path.rglob("*.json")
    for text in ('[["t", 0, 0', "[7]", '[["t", 0, 0]]', '[["t", 0, "a", 5, 5, 0, 4]]'):
        path.write_text(text)
        with pytest.raises(PipelineError, match=r"is damaged .*: begin anew in another directory"):
            OffsetMapFiles(LocalFiles(), str(tmp_path))


def test_only_moves_forward_are_made() -> None:
    first, second, third = (TopicPartition("t", number) for number in range(3))
    moves = {first: 5, second: 7, third: 9, TopicPartition("u", 0): 0}
    committed = {first: 6, second: 7, third: 8}
    assert forward(moves, committed) == {third: 9, TopicPartition("u", 0): 0}


def test_rows_of_batches_are_counted() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1, 2]})
    assert rows_in([batch, batch]) == 4
    assert rows_in([]) == 0
