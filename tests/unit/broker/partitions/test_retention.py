"""The retention check: armed while something can expire, in steps, the worker reads cold files."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.partitions import housekeeping
from minibroker.broker.partitions.housekeeping import RetentionCheck
from minibroker.broker.timers import Timers
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import TopicPartition
from tests.support.evidence import MARKED
from tests.support.in_process import ManualClock
from tests.support.logs import NOW_MS, TOPIC_ID, abandon, append, open_manager, values_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from minibroker.broker.storage.partition_log import PartitionLog

FIRST_MS = 100
CHECK_MS = 1_000
KEPT_MS = 10_000


class Rig:
    """A check over real logs; what the worker is given waits in `work`."""

    def __init__(self, directory: Path) -> None:
        self.directories = [directory]
        self.clock = ManualClock(NOW_MS)
        self.timers = Timers(self.clock)
        self.dynamic = DynamicConfig(
            BrokerConfig(
                {
                    "log.initial.task.delay.ms": str(FIRST_MS),
                    "log.retention.check.interval.ms": str(CHECK_MS),
                    "log.retention.ms": str(KEPT_MS),
                }
            )
        )
        self.work: list[Callable[[], None]] = []
        self.errors: list[StorageError] = []
        self.open()

    def open(self) -> None:
        self.logs = open_manager(
            *map(str, self.directories),
            clock=self.clock,  # type: ignore[arg-type]
            topic=self.dynamic.topic_default,
        )

        def run_then(task: Callable[[], None], done: Callable[[object], None]) -> None:
            self.work += [task, lambda: done(None)]

        self.work.clear()
        self.logs.disk.of(str(self.directories[0])).run_then = run_then
        self.configure()
        self.check = RetentionCheck(
            logs=self.logs,
            dynamic=self.dynamic,
            clock=self.clock,
            timers=self.timers,
            on_error=self.errors.append,
        )

    def configure(self) -> None:
        for log in self.logs.logs.values():
            self.logs.update_config(log.topic, self.dynamic.topic(log.topic))

    def log(self, name: str = "t", **overrides: str) -> PartitionLog:
        if overrides:
            self.dynamic.set_topic(name, {k.replace("_", "."): v for k, v in overrides.items()})
        return self.logs.create_log(name, 0, TOPIC_ID, self.dynamic.topic(name))

    async def do_work(self) -> None:
        """Run the worker until it has nothing more to do."""
        while self.work:
            self.work.pop(0)()
            await asyncio.sleep(0)
            self.clock.advance(0)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.timers.close()
    abandon(rig.logs)


def fill(log: PartitionLog, count: int = 3) -> None:
    """Fill a log with closed segments of one record and an empty active one."""
    for number in range(count):
        append(log, b"%d" % number)
        log.roll()


async def test_the_check_runs_at_its_interval(rig: Rig) -> None:
    log = rig.log()
    fill(log)
    rig.check.note_change()
    rig.clock.advance(FIRST_MS)
    assert log.log_start_offset == 0
    rig.clock.advance(KEPT_MS - FIRST_MS - CHECK_MS)
    assert log.log_start_offset == 0
    rig.clock.advance(CHECK_MS + 1)
    assert log.log_start_offset == 3
    assert len(log.segments) == 1


async def test_without_anything_to_expire_there_is_no_timer(rig: Rig) -> None:
    rig.log()
    fill(rig.log("kept", retention_ms="-1"))
    rig.check.note_change()
    rig.clock.advance(FIRST_MS)
    assert not rig.check.is_armed
    assert len(rig.timers) == 0


async def test_it_is_repeated_while_something_is_left_and_ends_then(rig: Rig) -> None:
    log = rig.log()
    append(log, b"a")
    rig.check.note_change()
    for _ in range(5):
        rig.clock.advance(CHECK_MS)
        assert rig.check.is_armed
    rig.clock.advance(KEPT_MS)
    rig.clock.advance(CHECK_MS)
    assert values_of(log) == []
    assert log.log_start_offset == 1
    assert not rig.check.is_armed


async def test_a_compacted_log_is_left_to_the_cleaner(rig: Rig) -> None:
    log = rig.log("c")
    fill(log, 1)
    append(rig.log("other"), b"x")
    rig.dynamic.set_topic("c", {"cleanup.policy": "compact,delete"})
    rig.configure()
    rig.check.note_change()
    rig.clock.advance(KEPT_MS * 2)
    assert log.log_start_offset == 0


async def test_more_than_one_step_of_logs_and_of_segments(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "LOGS_A_STEP", 2)
    logs = [rig.log(f"t{number}") for number in range(5)]
    for log in logs:
        fill(log, 20)
    rig.check.note_change()
    rig.clock.advance(KEPT_MS + 1)
    assert {log.log_start_offset for log in logs} == {20}


async def test_cold_files_are_read_by_the_worker(rig: Rig) -> None:
    fill(rig.log())
    rig.log("deleted meanwhile")
    rig.logs.close()
    rig.open()
    log = rig.logs.logs[TopicPartition("t", 0)]
    rig.check.note_change()
    rig.clock.advance(KEPT_MS + 1)
    assert len(rig.work) == 2  # the read, and what follows it on the loop
    assert log.log_start_offset == 0
    assert not any(segment.is_surveyed for segment in log.segments)
    rig.logs.delete("deleted meanwhile", 0, MARKED)
    await rig.do_work()
    assert log.log_start_offset == 3
    assert rig.errors == []


async def test_results_of_the_worker_are_not_used_after_the_end(rig: Rig) -> None:
    fill(rig.log())
    rig.logs.close()
    rig.open()
    rig.check.note_change()
    rig.clock.advance(KEPT_MS + 1)
    rig.check.close()
    await rig.do_work()
    assert rig.logs.logs[TopicPartition("t", 0)].log_start_offset == 0


async def test_a_disk_that_hangs_stops_the_retention_of_its_own_logs_only(
    rig: Rig, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    rig.logs.close()
    rig.directories.append(other)
    rig.open()
    logs = {log.log_directory: log for log in map(rig.log, ("a", "b"))}
    assert len(logs) == 2
    for log in logs.values():
        fill(log)
    rig.logs.close()
    rig.open()
    hanging, well = (
        next(log for log in rig.logs.logs.values() if log.log_directory == path)
        for path in map(str, rig.directories)
    )
    rig.logs.disk.of(str(other)).run_then = lambda task, done: (task(), done(None))
    rig.check.note_change()
    rig.clock.advance(KEPT_MS + 1)
    assert (hanging.log_start_offset, well.log_start_offset) == (0, 3)
    held = len(rig.work)
    append(well, b"later")
    well.roll()
    rig.check.note_change()
    rig.clock.advance(KEPT_MS + CHECK_MS)
    assert well.log_start_offset == 4
    assert len(rig.work) == held, "nothing more is asked of the disk that hangs"
    await rig.do_work()
    assert hanging.log_start_offset == 3


async def test_a_log_that_cannot_be_read_stops_no_other(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        fill(rig.log(name))
    rig.logs.close()
    rig.open()
    bad, good = (rig.logs.logs[TopicPartition(name, 0)] for name in ("a", "b"))
    read = housekeeping.survey

    def fail_once(files: Any, segments: Any, oldest_ms: int) -> Any:
        if segments[0] is bad.segments.first and not rig.errors:
            raise OSError("bad block")
        return read(files, segments, oldest_ms)

    monkeypatch.setattr(housekeeping, "survey", fail_once)
    rig.check.note_change()
    rig.clock.advance(KEPT_MS + 1)
    await rig.do_work()
    assert (bad.log_start_offset, good.log_start_offset) == (0, 3)
    assert len(rig.errors) == 1
    rig.clock.advance(CHECK_MS)
    await rig.do_work()
    assert bad.log_start_offset == 3


async def test_a_change_during_a_check_brings_the_next_one(rig: Rig) -> None:
    rig.log()
    rig.logs.close()
    rig.open()
    rig.check.note_change()
    rig.clock.advance(FIRST_MS)
    rig.check.note_change()
    await rig.do_work()
    assert rig.check.is_armed
    rig.clock.advance(CHECK_MS)
    assert rig.work == []  # an empty segment is known after the first look
    assert not rig.check.is_armed


async def test_a_disk_that_refuses_is_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    log, other = rig.log(), rig.log("other")
    fill(log)
    fill(other)
    error = StorageError("no")

    def refuse(*_: object) -> int:
        raise error

    monkeypatch.setattr(type(log.active_segment), "mark_deleted", refuse)
    monkeypatch.setattr(log.__class__, "remove_segments", refuse)
    rig.check.note_change()
    rig.clock.advance(KEPT_MS + 1)
    assert rig.errors == [error, error]
