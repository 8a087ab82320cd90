"""A log as the disk has it: the worker syncs, the loop moves the recovery point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.logs import TOPIC_ID, abandon, append, config, open_manager

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]


def test_a_flush_changes_nothing_until_the_loop_applies_it(new_log: NewLog) -> None:
    """The loop alone changes a log: a worker that did would race with a truncation."""
    log = new_log()
    append(log, b"a", leader_epoch=1)
    before = _durable_state(log)
    task = log.flush_task()
    task()
    assert _durable_state(log) == before
    task.apply()
    assert _durable_state(log) == (1, True, False)


def _durable_state(log: PartitionLog) -> tuple[int, bool, bool]:
    """Everything that a flush moves."""
    has_synced_names = log.names_synced > 0
    return log.recovery_point, has_synced_names, log.has_new_directory


def test_a_roll_leaves_the_recovery_point_to_the_loop(tmp_path: Path) -> None:
    work: list[Callable[[], None]] = []
    applied: list[Callable[[], None]] = []

    def run_then(task: Callable[[], None], then: Callable[[], None]) -> None:
        work.append(task)
        applied.append(then)

    manager = open_manager(str(tmp_path))
    manager.disk.run_then = run_then
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append(log, b"a")
    log.roll()
    work.pop()()
    assert log.recovery_point == 0
    applied.pop()()
    assert log.recovery_point == 1
    abandon(manager)
