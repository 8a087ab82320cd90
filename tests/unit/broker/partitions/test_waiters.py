"""Long polls: enough bytes, time, partitions that go, the stop; with a loop whose time stands."""

from __future__ import annotations

import asyncio
from os import truncate
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.cold_reads import ColdError, warm
from minibroker.broker.partitions.partition import READ_COMMITTED, READ_UNCOMMITTED
from minibroker.broker.partitions.waiters import DelayedFetch, FetchPosition, has_enough
from minibroker.broker.storage.disk import Disk
from minibroker.broker.worker import Workers
from tests.support.in_process import START_MS, batch_of
from tests.support.logs import append_records, marker_of
from tests.support.runners import HeldRunner
from tests.unit.broker.partitions.conftest import Claim, partition_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.broker.partitions.conftest import World


BATCH_BYTES = len(batch_of(b"x"))


class Timer:
    """The result of `call_later`."""

    def __init__(self, delay_s: float, callback: Callable[[], None]) -> None:
        self.delay_s = delay_s
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """A loop as DelayedFetch needs it; time passes by `timer.callback()`, turns by `turn`."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []
        self.ready: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.ready.append(callback)

    def turn(self) -> None:
        ready, self.ready = self.ready, []
        for callback in ready:
            callback()

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(delay_s, callback)
        self.timers.append(timer)
        return timer


class Wait:
    """One waiting fetch over partitions of topic `t`."""

    def __init__(
        self,
        world: World,
        *indexes: int,
        bytes_min: int = 1,
        max_bytes: int = 10_000,
        isolation_level: int = READ_UNCOMMITTED,
    ) -> None:
        self.loop = Loop()
        self.read_count = 0
        self.failure: Exception | None = None
        positions = [
            FetchPosition(
                world.partition(index=index),
                world.partition(index=index).end_offset_for(isolation_level),
                max_bytes,
                isolation_level,
            )
            for index in indexes
        ]
        self.fetch = DelayedFetch(
            self.loop,  # type: ignore[arg-type]
            positions,
            bytes_min,
            500,
            self._read_again,
        )

    def _read_again(self) -> str:
        self.read_count += 1
        if self.failure is not None:
            raise self.failure
        return "answer"

    @property
    def is_over(self) -> bool:
        """Is it over with the loop's next turn?"""
        self.loop.turn()
        return self.fetch.future.done()


@pytest.fixture
def two(world: World) -> World:
    world.create("t", partition_image(), partition_image())
    return world


async def let_callbacks_run() -> None:
    await asyncio.sleep(0)


async def test_one_byte_is_enough_when_one_is_wanted(two: World) -> None:
    wait = Wait(two, 0)
    assert not wait.is_over
    two.append(b"x")
    assert not wait.is_over
    two.manager.commit()
    assert wait.is_over
    assert await wait.fetch.future == "answer"
    assert wait.read_count == 1


async def test_a_commit_reads_nothing_for_those_that_wait(two: World) -> None:
    """Waiters look at a commit of several partitions once, in the loop's next turn."""
    wait = Wait(two, 0, 1)
    two.append(b"x", index=0)
    two.append(b"x", index=1)
    two.manager.commit()
    assert (wait.read_count, wait.fetch.future.done()) == (0, False)
    assert len(wait.loop.ready) == 1
    wait.loop.turn()
    assert (wait.read_count, wait.fetch.future.done()) == (1, True)


async def test_an_end_before_the_turn_is_the_only_one(two: World) -> None:
    wait = Wait(two, 0)
    two.append(b"x")
    two.manager.commit()
    wait.fetch.complete()
    assert wait.is_over
    assert wait.read_count == 1


async def test_less_than_wanted_waits_on(two: World) -> None:
    wait = Wait(two, 0, bytes_min=2 * BATCH_BYTES + 1)
    for _ in range(2):
        two.append(b"x")
        two.manager.commit()
        assert not wait.is_over
    two.append(b"x")
    two.manager.commit()
    assert wait.is_over
    assert wait.read_count == 1


