"""Files of segments that leave a log or are replaced: names at once, bytes later, crash-safe."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.errors import StorageError
from minibroker.storage import log_reads, segment_files
from tests.support.faulty_files import FaultyFiles, PowerCut
from tests.support.logs import TOPIC_ID, abandon, append, config, open_manager, values_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]

SUFFIXES = (".log", ".index", ".timeindex")


def _fill(log: PartitionLog, count: int) -> None:
    for number in range(count):
        append(log, b"%d" % number)
        log.roll()


def _clean(log: PartitionLog, bases: dict[int, list[int]]) -> None:
    """Write a cleaner's output: at each base offset the bytes of the segments named beside it."""
    directory = Path(log.directory)
    for base, sources in bases.items():
        content = b"".join((directory / f"{source:020d}.log").read_bytes() for source in sources)
        (directory / f"{base:020d}.log.cleaned").write_bytes(content)
        for suffix in SUFFIXES[1:]:
            (directory / f"{base:020d}{suffix}.cleaned").write_bytes(b"")


def _names(log: PartitionLog, ending: str) -> list[str]:
    return sorted(path.name for path in Path(log.directory).glob(f"*{ending}"))


def test_removed_segments_are_renamed_now_and_removed_after_the_delay(new_log: NewLog) -> None:
    log = new_log(file_delete_delay_ms=1234)
    _fill(log, 3)
    later: list[tuple[int, Callable[[], None]]] = []
    log.disk.run_after = lambda delay_ms, task: later.append((delay_ms, task))
    log.remove_segments(list(log.segments)[:2])
    assert log.segments.base_offsets == [2, 3]
    assert values_of(log, 2) == [b"2"]
    marked = [f"{base:020d}{suffix}.deleted" for base in (0, 1) for suffix in SUFFIXES]
    # The snapshot at the base offset of a removed segment goes along.
    assert _names(log, ".deleted") == sorted([*marked, f"{1:020d}.snapshot.deleted"])
    [(delay_ms, remove)] = later
    assert delay_ms == 1234
    remove()
    assert _names(log, ".deleted") == []
    assert _names(log, ".log") == [f"{2:020d}.log", f"{3:020d}.log"]


def test_a_start_removes_files_that_an_earlier_run_marked_deleted(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, TOPIC_ID, config())
    _fill(log, 2)
    log.disk.run_after = lambda _delay_ms, _task: None
    log.remove_segments([log.segments.first])
    assert _names(log, ".deleted")
    manager.close()
    again = open_manager(str(tmp_path))
    assert _names(again.logs["t", 0], ".deleted") == []  # type: ignore[index]
    abandon(again)


def test_replaced_segments_are_served_from_the_new_files(new_log: NewLog) -> None:
    log = new_log()
    _fill(log, 4)
    later: list[Callable[[], None]] = []
    log.disk.run_after = lambda _delay_ms, task: later.append(task)
    old = list(log.segments)[:4]
    _clean(log, {0: [0], 2: [2, 3]})
    held = log_reads.read(log, 1, 1000, end_offset=4, min_one_batch=True).records
    assert log.replace_segments([0, 2], old)
    assert log.segments.base_offsets == [0, 2, 4]
    assert values_of(log) == [b"0", b"2", b"3"]
    assert len(bytes(held)) > 0
    assert f"{1:020d}.snapshot.deleted" in _names(log, ".deleted")
    assert f"{2:020d}.snapshot" in _names(log, ".snapshot")
    for task in later:
        task()
    assert _names(log, ".deleted") == []
    assert _names(log, ".log") == [f"{base:020d}.log" for base in (0, 2, 4)]


def test_nothing_is_replaced_when_a_segment_is_gone(new_log: NewLog) -> None:
    log = new_log()
    _fill(log, 3)
    old = list(log.segments)[:2]
    _clean(log, {0: [0, 1]})
    log.remove_segments(old[:1])
    assert not log.replace_segments([0], old)
    assert _names(log, ".cleaned") == []
    assert values_of(log, 1) == [b"1", b"2"]


def test_the_active_segment_is_never_taken(new_log: NewLog) -> None:
    log = new_log()
    with pytest.raises(AssertionError, match="active"):
        log.remove_segments([log.active_segment])


