"""Housekeeping: armed by an append, idle without one, checkpoints on the worker."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.partitions import housekeeping
from minibroker.broker.partitions.housekeeping import (
    CompactionCheck,
    FlushSchedule,
    Housekeeping,
    LogCheck,
    RetentionCheck,
    SyncSchedule,
)
from minibroker.broker.storage import durability, log_reads
from minibroker.broker.timers import Timers
from minibroker.broker.worker import Caller
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import TopicPartition
from tests.support.compaction import put
from tests.support.evidence import MARKED
from tests.support.faulty_files import FaultyFiles
from tests.support.in_process import ManualClock
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    abandon,
    append,
    config,
    fill_segments,
    open_manager,
    values_of,
)
from tests.support.runners import HeldRunner, workers_of
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from minibroker.broker.storage.partition_log import PartitionLog
    from minibroker.kafka.errors import MinibrokerError

    Done = Callable[[MinibrokerError | OSError | None], None]
    from collections.abc import Iterator


@pytest.mark.parametrize("kind", [CompactionCheck, FlushSchedule, RetentionCheck])
def test_a_new_check_arms_nothing(kind: type[LogCheck]) -> None:
    """Timers are asked for by `note_change` only: an idle broker has none."""
    part: Any = SimpleNamespace()
    check = kind(logs=part, dynamic=part, clock=part, timers=part, on_error=part)
    assert (check._timer, check._remaining_logs, check._has_checked) == (None, None, False)
    assert not check._is_needed_again


FIRST_MS = 100
CHECK_MS = 1_000
KEPT_MS = 10_000


class ReportingRunner(Caller):
    """Keeps what is reported to the loop, and what the loop then calls, in a list of the test."""

    def __init__(self, work: list[Callable[[], None]]) -> None:
        self._work = work

    def run_reported(self, task: Callable[[], None], done: Done) -> None:
        self._work += [task, lambda: done(None)]


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
        self.work.clear()
        self.logs.disk.of(str(self.directories[0])).worker = ReportingRunner(self.work)
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
            config = self.dynamic.topic(log.topic)
            log.update_config(config, self.logs.rules_of(config))

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


async def test_the_check_runs_at_its_interval(rig: Rig) -> None:
    log = rig.log()
    fill_segments(log)
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
    fill_segments(rig.log("kept", retention_ms="-1"))
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
    fill_segments(log, 1)
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
        fill_segments(log, 20)
    rig.check.note_change()
    rig.clock.advance(KEPT_MS + 1)
    assert {log.log_start_offset for log in logs} == {20}


async def test_cold_files_are_read_by_the_worker(rig: Rig) -> None:
    fill_segments(rig.log())
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
    fill_segments(rig.log())
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
        fill_segments(log)
    rig.logs.close()
    rig.open()
    hanging, well = (
        next(log for log in rig.logs.logs.values() if log.log_directory == path)
        for path in map(str, rig.directories)
    )
    rig.logs.disk.of(str(other)).worker = Caller()
    rig.check.note_change()
    rig.clock.advance(KEPT_MS + 1)
    assert (hanging.log_start_offset, well.log_start_offset) == (0, 3)
    work_count = len(rig.work)
    append(well, b"later")
    well.roll()
    rig.check.note_change()
    rig.clock.advance(KEPT_MS + CHECK_MS)
    assert well.log_start_offset == 4
    assert len(rig.work) == work_count, "nothing more is asked of the disk that hangs"
    await rig.do_work()
    assert hanging.log_start_offset == 3


@pytest.mark.pure("replaces log_reads.survey")
async def test_a_log_that_cannot_be_read_stops_no_other(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        fill_segments(rig.log(name))
    rig.logs.close()
    rig.open()
    bad, good = (rig.logs.logs[TopicPartition(name, 0)] for name in ("a", "b"))
    survey = log_reads.survey

    def fail_once(files: Any, segments: Any, oldest_ms: int) -> Any:
        if segments[0] is bad.segments.first and not rig.errors:
            raise OSError("bad block")
        return survey(files, segments, oldest_ms)

    monkeypatch.setattr(log_reads, "survey", fail_once)
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
    fill_segments(log)
    fill_segments(other)
    error = StorageError("no")

    def refuse(*_: object) -> int:
        raise error

    monkeypatch.setattr(type(log.active_segment), "mark_deleted", refuse)
    monkeypatch.setattr(log.__class__, "remove_segments", refuse)
    rig.check.note_change()
    rig.clock.advance(KEPT_MS + 1)
    assert rig.errors == [error, error]


WAIT_S = 180
COMPACTION_NOW_MS = 1_700_000_000_000


class CompactionRig:
    """A check over real logs, with a clock that the test moves."""

    def __init__(self, path: Path, settings: dict[str, str]) -> None:
        self.clock = ManualClock(COMPACTION_NOW_MS)
        self.timers = Timers(self.clock)
        self.manager = open_manager(str(path), clock=self.clock)  # type: ignore[arg-type]
        self.errors: list[object] = []
        self.check = CompactionCheck(
            logs=self.manager,
            dynamic=DynamicConfig(BrokerConfig(settings)),
            clock=self.clock,
            timers=self.timers,
            on_error=self.errors.append,
        )

    def log(self, topic: str = "t", **overrides: object) -> PartitionLog:
        return self.manager.create_log(topic, 0, TOPIC_ID, config(**overrides))

    async def round(self) -> None:
        """Wait for the end of the round that runs."""
        async with asyncio.timeout(WAIT_S):
            # The loop has to turn: the thread asks it for the swap.
            while self.check.cleaner and self.check.cleaner.is_running:  # noqa: ASYNC110
                await asyncio.sleep(0)


@pytest.fixture
async def compaction_rig(tmp_path: Path) -> AsyncIterator[CompactionRig]:
    compaction_rig = CompactionRig(tmp_path / "data", {"log.cleaner.backoff.ms": "5000"})
    yield compaction_rig
    compaction_rig.check.close()
    compaction_rig.timers.close()
    abandon(compaction_rig.manager)


async def test_a_broker_without_compacted_logs_loads_no_cleaner(
    compaction_rig: CompactionRig,
) -> None:
    put(compaction_rig.log(), (b"a", b"1"))
    compaction_rig.check.note_change()
    compaction_rig.clock.advance(1000)
    assert compaction_rig.check.cleaner is None
    assert len(compaction_rig.timers) == 0


async def test_an_append_brings_a_look_and_a_quiet_log_a_round(
    compaction_rig: CompactionRig,
) -> None:
    log = compaction_rig.log(cleanup_policy="compact")
    for number in range(5):
        put(log, (b"a", b"%d" % number))
        compaction_rig.check.note_change()
    assert len(compaction_rig.timers) == 1
    compaction_rig.clock.advance(1000)
    assert len(compaction_rig.timers) == 1, "the idle time begins with the first look"
    compaction_rig.clock.advance(1000)
    await compaction_rig.round()
    assert values_of(log) == [b"4"]
    assert len(compaction_rig.timers) == 0, "an idle broker has no timer"
    assert compaction_rig.errors == []


async def test_without_an_idle_time_it_looks_as_often_as_kafka(tmp_path: Path) -> None:
    settings = {"log.cleaner.backoff.ms": "5000", "minibroker.log.cleaner.idle.ms": "0"}
    compaction_rig = CompactionRig(tmp_path / "data", settings)
    log = compaction_rig.log(cleanup_policy="compact")
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll()
    compaction_rig.check.note_change()
    compaction_rig.clock.advance(4999)
    assert compaction_rig.check.cleaner is None
    compaction_rig.clock.advance(1)
    await compaction_rig.round()
    assert values_of(log) == [b"2"]
    compaction_rig.check.close()
    compaction_rig.timers.close()
    abandon(compaction_rig.manager)


async def test_close_ends_what_is_to_come(compaction_rig: CompactionRig) -> None:
    log = compaction_rig.log(cleanup_policy="compact")
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    compaction_rig.check.note_change()
    compaction_rig.check.close()
    compaction_rig.clock.advance(10_000)
    assert len(values_of(log)) == 2


INTERVAL_MS = 100
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


class SyncingRig:
    """Logs with a schedule, and a worker that holds its work until the test runs it."""

    def __init__(self, path: Path, interval_ms: int = INTERVAL_MS) -> None:
        self.path = path
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        runner = HeldRunner()
        self.work = runner.work
        self.errors: list[StorageError] = []
        self.files = FaultyFiles(str(path))
        self.logs = open_manager(str(path), files=self.files)
        self.schedule = SyncSchedule(
            interval_ms=interval_ms,
            logs=self.logs,
            timers=self.timers,
            worker=runner,
            on_error=self.errors.append,
        )
        self.logs.on_unsynced = self.schedule.note

    def create(self, topic: str) -> PartitionLog:
        return self.logs.create_log(topic, 0, TOPIC_ID, config())

    def run_one(self) -> None:
        """The worker does its next task, and the loop hears of it."""
        task, done = self.work.pop(0)
        try:
            task()
        except StorageError as error:
            done(error)
        else:
            done(None)

    def run_all(self) -> None:
        while self.work:
            self.run_one()

    def snapshots(self, topic: str) -> list[int]:
        return sorted(int(file.stem) for file in (self.path / f"{topic}-0").glob("*.snapshot"))

    def checkpointed(self) -> dict[str, int]:
        """Topic → recovery point in the file."""
        file = self.path / RECOVERY_POINTS
        lines = file.read_text().splitlines()[2:] if file.exists() else []
        return {line.split()[0]: int(line.split()[2]) for line in lines}

    def close(self) -> None:
        self.timers.close()
        abandon(self.logs)
        self.files.forget_pins()


@pytest.fixture
async def syncing_rig(tmp_path: Path) -> AsyncIterator[SyncingRig]:
    syncing_rig = SyncingRig(tmp_path)
    yield syncing_rig
    syncing_rig.close()


async def test_an_append_is_synced_when_the_interval_is_over(syncing_rig: SyncingRig) -> None:
    log = syncing_rig.create("t")
    assert len(syncing_rig.timers) == 0  # nothing was appended
    append(log, b"a", producer_id=4, producer_epoch=0, sequence=0)
    syncing_rig.clock.advance(INTERVAL_MS - 1)
    assert syncing_rig.work == []
    syncing_rig.clock.advance(1)
    syncing_rig.run_one()
    assert log.recovery_point == 1
    assert syncing_rig.checkpointed() == {}
    syncing_rig.run_one()
    assert syncing_rig.checkpointed() == {"t": 1}
    assert syncing_rig.snapshots("t") == [1]
    assert len(syncing_rig.timers) == 0
    assert syncing_rig.work == []


async def test_the_loop_alone_moves_the_recovery_point(syncing_rig: SyncingRig) -> None:
    log = syncing_rig.create("t")
    append(log, b"a")
    syncing_rig.clock.advance(INTERVAL_MS)
    task, done = syncing_rig.work.pop()
    task()
    assert log.recovery_point == 0
    done(None)
    assert log.recovery_point == 1


async def test_one_log_at_a_time_and_one_checkpoint_for_all(syncing_rig: SyncingRig) -> None:
    logs = [syncing_rig.create(topic) for topic in "abc"]
    for log in logs:
        append(log, b"x")
    syncing_rig.clock.advance(INTERVAL_MS)
    for count in (1, 2, 3):
        assert len(syncing_rig.work) == 1
        syncing_rig.run_one()
        assert [log.recovery_point for log in logs].count(1) == count
        assert syncing_rig.checkpointed() == {}
    syncing_rig.run_one()
    assert syncing_rig.checkpointed() == {"a": 1, "b": 1, "c": 1}
    assert syncing_rig.work == []


async def test_a_long_round_writes_checkpoints_on_its_way(
    syncing_rig: SyncingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "LOGS_A_CHECKPOINT", 2)
    for topic in "abc":
        append(syncing_rig.create(topic), b"x")
    syncing_rig.clock.advance(INTERVAL_MS)
    for _ in range(3):
        syncing_rig.run_one()
    assert syncing_rig.checkpointed() == {"a": 1, "b": 1}
    syncing_rig.run_all()
    assert syncing_rig.checkpointed()["c"] == 1


async def test_appends_during_a_round_are_for_the_next(syncing_rig: SyncingRig) -> None:
    log = syncing_rig.create("t")
    append(log, b"a")
    syncing_rig.clock.advance(INTERVAL_MS)
    append(log, b"b")
    syncing_rig.run_all()
    assert (log.recovery_point, log.log_end_offset) == (1, 2)
    syncing_rig.clock.advance(INTERVAL_MS)
    syncing_rig.run_all()
    assert log.recovery_point == 2
    assert syncing_rig.checkpointed() == {"t": 2}


async def test_a_log_that_grows_much_does_not_wait(
    syncing_rig: SyncingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durability, "SYNC_BYTES", 2_000)
    slow, fast = syncing_rig.create("slow"), syncing_rig.create("fast")
    append(slow, b"a")
    append(fast, b"a")
    while not syncing_rig.work:
        append(fast, b"x" * 500)
    assert fast.size_bytes < 4_000
    syncing_rig.run_one()
    assert fast.recovery_point == fast.log_end_offset
    assert slow.recovery_point == 0
    syncing_rig.run_all()
    assert len(syncing_rig.timers) == 1  # `slow` still waits
    syncing_rig.clock.advance(INTERVAL_MS)
    syncing_rig.run_all()
    assert slow.recovery_point == 1


async def test_snapshots_of_earlier_syncs_go_and_those_of_segments_stay(
    syncing_rig: SyncingRig,
) -> None:
    log = syncing_rig.create("t")

    def sync() -> None:
        syncing_rig.clock.advance(INTERVAL_MS)
        syncing_rig.run_all()

    append(log, b"a")
    sync()
    assert syncing_rig.snapshots("t") == [1]
    append(log, b"b")
    syncing_rig.clock.advance(INTERVAL_MS)
    syncing_rig.run_one()
    assert syncing_rig.snapshots("t") == [1, 2]  # the checkpoint still says 1
    syncing_rig.run_one()
    assert syncing_rig.snapshots("t") == [2]
    log.roll()
    append(log, b"c")
    sync()
    assert syncing_rig.snapshots("t") == [2, 3]
    append(log, b"d")
    sync()
    assert syncing_rig.snapshots("t") == [2, 4]


@pytest.mark.parametrize("is_made_again", [False, True])
async def test_the_snapshot_of_a_later_segment_does_not_go(
    syncing_rig: SyncingRig, is_made_again: bool
) -> None:
    """It has the name of one that was to go, of a log that was cut or deleted meanwhile."""
    log = syncing_rig.create("t")
    append(log, b"a")
    syncing_rig.clock.advance(INTERVAL_MS)
    syncing_rig.run_all()
    append(log, b"b")
    syncing_rig.clock.advance(INTERVAL_MS)
    syncing_rig.run_one()
    assert syncing_rig.snapshots("t") == [1, 2]
    if is_made_again:
        syncing_rig.logs.delete("t", 0, MARKED)
        log = syncing_rig.create("t")
    else:
        log.truncate_to(0)
    append(log, b"other")
    log.roll()
    assert syncing_rig.snapshots("t") == [1]
    syncing_rig.run_all()
    assert syncing_rig.snapshots("t") == [1]


async def test_a_log_that_was_rolled_and_flushed_asks_again(syncing_rig: SyncingRig) -> None:
    """The roll did what the sync was to do. The next append must not be forgotten."""
    log = syncing_rig.create("t")
    append(log, b"a")
    log.roll()
    assert log.recovery_point == 1
    syncing_rig.clock.advance(INTERVAL_MS)
    syncing_rig.run_all()
    append(log, b"b")
    syncing_rig.clock.advance(INTERVAL_MS)
    syncing_rig.run_all()
    assert log.recovery_point == 2


async def test_a_truncated_append_leaves_no_trace(syncing_rig: SyncingRig) -> None:
    log = syncing_rig.create("t")
    for value in (b"a", b"b", b"c"):
        append(log, value)
    syncing_rig.clock.advance(INTERVAL_MS)
    task, done = syncing_rig.work.pop()
    log.truncate_to(1)
    task()
    done(None)
    assert log.recovery_point <= 1
    assert syncing_rig.snapshots("t") == []
    syncing_rig.run_all()
    append(log, b"other")
    syncing_rig.clock.advance(INTERVAL_MS)
    syncing_rig.run_all()
    assert syncing_rig.snapshots("t") == [2]


async def test_nothing_is_written_into_the_directory_of_a_namesake(syncing_rig: SyncingRig) -> None:
    log = syncing_rig.create("t")
    append(log, b"a", producer_id=4, producer_epoch=0, sequence=0)
    syncing_rig.clock.advance(INTERVAL_MS)
    syncing_rig.logs.delete("t", 0, MARKED)
    namesake = syncing_rig.create("t")
    assert namesake.directory == f"{syncing_rig.path}/t-0"
    syncing_rig.run_all()
    assert syncing_rig.snapshots("t") == []
    assert namesake.recovery_point == 0


async def test_a_disk_that_refuses_is_told_and_the_next_append_tries_again(
    syncing_rig: SyncingRig,
) -> None:
    log = syncing_rig.create("t")
    append(log, b"a")
    syncing_rig.clock.advance(INTERVAL_MS)
    syncing_rig.files.fail_at = syncing_rig.files.call_count + 1
    syncing_rig.files.fail_errno = errno.EIO
    syncing_rig.run_one()
    assert [error.log_directory for error in syncing_rig.errors] == [str(syncing_rig.path)]
    assert log.recovery_point == 0
    append(log, b"b")
    syncing_rig.clock.advance(INTERVAL_MS)
    syncing_rig.run_all()
    assert log.recovery_point == 2


async def test_after_a_power_cut_at_most_an_interval_is_lost(syncing_rig: SyncingRig) -> None:
    log = syncing_rig.create("t")
    for value in (b"a", b"b"):
        append(log, value)
    syncing_rig.clock.advance(INTERVAL_MS)
    syncing_rig.run_all()
    append(log, b"lost")
    syncing_rig.timers.close()
    abandon(syncing_rig.logs)
    syncing_rig.files.power_cut()
    syncing_rig.logs = open_manager(str(syncing_rig.path), files=syncing_rig.files)
    assert values_of(syncing_rig.logs.logs[log.name]) == [b"a", b"b"]


async def test_with_an_interval_of_0_nothing_is_synced(tmp_path: Path) -> None:
    syncing_rig = SyncingRig(tmp_path, interval_ms=0)
    log = syncing_rig.create("t")
    append(log, b"a")
    assert len(syncing_rig.timers) == 0
    syncing_rig.clock.advance(1_000_000)
    assert syncing_rig.work == []
    assert log.recovery_point == 0
    syncing_rig.close()


async def test_nothing_is_begun_after_the_end(syncing_rig: SyncingRig) -> None:
    log = syncing_rig.create("t")
    append(log, b"a")
    syncing_rig.clock.advance(INTERVAL_MS)
    append(log, b"b")
    syncing_rig.schedule.close()
    syncing_rig.run_all()
    syncing_rig.clock.advance(INTERVAL_MS)
    assert syncing_rig.work == []
    append(log, b"c")
    assert len(syncing_rig.timers) == 0


START_MS = 7_000
CHECKPOINT_MS = 100
LOOK_MS = 1_000
SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": str(CHECKPOINT_MS),
    "producer.id.expiration.check.interval.ms": str(LOOK_MS),
    "producer.id.expiration.ms": "5000",
}


class HousekeepingRig:
    """Housekeeping over logs that only count what is asked of them."""

    def __init__(self) -> None:
        self.clock = ManualClock(START_MS)
        self.timers = Timers(self.clock)
        self.work: list[Callable[[], None]] = []
        self.producers_left = 0
        self.bug: Exception | None = None
        self.looks: list[tuple[int, int]] = []
        self.errors: list[object] = []
        self.logs: dict[object, object] = {}
        self.directories: list[object] = []
        self.checkpoint_count = 0
        self.housekeeping = Housekeeping(
            logs=self,  # type: ignore[arg-type]
            dynamic=DynamicConfig(BrokerConfig(SETTINGS)),
            clock=self.clock,
            timers=self.timers,
            workers=workers_of(self.work.append).files,
            on_storage_error=self.errors.append,
        )

    def checkpoint_later(self) -> None:
        self.checkpoint_count += 1

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> Iterator[int]:
        self.looks.append((now_ms, expiration_ms))
        if self.bug is not None:
            raise self.bug
        yield self.producers_left


@pytest.fixture
async def housekeeping_rig() -> AsyncIterator[HousekeepingRig]:
    housekeeping_rig = HousekeepingRig()
    yield housekeeping_rig
    housekeeping_rig.timers.close()


async def test_without_an_append_nothing_is_armed(housekeeping_rig: HousekeepingRig) -> None:
    assert len(housekeeping_rig.timers) == 0


async def test_appends_bring_one_checkpoint_on_the_worker(
    housekeeping_rig: HousekeepingRig,
) -> None:
    for _ in range(3):
        housekeeping_rig.housekeeping.note_change()
    housekeeping_rig.clock.advance(CHECKPOINT_MS - 1)
    assert housekeeping_rig.checkpoint_count == 0
    housekeeping_rig.clock.advance(1)
    assert housekeeping_rig.checkpoint_count == 1
    housekeeping_rig.housekeeping.note_change()
    housekeeping_rig.clock.advance(CHECKPOINT_MS)
    assert housekeeping_rig.checkpoint_count == 2


async def test_producers_are_looked_at_with_the_time_and_the_limit(
    housekeeping_rig: HousekeepingRig,
) -> None:
    housekeeping_rig.housekeeping.note_change()
    housekeeping_rig.clock.advance(LOOK_MS)
    assert housekeeping_rig.looks == [(START_MS + LOOK_MS, 5_000)]
    housekeeping_rig.clock.advance(10 * LOOK_MS)
    assert len(housekeeping_rig.looks) == 1


async def test_the_look_is_repeated_while_producers_are_left(
    housekeeping_rig: HousekeepingRig,
) -> None:
    housekeeping_rig.producers_left = 1
    housekeeping_rig.housekeeping.note_change()
    for looks in range(1, 4):
        housekeeping_rig.clock.advance(LOOK_MS)
        assert len(housekeeping_rig.looks) == looks
        await eventually(lambda: housekeeping_rig.housekeeping._expiry_timer is not None)


async def test_the_look_is_repeated_after_a_bug(housekeeping_rig: HousekeepingRig) -> None:
    housekeeping_rig.bug = RuntimeError("a bug")
    housekeeping_rig.housekeeping.note_producers()
    for looks in range(1, 4):
        housekeeping_rig.clock.advance(LOOK_MS)
        assert len(housekeeping_rig.looks) == looks


async def test_producers_that_come_from_the_disk_are_looked_at_without_an_append(
    housekeeping_rig: HousekeepingRig,
) -> None:
    housekeeping_rig.logs["t", 0] = None
    housekeeping_rig.housekeeping.begin()
    housekeeping_rig.clock.advance(LOOK_MS)
    assert len(housekeeping_rig.looks) == 1
    housekeeping_rig.clock.advance(10 * LOOK_MS)
    assert len(housekeeping_rig.looks) == 1, "nothing is left in memory"
    housekeeping_rig.housekeeping.note_producers()
    housekeeping_rig.clock.advance(LOOK_MS)
    assert len(housekeeping_rig.looks) == 2


async def test_retention_is_armed_by_logs_that_are_there_already(
    housekeeping_rig: HousekeepingRig,
) -> None:
    housekeeping_rig.housekeeping.begin()
    housekeeping_rig.housekeeping.on_topic_config(None)
    assert not housekeeping_rig.housekeeping.retention.is_armed
    housekeeping_rig.logs["t", 0] = None
    housekeeping_rig.housekeeping.begin()
    assert housekeeping_rig.housekeeping.retention.is_armed


async def test_a_changed_configuration_brings_a_retention_check(
    housekeeping_rig: HousekeepingRig,
) -> None:
    housekeeping_rig.logs["t", 0] = None
    housekeeping_rig.housekeeping.on_topic_config("t")
    assert housekeeping_rig.housekeeping.retention.is_armed
    housekeeping_rig.housekeeping.close()
    housekeeping_rig.clock.advance(10 * LOOK_MS)
    assert housekeeping_rig.errors == []


async def test_nothing_happens_after_the_timers_are_closed(
    housekeeping_rig: HousekeepingRig,
) -> None:
    housekeeping_rig.housekeeping.note_change()
    housekeeping_rig.timers.close()
    housekeeping_rig.clock.advance(10 * LOOK_MS)
    assert housekeeping_rig.looks == []
    assert housekeeping_rig.work == []
