"""Both indexes of a segment: they are filled, written and cut together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.indexes import SegmentIndexes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def indexes(tmp_path: Path) -> SegmentIndexes:
    """Three entries in memory: offsets 10, 20, 30 at positions of ten times as much."""
    made = open_indexes(tmp_path)
    for offset in (10, 20, 30):
        made.offset.append(offset, offset * 10)
        made.time.append(1000 + offset, offset)
    return made


def open_indexes(directory: Path) -> SegmentIndexes:
    return SegmentIndexes(Disk(), str(directory / "0.index"), str(directory / "0.timeindex"), 0)


def test_entries_are_in_memory_until_they_are_written(
    indexes: SegmentIndexes, tmp_path: Path
) -> None:
    assert indexes.unwritten_count == 3
    assert list(tmp_path.iterdir()) == []
    indexes.write()
    assert indexes.unwritten_count == 0
    found = open_indexes(tmp_path)
    assert found.offset.last_entry() == (30, 300)
    assert found.time.last_entry() == (1030, 30)


def test_a_release_says_whether_it_wrote(indexes: SegmentIndexes) -> None:
    assert indexes.release()
    assert not indexes.release()


def test_a_cut_takes_the_entries_of_both(indexes: SegmentIndexes) -> None:
    indexes.write()
    indexes.truncate_to(20)
    assert (indexes.offset.entry_count, indexes.time.entry_count) == (1, 1)
    indexes.clear()
    assert (indexes.offset.entry_count, indexes.time.entry_count) == (0, 0)


def test_indexes_can_be_right_if_both_files_exist_and_fit_the_log(
    indexes: SegmentIndexes, tmp_path: Path
) -> None:
    indexes.write()
    assert open_indexes(tmp_path).can_be_right(301)
    assert not open_indexes(tmp_path).can_be_right(300)
    (tmp_path / "0.timeindex").unlink()
    assert not open_indexes(tmp_path).can_be_right(301)


def test_the_room_is_that_of_the_index_that_is_full_first(indexes: SegmentIndexes) -> None:
    assert indexes.room(120) == 120 // 12 - 1 - 3
