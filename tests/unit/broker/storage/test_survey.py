"""Sizes and largest timestamps of segments, brought by a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_reads import SurveyTask
from minibroker.broker.storage.segment import Segment
from tests.support.logs import NOW_MS, append

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]


def test_segments_are_told_up_to_the_first_that_reaches_the_time(new_log: NewLog) -> None:
    log = new_log()
    for number in range(3):
        append(log, b"v", timestamp_ms=NOW_MS + number)
        log.roll()
    disk = Disk()
    segments = [
        Segment(disk, log.directory, base_offset, created_ms=0)
        for base_offset in log.segments.base_offsets[:3]
    ]
    task = SurveyTask(REAL_FILES, segments, NOW_MS + 1)
    task()
    assert not any(segment.has_size for segment in segments)
    task.apply()
    assert all(segment.has_size for segment in segments)
    assert [segment.is_surveyed for segment in segments] == [True, True, False]
    assert [segment.max_timestamp for segment in segments[:2]] == [NOW_MS, NOW_MS + 1]