async def test_bytes_of_several_partitions_count_together(two: World) -> None:
    wait = Wait(two, 0, 1, bytes_min=2 * BATCH_BYTES)
    two.append(b"x", index=0)
    two.manager.commit()
    assert not wait.is_over
    two.append(b"x", index=1)
    two.manager.commit()
    assert wait.is_over


async def test_a_partitions_bytes_count_up_to_its_limit(two: World) -> None:
    wait = Wait(two, 0, 1, bytes_min=200, max_bytes=110)
    two.append(b"x" * 500, index=0)
    two.manager.commit()
    assert not wait.is_over
    two.append(b"x" * 500, index=1)
    two.manager.commit()
    assert wait.is_over


async def test_other_partitions_do_not_wake_it(two: World) -> None:
    wait = Wait(two, 0)
    two.append(b"x", index=1)
    two.manager.commit()
    assert not wait.is_over


async def test_its_time_ends_the_wait(two: World) -> None:
    wait = Wait(two, 0)
    (timer,) = wait.loop.timers
    assert timer.delay_s == 0.5
    timer.callback()
    assert await wait.fetch.future == "answer"


async def test_the_end_of_the_wait_cancels_its_timer_and_forgets_it(two: World) -> None:
    wait = Wait(two, 0, 1)
    assert two.partition(index=0).waiters == two.partition(index=1).waiters == {wait.fetch: None}
    two.append(b"x")
    two.manager.commit()
    assert wait.is_over
    await let_callbacks_run()
    assert wait.loop.timers[0].is_cancelled
    assert not two.partition(index=0).waiters
    assert not two.partition(index=1).waiters


async def test_a_client_that_goes_leaves_nothing_behind(two: World) -> None:
    wait = Wait(two, 0)
    wait.fetch.future.cancel()
    await let_callbacks_run()
    assert not two.partition().waiters
    assert wait.loop.timers[0].is_cancelled
    two.append(b"x")
    two.manager.commit()
    assert wait.read_count == 0


async def test_it_is_answered_once(two: World) -> None:
    wait = Wait(two, 0)
    wait.fetch.complete()
    wait.fetch.complete()
    wait.loop.timers[0].callback()
    assert wait.read_count == 1


async def test_an_error_of_reading_again_is_the_answer(two: World) -> None:
    wait = Wait(two, 0)
    wait.failure = RuntimeError("no")
    wait.fetch.complete()
    with pytest.raises(RuntimeError, match="no"):
        await wait.fetch.future


