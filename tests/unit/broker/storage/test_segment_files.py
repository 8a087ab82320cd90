"""Files of segments that leave a log: names at once, bytes later."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import segment_files
from minibroker.kafka.errors import StorageError
from tests.support.logs import (
    TOPIC_ID,
    NewLog,
    abandon,
    config,
    fill_segments,
    logs_on_faulty_files,
    names_of,
    open_manager,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable


SUFFIXES = (".log", ".index", ".timeindex")


def test_removed_segments_are_renamed_now_and_removed_after_the_delay(new_log: NewLog) -> None:
    log = new_log(file_delete_delay_ms=1234)
    fill_segments(log, 3)
    later: list[tuple[int, Callable[[], None]]] = []
    log.disk.run_after = lambda delay_ms, task: later.append((delay_ms, task))
    log.remove_segments(list(log.segments)[:2])
    assert log.segments.base_offsets == [2, 3]
    assert values_of(log, 2) == [b"2"]
    marked = [f"{base:020d}{suffix}.deleted" for base in (0, 1) for suffix in SUFFIXES]
    # The snapshot at the base offset of a removed segment goes along.
    assert names_of(log, ".deleted") == sorted([*marked, f"{1:020d}.snapshot.deleted"])
    [(delay_ms, remove)] = later
    assert delay_ms == 1234
    remove()
    assert names_of(log, ".deleted") == []
    assert names_of(log, ".log") == [f"{2:020d}.log", f"{3:020d}.log"]


def test_a_start_removes_files_that_an_earlier_run_marked_deleted(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, TOPIC_ID, config())
    fill_segments(log, 2)
    log.disk.run_after = lambda _delay_ms, _task: None
    log.remove_segments([log.segments.first])
    assert names_of(log, ".deleted")
    manager.close()
    again = open_manager(str(tmp_path))
    assert names_of(again.logs["t", 0], ".deleted") == []  # type: ignore[index]
    abandon(again)


def test_the_active_segment_is_never_taken(new_log: NewLog) -> None:
    log = new_log()
    with pytest.raises(AssertionError, match="active"):
        log.remove_segments([log.active_segment])


def test_segments_that_cannot_be_renamed_stay_in_service(tmp_path: Path) -> None:
    """A full disk may have room again: until then nothing of them is missing."""
    for step, files, manager, log in logs_on_faulty_files(tmp_path, 20, 3):
        removed = list(log.segments)[:2]
        files.fail_at = files.call_count + step
        with contextlib.suppress(StorageError):
            log.remove_segments(removed)
        files.fail_at = -1
        offsets = [segment.base_offset for segment in log.segments]
        assert values_of(log, offsets[0]) == [b"%d" % offset for offset in range(offsets[0], 3)]
        log.remove_segments([segment for segment in removed if segment in list(log.segments)])
        assert log.segments.first.base_offset == 2
        abandon(manager)
        files.forget_pins()


def test_a_cleaned_file_that_is_missing_is_named(new_log: NewLog) -> None:
    log = new_log()
    with pytest.raises(FileNotFoundError, match=r"00000\.log\.cleaned is missing"):
        segment_files.cleaned_to_swap(log.disk.files, log.directory, [0])
