"""Syncs: armed by an append, one log at a time on the worker, applied by the loop."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.partitions import housekeeping
from minibroker.broker.partitions.housekeeping import SyncSchedule
from minibroker.broker.storage import durability
from minibroker.broker.timers import Timers
from minibroker.kafka.errors import StorageError
from tests.support.evidence import MARKED
from tests.support.faulty_files import FaultyFiles
from tests.support.in_process import ManualClock
from tests.support.logs import TOPIC_ID, abandon, append, config, open_manager, values_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from minibroker.broker.storage.partition_log import PartitionLog
    from minibroker.kafka.errors import MinibrokerError

    Done = Callable[[MinibrokerError | OSError | None], None]

INTERVAL_MS = 100
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


class Rig:
    """Logs with a schedule, and a worker that holds its work until the test runs it."""

    def __init__(self, path: Path, interval_ms: int = INTERVAL_MS) -> None:
        self.path = path
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.work: list[tuple[Callable[[], None], Done]] = []
        self.errors: list[StorageError] = []
        self.files = FaultyFiles(str(path))
        self.logs = open_manager(str(path), files=self.files)
        self.schedule = SyncSchedule(
            interval_ms=interval_ms,
            logs=self.logs,
            timers=self.timers,
            run_then=lambda task, done: self.work.append((task, done)),
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
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.close()


async def test_an_append_is_synced_when_the_interval_is_over(rig: Rig) -> None:
    log = rig.create("t")
    assert len(rig.timers) == 0  # nothing was appended
    append(log, b"a", producer_id=4, producer_epoch=0, sequence=0)
    rig.clock.advance(INTERVAL_MS - 1)
    assert rig.work == []
    rig.clock.advance(1)
    rig.run_one()
    assert log.recovery_point == 1
    assert rig.checkpointed() == {}
    rig.run_one()
    assert rig.checkpointed() == {"t": 1}
    assert rig.snapshots("t") == [1]
    assert len(rig.timers) == 0
    assert rig.work == []


async def test_the_loop_alone_moves_the_recovery_point(rig: Rig) -> None:
    log = rig.create("t")
    append(log, b"a")
    rig.clock.advance(INTERVAL_MS)
    task, done = rig.work.pop()
    task()
    assert log.recovery_point == 0
    done(None)
    assert log.recovery_point == 1


async def test_one_log_at_a_time_and_one_checkpoint_for_all(rig: Rig) -> None:
    logs = [rig.create(topic) for topic in "abc"]
    for log in logs:
        append(log, b"x")
    rig.clock.advance(INTERVAL_MS)
    for count in (1, 2, 3):
        assert len(rig.work) == 1
        rig.run_one()
        assert [log.recovery_point for log in logs].count(1) == count
        assert rig.checkpointed() == {}
    rig.run_one()
    assert rig.checkpointed() == {"a": 1, "b": 1, "c": 1}
    assert rig.work == []


async def test_a_long_round_writes_checkpoints_on_its_way(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "LOGS_A_CHECKPOINT", 2)
    for topic in "abc":
        append(rig.create(topic), b"x")
    rig.clock.advance(INTERVAL_MS)
    for _ in range(3):
        rig.run_one()
    assert rig.checkpointed() == {"a": 1, "b": 1}
    rig.run_all()
    assert rig.checkpointed()["c"] == 1


async def test_appends_during_a_round_are_for_the_next(rig: Rig) -> None:
    log = rig.create("t")
    append(log, b"a")
    rig.clock.advance(INTERVAL_MS)
    append(log, b"b")
    rig.run_all()
    assert (log.recovery_point, log.log_end_offset) == (1, 2)
    rig.clock.advance(INTERVAL_MS)
    rig.run_all()
    assert log.recovery_point == 2
    assert rig.checkpointed() == {"t": 2}


async def test_a_log_that_grows_much_does_not_wait(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durability, "SYNC_BYTES", 2_000)
    slow, fast = rig.create("slow"), rig.create("fast")
    append(slow, b"a")
    append(fast, b"a")
    while not rig.work:
        append(fast, b"x" * 500)
    assert fast.size_bytes < 4_000
    rig.run_one()
    assert fast.recovery_point == fast.log_end_offset
    assert slow.recovery_point == 0
    rig.run_all()
    assert len(rig.timers) == 1  # `slow` still waits
    rig.clock.advance(INTERVAL_MS)
    rig.run_all()
    assert slow.recovery_point == 1


async def test_snapshots_of_earlier_syncs_go_and_those_of_segments_stay(rig: Rig) -> None:
    log = rig.create("t")

    def sync() -> None:
        rig.clock.advance(INTERVAL_MS)
        rig.run_all()

    append(log, b"a")
    sync()
    assert rig.snapshots("t") == [1]
    append(log, b"b")
    rig.clock.advance(INTERVAL_MS)
    rig.run_one()
    assert rig.snapshots("t") == [1, 2]  # the checkpoint still says 1
    rig.run_one()
    assert rig.snapshots("t") == [2]
    log.roll()
    append(log, b"c")
    sync()
    assert rig.snapshots("t") == [2, 3]
    append(log, b"d")
    sync()
    assert rig.snapshots("t") == [2, 4]


async def test_a_log_that_was_rolled_and_flushed_asks_again(rig: Rig) -> None:
    """The roll did what the sync was to do. The next append must not be forgotten."""
    log = rig.create("t")
    append(log, b"a")
    log.roll()
    assert log.recovery_point == 1
    rig.clock.advance(INTERVAL_MS)
    rig.run_all()
    append(log, b"b")
    rig.clock.advance(INTERVAL_MS)
    rig.run_all()
    assert log.recovery_point == 2


async def test_a_truncated_append_leaves_no_trace(rig: Rig) -> None:
    log = rig.create("t")
    for value in (b"a", b"b", b"c"):
        append(log, value)
    rig.clock.advance(INTERVAL_MS)
    task, done = rig.work.pop()
    log.truncate_to(1)
    task()
    done(None)
    assert log.recovery_point <= 1
    assert rig.snapshots("t") == []
    rig.run_all()
    append(log, b"other")
    rig.clock.advance(INTERVAL_MS)
    rig.run_all()
    assert rig.snapshots("t") == [2]


async def test_nothing_is_written_into_the_directory_of_a_namesake(rig: Rig) -> None:
    log = rig.create("t")
    append(log, b"a", producer_id=4, producer_epoch=0, sequence=0)
    rig.clock.advance(INTERVAL_MS)
    rig.logs.delete("t", 0, MARKED)
    namesake = rig.create("t")
    assert namesake.directory == f"{rig.path}/t-0"
    rig.run_all()
    assert rig.snapshots("t") == []
    assert namesake.recovery_point == 0


async def test_a_disk_that_refuses_is_told_and_the_next_append_tries_again(rig: Rig) -> None:
    log = rig.create("t")
    append(log, b"a")
    rig.clock.advance(INTERVAL_MS)
    rig.files.fail_at = rig.files.call_count + 1
    rig.files.fail_errno = errno.EIO
    rig.run_one()
    assert [error.log_directory for error in rig.errors] == [str(rig.path)]
    assert log.recovery_point == 0
    append(log, b"b")
    rig.clock.advance(INTERVAL_MS)
    rig.run_all()
    assert log.recovery_point == 2


async def test_after_a_power_cut_at_most_an_interval_is_lost(rig: Rig) -> None:
    log = rig.create("t")
    for value in (b"a", b"b"):
        append(log, value)
    rig.clock.advance(INTERVAL_MS)
    rig.run_all()
    append(log, b"lost")
    rig.timers.close()
    abandon(rig.logs)
    rig.files.power_cut()
    rig.logs = open_manager(str(rig.path), files=rig.files)
    assert values_of(rig.logs.logs[log.name]) == [b"a", b"b"]


async def test_with_an_interval_of_0_nothing_is_synced(tmp_path: Path) -> None:
    rig = Rig(tmp_path, interval_ms=0)
    log = rig.create("t")
    append(log, b"a")
    assert len(rig.timers) == 0
    rig.clock.advance(1_000_000)
    assert rig.work == []
    assert log.recovery_point == 0
    rig.close()


async def test_nothing_is_begun_after_the_end(rig: Rig) -> None:
    log = rig.create("t")
    append(log, b"a")
    rig.clock.advance(INTERVAL_MS)
    append(log, b"b")
    rig.schedule.close()
    rig.run_all()
    rig.clock.advance(INTERVAL_MS)
    assert rig.work == []
    append(log, b"c")
    assert len(rig.timers) == 0
