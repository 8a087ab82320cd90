"""Staged appends: what a commit lets readers see, and what becomes of those that a disk refuses."""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.partitions import housekeeping
from minibroker.broker.partitions.append_queue import Flusher, Flushing
from minibroker.broker.partitions.housekeeping import FlushSchedule
from minibroker.broker.partitions.waiters import FetchPosition
from minibroker.broker.storage.durability import Durability
from minibroker.broker.timers import Timers
from minibroker.broker.worker import Workers
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError, SyncError
from tests.support.in_process import START_MS, ManualClock, batch_of
from tests.support.logs import NOW_MS, TOPIC_ID, abandon, append, config, open_manager
from tests.support.runners import HeldRunner
from tests.unit.broker.partitions.conftest import Claim, partition_image

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.kafka.errors import MinibrokerError
    from tests.unit.broker.partitions.conftest import World

    Done = Callable[[MinibrokerError | OSError | None], None]


STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)


class Worker(HeldRunner):
    """Holds what it is given until the test runs it."""

    def run_one(self, error: StorageError | OSError | None = None) -> None:
        task, done = self.work.pop(0)
        if error is None:
            task()
        done(error)


@pytest.fixture
async def worker(world: World) -> Worker:
    """Return the worker of a world in which every record is synced before its answer."""
    worker = Worker()
    world.manager.appends.flusher = Flusher(Workers.by(worker).flushes)
    world.dynamic.set_topic("t", {"flush.messages": "1"})
    world.create("t")
    return worker


def _flushing_of(world: World) -> Flushing:
    flushing = world.manager.appends.flushing
    assert flushing is not None
    world.manager.appends.flushing = None
    return flushing


async def test_answers_and_readers_wait_for_the_sync(world: World, worker: Worker) -> None:
    claim = world.append(b"a")
    world.manager.commit()
    waiting = _flushing_of(world)
    partition = world.partition()
    assert not waiting.future.done()
    assert (partition.high_watermark, partition.log.recovery_point) == (0, 0)
    worker.run_one()
    assert waiting.future.done()
    assert (partition.high_watermark, partition.log.recovery_point) == (1, 1)
    assert claim.error_code == 0


async def test_answers_of_other_connections_wait_for_the_sync(world: World, worker: Worker) -> None:
    outcomes: list[bool] = []
    world.manager.appends.when_synced(outcomes.append)
    assert outcomes.pop()  # nothing to sync
    world.append(b"a")
    world.manager.commit()
    world.manager.appends.when_synced(outcomes.append)
    assert outcomes == []
    worker.run_one()
    await asyncio.sleep(0)
    assert outcomes == [True]
    world.manager.appends.when_synced(outcomes.append)
    assert outcomes == [True, True]


async def test_appends_during_a_sync_share_the_next_one(world: World, worker: Worker) -> None:
    waits = []
    for value in (b"a", b"b", b"c"):
        world.append(value)
        world.manager.commit()
        waits.append(_flushing_of(world))
    assert len(worker.work) == 1
    worker.run_one()
    assert [wait.future.done() for wait in waits] == [True, False, False]
    assert world.partition().high_watermark == 1  # while the next sync is under way
    assert len(worker.work) == 1
    worker.run_one()
    assert all(wait.future.done() for wait in waits)
    assert world.partition().high_watermark == 3
    assert worker.work == []


async def test_readers_see_acknowledged_records_however_busy_the_producers_are(
    world: World, worker: Worker
) -> None:
    """Two producers keep one sync behind another, so that a next one always waits."""
    partition = world.partition()
    world.append(b"0")
    world.manager.commit()
    for round_number in range(1, 100):
        waiting = _flushing_of(world)
        world.append(b"%d" % round_number)
        world.manager.commit()
        worker.run_one()
        assert waiting.future.done()
        assert partition.high_watermark == round_number


async def test_a_disk_that_refuses_fails_the_answers_that_claimed_it(
    world: World, worker: Worker
) -> None:
    outcomes: list[StorageError] = []
    world.manager.on_storage_error = outcomes.append
    first = world.append(b"a")
    world.manager.commit()
    waiting = _flushing_of(world)
    second = world.append(b"b")
    world.manager.commit()
    world.files.fail_at = world.files.call_count + 1
    world.files.fail_errno = errno.EIO
    task, done = worker.work.pop(0)
    with pytest.raises(Exception, match="cannot flush t-0") as raised:
        task()
    done(raised.value)  # type: ignore[arg-type]
    assert waiting.future.done()
    assert first.error_code == STORAGE_ERROR
    assert [str(error) for error in outcomes] == [str(raised.value)]
    worker.run_one()
    assert second.error_code == 0
    assert world.partition().high_watermark == 2


