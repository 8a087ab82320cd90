"""A log as the disk has it: the worker syncs, the loop moves the recovery point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    NewLog,
    abandon,
    append,
    config,
    flush,
    log_on_faulty_files,
    open_manager,
)
from tests.support.runners import HeldRunner

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.storage.partition_log import PartitionLog


def test_a_flush_changes_nothing_until_the_loop_applies_it(new_log: NewLog) -> None:
    """The loop alone changes a log: a worker that did would race with a truncation."""
    log = new_log()
    append(log, b"a", leader_epoch=1)
    old_state = _durable_state(log)
    task = log.durability.flush_task()
    task()
    assert _durable_state(log) == old_state
    task.apply()
    assert _durable_state(log) == (1, True, False)


def _durable_state(log: PartitionLog) -> tuple[int, bool, bool]:
    """Everything that a flush moves."""
    has_synced_names = log.place.names_synced > 0
    return log.recovery_point, has_synced_names, log.place.has_new_directory


def test_a_roll_leaves_the_recovery_point_to_the_loop(tmp_path: Path) -> None:
    runner = HeldRunner()
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append(log, b"a")
    log.disk.worker = runner
    log.roll()
    for task, _done in runner.work:
        task()
    assert log.recovery_point == 0
    for _task, done in runner.work:
        done(None)
    assert log.recovery_point == 1
    abandon(manager)


def test_index_entries_of_a_clean_stop_survive_a_power_cut(tmp_path: Path) -> None:
    """All records were synced before; the stop adds the largest timestamp to the time index."""
    files, manager, log = log_on_faulty_files(tmp_path)
    for number in range(4):
        append(log, b"x" * 3_000, timestamp_ms=NOW_MS + number)
    flush(log)
    manager.close()
    files.power_cut()
    manager = open_manager(str(tmp_path), files=files)
    assert manager.was_clean
    assert manager.logs[log.name].active_segment.max_timestamp == NOW_MS + 3
    abandon(manager)
    files.forget_pins()


def test_a_log_asks_for_a_sync_once_and_again_after_it(new_log: NewLog) -> None:
    log = new_log()
    syncs: list[bool] = []
    log.on_unsynced = lambda _log, has_grown_much: syncs.append(has_grown_much)
    append(log, b"a")
    append(log, b"b")
    assert syncs == [False]
    assert log.durability.sync_task() is not None
    append(log, b"c")
    assert syncs == [False, False]
    log.roll()
    append(log, b"d")
    assert syncs == [False, False]


def test_there_is_nothing_to_sync_where_nothing_was_appended(new_log: NewLog) -> None:
    log = new_log()
    assert log.durability.sync_task() is None
    append(log, b"a")
    task = log.durability.sync_task()
    assert task is not None
    task()
    assert task.apply() is None
    assert log.durability.sync_task() is None
    append(log, b"b")
    flush(log)
    assert (
        log.durability.sync_task() is not None
    )  # a snapshot is due, though the records are durable
    append(log, b"c")
    log.mark_deleted(f"{log.directory}.x-delete")
    assert log.durability.sync_task() is None


def test_a_snapshot_older_than_the_newest_changes_nothing(new_log: NewLog) -> None:
    """A roll came between the sync and its end."""
    log = new_log()
    append(log, b"a")
    task = log.durability.sync_task()
    append(log, b"b")
    log.roll()
    assert task is not None
    task()
    assert task.apply() is None
    append(log, b"c")
    later = log.durability.sync_task()
    assert later is not None
    later()
    assert later.apply() is None  # the one before it stands at a segment's start
