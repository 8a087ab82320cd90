"""Compacted segments in the place of old ones: served at once, whole after a crash at any step."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import log_reads
from minibroker.broker.storage.compaction.cleaning import replace_segments
from minibroker.kafka.errors import StorageError
from tests.support.faulty_files import PowerCut
from tests.support.logs import (
    abandon,
    fill_segments,
    flush,
    logs_on_faulty_files,
    names_of,
    open_manager,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]


def _clean(log: PartitionLog, bases: dict[int, list[int]]) -> None:
    """Write a cleaner's output: at each base offset the bytes of the segments named beside it."""
    directory = Path(log.directory)
    for base, sources in bases.items():
        content = b"".join((directory / f"{source:020d}.log").read_bytes() for source in sources)
        (directory / f"{base:020d}.log.cleaned").write_bytes(content)
        for suffix in (".index", ".timeindex"):
            (directory / f"{base:020d}{suffix}.cleaned").write_bytes(b"")


def test_replaced_segments_are_served_from_the_new_files(new_log: NewLog) -> None:
    log = new_log()
    fill_segments(log, 4)
    later: list[Callable[[], None]] = []
    log.disk.run_after = lambda _delay_ms, task: later.append(task)
    old = list(log.segments)[:4]
    _clean(log, {0: [0], 2: [2, 3]})
    held = log_reads.read(log, 1, 1000, end_offset=4, min_one_batch=True).records
    assert replace_segments(log, [0, 2], old)
    assert log.segments.base_offsets == [0, 2, 4]
    assert values_of(log) == [b"0", b"2", b"3"]
    assert len(bytes(held)) > 0
    assert f"{1:020d}.snapshot.deleted" in names_of(log, ".deleted")
    assert f"{2:020d}.snapshot" in names_of(log, ".snapshot")
    for task in later:
        task()
    assert names_of(log, ".deleted") == []
    assert names_of(log, ".log") == [f"{base:020d}.log" for base in (0, 2, 4)]


def test_nothing_is_replaced_when_a_segment_is_gone(new_log: NewLog) -> None:
    log = new_log()
    fill_segments(log, 3)
    old = list(log.segments)[:2]
    _clean(log, {0: [0, 1]})
    log.remove_segments(old[:1])
    assert not replace_segments(log, [0], old)
    assert names_of(log, ".cleaned") == []
    assert values_of(log, 1) == [b"1", b"2"]


@pytest.mark.parametrize("loses_power", [False, True])
def test_a_crash_at_any_step_of_a_replacement_leaves_the_old_or_the_new(
    tmp_path: Path, *, loses_power: bool
) -> None:
    """Every step is tried, until the replacement has no further one."""
    seen = set()
    for step, files, manager, log in logs_on_faulty_files(tmp_path, 200, 4):
        root = log.log_directory
        _clean(log, {0: [0], 2: [2, 3]})
        flush(log)
        files.sync_directory(log.directory)
        for path in Path(log.directory).glob("*.cleaned"):
            files.sync_path(str(path))
        files.cut_at = files.call_count + step
        finished = False
        try:
            finished = replace_segments(log, [0, 2], list(log.segments)[:4])
        except PowerCut:
            if loses_power:
                files.power_cut()
        files.cut_at = -1
        abandon(manager)
        again = open_manager(root, files=files)
        found = again.logs[log.name]
        values = tuple(values_of(found))
        assert values in {(b"0", b"1", b"2", b"3"), (b"0", b"2", b"3")}
        assert not names_of(found, ".cleaned", ".swap", ".deleted")
        seen.add(values)
        abandon(again)
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
    for step, files, manager, log in logs_on_faulty_files(tmp_path, 200, 4):
        root = log.log_directory
        _clean(log, {0: [0], 2: [2, 3]})
        refusal = None
        files.fail_at = files.call_count + step
        try:
            replace_segments(log, [0, 2], list(log.segments)[:4])
        except StorageError as error:
            refusal = error
        files.fail_at = -1
        if refusal is not None and not refusal.is_lasting:
            assert values_of(log) == [b"0", b"1", b"2", b"3"]
            assert not names_of(log, ".cleaned", ".swap", ".deleted")
        abandon(manager)
        again = open_manager(root, files=files)
        values = values_of(again.logs[log.name])
        assert values in ([b"0", b"1", b"2", b"3"], [b"0", b"2", b"3"])
        abandon(again)
        files.forget_pins()
        outcomes.append(None if refusal is None else refusal.is_lasting)
        if refusal is None:
            break
    assert outcomes[0] is False
    assert outcomes[-2:] == [True, None]