async def test_readers_do_not_see_records_that_could_not_be_synced(
    world: World, worker: Worker
) -> None:
    outcomes: list[StorageError] = []
    world.manager.on_storage_error = outcomes.append
    world.append(b"a")
    world.manager.commit()
    waiting = _flushing_of(world)
    world.files.fail_at = world.files.call_count + 1
    world.files.fail_errno = errno.ENOSPC
    task, done = worker.work.pop(0)
    with pytest.raises(SyncError) as raised:
        task()
    done(raised.value)
    assert waiting.future.done()
    assert waiting.is_failed
    assert world.partition().high_watermark == 0
    assert [error.is_lasting for error in outcomes] == [True]


@pytest.mark.parametrize("is_offline", [True, False], ids=["failed directory", "deleted topic"])
async def test_a_sync_that_was_passed_by_is_none(
    world: World, worker: Worker, is_offline: bool
) -> None:
    """Syncs that waited in the queue while the directory failed say nothing about the disk."""
    partition = world.partition()
    answer = world.append(b"a")
    world.manager.commit()
    waiting = _flushing_of(world)
    if is_offline:
        lost = world.logs.fail_directory(partition.log.log_directory)
        assert lost is not None
        world.manager.take_offline(lost)
    else:
        world.delete("t")
    worker.run_one()
    assert answer.error_code == STORAGE_ERROR
    assert waiting.is_failed
    assert partition.high_watermark == 0


async def test_a_sync_that_was_to_follow_finds_the_topic_deleted(
    world: World, worker: Worker
) -> None:
    """Entries of the index in memory find no file any more: no fault of the disk."""
    outcomes: list[StorageError] = []
    world.manager.on_storage_error = outcomes.append
    answers = []
    for _ in range(3):
        answers.append(world.append(b"x" * 5000))
        world.manager.commit()
    waiting = _flushing_of(world)
    world.delete("t")
    while worker.work:
        worker.run_one()
    assert waiting.future.done()
    assert outcomes == []
    assert [answer.error_code for answer in answers] == [STORAGE_ERROR] * 3


async def test_a_log_that_moved_meanwhile_is_synced_where_it_is(
    world: World, worker: Worker
) -> None:
    world.create("copy")
    world.append(b"a", name="copy")
    world.manager.commit()
    copy = world.partition("copy").log
    answer = world.append(b"a")
    world.manager.commit()
    waiting = _flushing_of(world)
    world.partition().exchange_log(copy)
    worker.run_one()
    assert not waiting.future.done()
    assert copy.recovery_point == 0
    worker.run_one()
    assert waiting.future.done()
    assert (answer.error_code, copy.recovery_point) == (0, 1)
    assert world.partition().high_watermark == 1


async def test_a_log_that_was_cut_meanwhile_is_synced_again(world: World, worker: Worker) -> None:
    """Another broker led in between. A sync that began before has not seen the new record."""
    partition = world.partition()
    world.append(b"a")
    world.manager.commit()
    world.change("t", 0, partition_image(leader=5, epoch=1, replicas=(0, 5)))
    world.manager.truncate(partition, 0)
    world.change("t", 0, partition_image(epoch=2))
    world.manager.appends.flushing = None
    world.append(b"b")
    world.manager.commit()
    waiting = _flushing_of(world)
    worker.run_one()
    assert not waiting.future.done()
    assert (partition.high_watermark, partition.log.recovery_point) == (0, 0)
    worker.run_one()
    assert waiting.future.done()
    assert (partition.high_watermark, partition.log.recovery_point) == (1, 1)


async def test_several_partitions_are_waited_for_together(world: World, worker: Worker) -> None:
    world.dynamic.set_topic("u", {"flush.messages": "1"})
    world.create("u")
    world.append(b"a")
    world.append(b"b", name="u")
    world.manager.commit()
    waiting = _flushing_of(world)
    worker.run_one()
    assert not waiting.future.done()
    worker.run_one()
    assert waiting.future.done()