@pytest.mark.parametrize("loses_power", [False, True])
def test_a_crash_at_any_step_of_a_replacement_leaves_the_old_or_the_new(
    tmp_path: Path, *, loses_power: bool
) -> None:
    """Every step is tried, until the replacement has no further one."""
    seen = set()
    for step in range(1, 200):
        root = tmp_path / str(step)
        root.mkdir()
        files = FaultyFiles(str(root))
        manager = open_manager(str(root), files=files)
        log = manager.create_log("t", 0, TOPIC_ID, config())
        _fill(log, 4)
        _clean(log, {0: [0], 2: [2, 3]})
        log.flush()
        files.sync_directory(log.directory)
        for path in Path(log.directory).glob("*.cleaned"):
            files.sync_path(str(path))
        files.cut_at = files.call_count + step
        finished = False
        try:
            finished = log.replace_segments([0, 2], list(log.segments)[:4])
        except PowerCut:
            if loses_power:
                files.power_cut()
        files.cut_at = -1
        abandon(manager)
        manager = open_manager(str(root), files=files)
        log = manager.logs["t", 0]  # type: ignore[index]
        values = tuple(values_of(log))
        assert values in {(b"0", b"1", b"2", b"3"), (b"0", b"2", b"3")}
        assert not _names(log, ".cleaned") + _names(log, ".swap") + _names(log, ".deleted")
        seen.add(values)
        abandon(manager)
        files.forget_pins()
        shutil.rmtree(root)
        if finished:
            break
    else:
        pytest.fail("200 steps and no end")
    assert len(seen) == 2


def test_a_replacement_without_room_is_undone_or_ends_the_directory(tmp_path: Path) -> None:
    """Names that were changed half-way are no log that could be served on."""
    outcomes = []
    for step in range(1, 200):
        root = tmp_path / str(step)
        root.mkdir()
        files = FaultyFiles(str(root))
        manager = open_manager(str(root), files=files)
        log = manager.create_log("t", 0, TOPIC_ID, config())
        _fill(log, 4)
        _clean(log, {0: [0], 2: [2, 3]})
        refusal = None
        files.fail_at = files.call_count + step
        try:
            log.replace_segments([0, 2], list(log.segments)[:4])
        except StorageError as error:
            refusal = error
        files.fail_at = -1
        if refusal is not None and not refusal.is_lasting:
            assert values_of(log) == [b"0", b"1", b"2", b"3"]
            assert not _names(log, ".cleaned") + _names(log, ".swap") + _names(log, ".deleted")
        abandon(manager)
        manager = open_manager(str(root), files=files)
        values = values_of(manager.logs[log.name])
        assert values in ([b"0", b"1", b"2", b"3"], [b"0", b"2", b"3"])
        abandon(manager)
        files.forget_pins()
        outcomes.append(None if refusal is None else refusal.is_lasting)
        if refusal is None:
            break
    assert outcomes[0] is False
    assert outcomes[-2:] == [True, None]


def test_segments_that_cannot_be_renamed_stay_in_service(tmp_path: Path) -> None:
    """A full disk may have room again: until then nothing of them is missing."""
    for step in range(1, 20):
        root = tmp_path / str(step)
        root.mkdir()
        files = FaultyFiles(str(root))
        manager = open_manager(str(root), files=files)
        log = manager.create_log("t", 0, TOPIC_ID, config())
        _fill(log, 3)
        gone = list(log.segments)[:2]
        files.fail_at = files.call_count + step
        with contextlib.suppress(StorageError):
            log.remove_segments(gone)
        files.fail_at = -1
        left = [segment.base_offset for segment in log.segments]
        assert values_of(log, left[0]) == [b"%d" % offset for offset in range(left[0], 3)]
        log.remove_segments([segment for segment in gone if segment in list(log.segments)])
        assert log.segments.first.base_offset == 2
        abandon(manager)
        files.forget_pins()


def test_a_cleaned_file_that_is_missing_is_named(new_log: NewLog) -> None:
    log = new_log()
    with pytest.raises(FileNotFoundError, match=r"00000\.log\.cleaned is missing"):
        segment_files.cleaned_to_swap(log.disk.files, log.directory, [0])