async def test_read_committed_does_not_wake_for_an_open_transaction(two: World) -> None:
    committed = Wait(two, 0, isolation_level=READ_COMMITTED)
    everything = Wait(two, 0)
    batch = batch_of(b"x", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    two.partition().append(memoryview(batch), -1, START_MS, Claim())
    two.manager.commit()
    assert everything.is_over
    assert not committed.is_over


async def test_the_end_of_a_transaction_shows_all_that_lay_behind_it(two: World) -> None:
    partition = two.partition()
    header = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    batch = batch_of(b"x" * 1000, base_sequence=0, **header)
    partition.append(memoryview(batch), -1, START_MS, Claim())
    two.manager.commit()
    wait = Wait(two, 0, bytes_min=500, isolation_level=READ_COMMITTED)
    two.append(b"x")
    two.manager.commit()
    assert not wait.is_over
    marker = marker_of(7, timestamp_ms=START_MS)
    append_records(partition.log, marker, 0, START_MS, origin="coordinator")
    partition.advance_high_watermark(partition.log_end_offset)
    assert wait.is_over


# Where the fetch begins, and where reading ends.


def standing(
    world: World, offset: int, *, max_bytes: int = 10_000, isolation_level: int = READ_UNCOMMITTED
) -> list[FetchPosition]:
    return [FetchPosition(world.partition(), offset, max_bytes, isolation_level)]


def write(world: World, *values: bytes) -> None:
    for value in values:
        world.append(value)
        world.manager.commit()


def test_an_offset_in_an_older_segment_needs_no_wait(two: World) -> None:
    write(two, b"a", b"b")
    two.partition().log.roll()
    write(two, b"c")
    assert has_enough(standing(two, 0), 10_000)
    assert not has_enough(standing(two, 2), 10_000)


async def test_a_segment_that_begins_meanwhile_ends_the_wait(two: World) -> None:
    write(two, b"a")
    wait = Wait(two, 0, bytes_min=10_000)
    two.partition().log.roll()
    write(two, b"b")
    assert wait.is_over


def test_bytes_count_from_the_offset_to_the_end(two: World) -> None:
    write(two, b"a", b"b", b"c")
    assert has_enough(standing(two, 1), 2 * BATCH_BYTES)
    assert not has_enough(standing(two, 1), 2 * BATCH_BYTES + 1)
    assert not has_enough(standing(two, 1, max_bytes=BATCH_BYTES), 2 * BATCH_BYTES)


def test_bytes_behind_an_open_transaction_do_not_count(two: World) -> None:
    write(two, b"a")
    batch = batch_of(b"x", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    two.partition().append(memoryview(batch), -1, START_MS, Claim())
    write(two, b"b")
    committed = standing(two, 0, isolation_level=READ_COMMITTED)
    assert has_enough(committed, BATCH_BYTES)
    assert not has_enough(committed, BATCH_BYTES + 1)


def test_an_offset_beyond_what_is_readable_needs_no_wait(two: World) -> None:
    batch = batch_of(b"x", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    two.partition().append(memoryview(batch), -1, START_MS, Claim())
    write(two, b"b")
    assert has_enough(standing(two, 1, isolation_level=READ_COMMITTED), 1)
    assert not has_enough(standing(two, 0, isolation_level=READ_COMMITTED), 1)


def test_a_disk_that_does_not_tell_ends_the_wait(two: World) -> None:
    write(two, b"a")
    positions = standing(two, 0, isolation_level=READ_COMMITTED)
    batch = batch_of(b"x", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    two.partition().append(memoryview(batch), -1, START_MS, Claim())
    two.manager.commit()
    truncate(two.partition().log.segments.last.log_path, 0)
    assert has_enough(positions, 10_000)


async def test_a_failed_write_wakes_nobody(two: World) -> None:
    wait = Wait(two, 0)
    two.append(b"x")
    two.fail_next_write()
    two.manager.commit()
    assert not wait.is_over


async def test_a_deleted_topic_ends_the_wait(two: World) -> None:
    wait = Wait(two, 1)
    two.delete("t")
    assert wait.is_over


async def test_leadership_that_goes_ends_the_wait(two: World) -> None:
    wait = Wait(two, 0)
    two.change("t", 0, partition_image(leader=5, epoch=1))
    assert wait.is_over


async def test_a_new_leader_epoch_ends_the_wait(two: World) -> None:
    wait = Wait(two, 0)
    two.change("t", 0, partition_image(epoch=1))
    assert wait.is_over


async def test_the_stop_ends_every_wait(two: World) -> None:
    waits = [Wait(two, 0), Wait(two, 1), Wait(two, 0, 1)]
    two.manager.wake_all()
    assert all(wait.is_over for wait in waits)


async def test_a_reader_waits_for_every_range(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    runner = HeldRunner()
    disk = Disk(workers=Workers.by(runner))
    cold = []
    for position, size in ((0, 4), (4, 3)):
        with disk.resident_only, pytest.raises(ColdError) as caught:
            disk.pread(str(path), size, position)
        cold.append(caught.value)
    waiting = asyncio.create_task(warm(cold))
    await asyncio.sleep(0)  # it begins
    assert len(runner.work) == 2
    for task, done in runner.work:
        assert not waiting.done()
        task()
        done(None)
    await asyncio.wait_for(waiting, 60)
    assert disk.handles.find(str(path)) is not None
    disk.close()