async def test_fewer_records_than_the_setting_wait_for_nothing(
    world: World, worker: Worker
) -> None:
    world.dynamic.set_topic("t", {"flush.messages": "3"})
    for value in (b"a", b"b"):
        world.append(value)
        world.manager.commit()
        assert world.manager.appends.flushing is None
    world.append(b"c")
    world.manager.commit()
    assert not _flushing_of(world).future.done()
    worker.run_one()
    world.append(b"d")
    world.manager.commit()
    assert world.manager.appends.flushing is None


async def test_a_sync_whose_result_is_not_applied_yet_is_waited_for_too(
    world: World, worker: Worker
) -> None:
    world.append(b"a")
    world.manager.commit()
    first = world.manager.appends.flushing
    world.append(b"b")
    world.manager.commit()
    assert world.manager.appends.flushing is first
    worker.run_one()
    assert not _flushing_of(world).future.done()
    worker.run_one()
    assert first is not None
    assert first.future.done()


async def test_without_a_worker_it_is_done_at_once(world: World) -> None:
    world.dynamic.set_topic("t", {"flush.messages": "1"})
    world.create("t")
    world.append(b"a")
    world.manager.commit()
    assert _flushing_of(world).future.done()
    assert world.partition().log.recovery_point == 1


async def test_a_fetch_that_comes_between_write_and_sync_is_told_of_it(
    world: World, worker: Worker
) -> None:
    world.append(b"a")
    world.manager.commit()
    position = FetchPosition(world.partition(), 0, 1_000, 0)
    assert position.bytes_available() == 0
    worker.run_one()
    assert position.bytes_available() > 0


# flush.ms


class Rig:
    def __init__(self, directory: Path, interval_ms: int | None) -> None:
        settings = {}
        if interval_ms is not None:
            settings["log.flush.scheduler.interval.ms"] = str(interval_ms)
        self.clock = ManualClock(NOW_MS)
        self.timers = Timers(self.clock)
        self.errors: list[StorageError] = []
        self.logs: LogManager = open_manager(
            str(directory),
            clock=self.clock,  # type: ignore[arg-type]
        )
        self.schedule = FlushSchedule(
            logs=self.logs,
            dynamic=DynamicConfig(BrokerConfig(settings)),
            clock=self.clock,
            timers=self.timers,
            on_error=self.errors.append,
        )


@pytest.fixture
async def rig(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path, request.param)
    yield rig
    rig.timers.close()
    abandon(rig.logs)


@pytest.mark.parametrize("rig", [100], indirect=True)
async def test_flush_ms_syncs_records_of_that_age(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "LOGS_A_STEP", 1)
    soon = rig.logs.create_log("soon", 0, TOPIC_ID, config(flush_ms=100))
    late = rig.logs.create_log("late", 0, TOPIC_ID, config(flush_ms=250))
    for log in (soon, late):
        append(log, b"a")
    rig.schedule.note_change()
    rig.clock.advance(100)
    assert (soon.recovery_point, late.recovery_point) == (1, 0)
    assert soon.durability.last_flush_ms == NOW_MS + 100
    rig.clock.advance(100)
    assert late.recovery_point == 0
    rig.clock.advance(100)
    assert late.recovery_point == 1
    assert len(rig.timers) == 0


