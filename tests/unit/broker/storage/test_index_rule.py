"""The batches with an entry in the indexes of a segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.indexes import IndexRule, OffsetIndex, TimeIndex

if TYPE_CHECKING:
    from pathlib import Path


def indexes(tmp_path: Path) -> tuple[OffsetIndex, TimeIndex]:
    disk = Disk()
    return OffsetIndex(disk, f"{tmp_path}/index", 100), TimeIndex(disk, f"{tmp_path}/times", 100)


def test_an_entry_is_due_when_more_than_the_interval_came_since_the_last_one() -> None:
    rule = IndexRule(100)
    assert [rule.note(offset, 0, 50, 100) for offset in range(100, 109)] == [
        *(False, False, False, True),  # 150 bytes came before the fourth batch
        *(False, False, True),  # and 150 again from that one on
        *(False, False),
    ]


def test_an_entry_has_the_largest_timestamp_so_far(tmp_path: Path) -> None:
    offsets, times = indexes(tmp_path)
    rule = IndexRule(100)
    position = 0
    for offset, timestamp in ((100, 7), (101, 9), (102, 8), (103, 9)):
        if rule.note(offset, timestamp, 50, 0):
            rule.add_entry(offsets, times, offset, position)
        position += 50
    assert [offsets.entry(index) for index in range(offsets.entry_count)] == [
        (101, 50),
        (102, 100),
        (103, 150),
    ]
    assert [times.entry(index) for index in range(times.entry_count)] == [(9, 101)]


def test_the_end_adds_the_largest_timestamp_where_no_entry_has_it(tmp_path: Path) -> None:
    _, times = indexes(tmp_path)
    rule = IndexRule(100)
    rule.finish(times)
    assert times.entry_count == 0
    rule.note(100, 7, 50, 4096)
    rule.finish(times)
    rule.finish(times)
    assert [times.entry(index) for index in range(times.entry_count)] == [(7, 100)]