@pytest.mark.pure("replaces Durability.flush_later")
@pytest.mark.parametrize("rig", [100], indirect=True)
async def test_a_bug_in_the_sync_of_one_log_stops_no_other(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = (
        rig.logs.create_log(name, 0, TOPIC_ID, config(flush_ms=100)) for name in ("bad", "good")
    )
    for log in (bad, good):
        append(log, b"a")
    flush = Durability.flush_later
    failures = [RuntimeError("a bug")]

    def fail_once(durability: Durability) -> None:
        if failures:
            raise failures.pop()
        flush(durability)

    monkeypatch.setattr(Durability, "flush_later", fail_once)
    rig.schedule.note_change()
    rig.clock.advance(100)
    assert (bad.recovery_point, good.recovery_point) == (0, 1)
    rig.clock.advance(100)
    assert bad.recovery_point == 1


@pytest.mark.parametrize("rig", [None], indirect=True)
async def test_without_a_schedule_flush_ms_does_nothing(rig: Rig) -> None:
    log = rig.logs.create_log("t", 0, TOPIC_ID, config(flush_ms=1))
    append(log, b"a")
    rig.schedule.note_change()
    rig.clock.advance(1_000_000)
    assert len(rig.timers) == 0
    assert log.recovery_point == 0


def test_an_append_is_seen_after_the_commit(world: World) -> None:
    world.create("t")
    claim = world.append(b"a", b"b")
    assert world.partition().high_watermark == 0
    world.manager.commit()
    assert world.partition().high_watermark == 2
    assert (claim.error_code, claim.base_offset) == (0, 0)
    assert world.change_count == 1


def test_a_commit_of_nothing_does_nothing(world: World) -> None:
    world.create("t")
    world.manager.commit()
    assert world.change_count == 0


def test_a_failed_write_fails_what_it_held_and_nothing_else(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create("t", partition_image(), partition_image())
    lost = [world.append(b"a"), world.append(b"b")]
    other_entry = world.append(b"c", index=1)
    world.fail_next_write()
    world.manager.commit()
    for claim in lost:
        assert claim.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (claim.base_offset, claim.log_start_offset) == (-1, -1)
    assert (other_entry.error_code, other_entry.base_offset) == (0, 0)
    assert world.partition(index=0).high_watermark == 0
    assert world.partition(index=1).high_watermark == 1
    errors = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "t-0" in errors[0].getMessage()
    again = world.append(b"a")
    world.manager.commit()
    assert (again.error_code, again.base_offset) == (0, 0)


def test_entries_written_before_the_failure_are_not_lost(world: World) -> None:
    world.create("t")
    entry = world.append(b"a")
    world.partition().log.write_staged()
    lost = world.append(b"b")
    world.fail_next_write()
    world.manager.commit()
    assert (entry.error_code, entry.base_offset) == (0, 0)
    assert lost.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.partition().high_watermark == 1


def test_an_append_that_fails_inside_the_log_takes_the_staged_ones_with_it(world: World) -> None:
    world.create("t")
    first = world.append(b"a")
    world.fail_next_write()
    world.append(b"x" * 600_000)
    with pytest.raises(KafkaError) as caught:
        world.append(b"x" * 600_000)  # more than is staged without writing
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    second = world.append(b"b")
    world.manager.commit()
    assert (second.error_code, second.base_offset) == (0, 0)
    assert first.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.partition().high_watermark == 1


def test_an_append_that_another_caller_failed_to_write_is_lost_although_its_offset_is_taken(
    world: World,
) -> None:
    """Retention, the cleaner and moves write what is staged, too; a later append then gets the
    offset of the one that was lost."""
    world.create("t")
    lost = world.append(b"a")
    world.fail_next_write()
    with pytest.raises(StorageError):
        world.partition().log.write_staged()
    entry = world.append(b"b")
    world.manager.commit()
    assert lost.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (entry.error_code, entry.base_offset) == (0, 0)
    assert world.partition().high_watermark == 1


def test_a_repetition_of_a_lost_batch_is_lost_too(world: World) -> None:
    world.create("t")
    first = world.append(b"a")
    second = world.append(b"a")
    world.fail_next_write()
    world.manager.commit()
    assert {first.error_code, second.error_code} == {ErrorCode.KAFKA_STORAGE_ERROR}


def test_an_entry_whose_callback_fails_costs_no_other(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create("t", partition_image(), partition_image())

    class Broken(Claim):
        @property
        def error_code(self) -> int:
            return 0

        @error_code.setter
        def error_code(self, code: int) -> None:
            if code:
                raise RuntimeError("a bug")

    append = world.partition().append
    append(memoryview(batch_of(b"a")), 1, START_MS, Broken())  # type: ignore[arg-type]
    lost = world.append(b"b")
    other_entry = world.append(b"c", index=1)
    world.fail_next_write()
    world.manager.commit()
    assert (lost.error_code, other_entry.error_code) == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
    assert world.partition(index=1).high_watermark == 1
    assert "a bug" in caplog.text


def test_reading_writes_what_is_staged_first(world: World) -> None:
    world.create("t")
    claim = world.append(b"a")
    content = world.partition().read(0, 1000, isolation_level=0)
    assert len(content.records) > 0
    assert claim.error_code == 0
    assert world.manager.appends.staged == []
