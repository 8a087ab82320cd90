"""Housekeeping: armed by an append, idle without one, checkpoints on the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.partitions.housekeeping import Housekeeping
from minibroker.broker.timers import Timers
from tests.support.in_process import ManualClock
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

START_MS = 7_000
CHECKPOINT_MS = 100
LOOK_MS = 1_000
SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": str(CHECKPOINT_MS),
    "producer.id.expiration.check.interval.ms": str(LOOK_MS),
    "producer.id.expiration.ms": "5000",
}


class Rig:
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
            run_then_of=lambda _path: lambda task, _done: self.work.append(task),
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
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    yield rig
    rig.timers.close()


async def test_without_an_append_nothing_is_armed(rig: Rig) -> None:
    assert len(rig.timers) == 0


async def test_appends_bring_one_checkpoint_on_the_worker(rig: Rig) -> None:
    for _ in range(3):
        rig.housekeeping.note_change()
    rig.clock.advance(CHECKPOINT_MS - 1)
    assert rig.checkpoint_count == 0
    rig.clock.advance(1)
    assert rig.checkpoint_count == 1
    rig.housekeeping.note_change()
    rig.clock.advance(CHECKPOINT_MS)
    assert rig.checkpoint_count == 2


async def test_producers_are_looked_at_with_the_time_and_the_limit(rig: Rig) -> None:
    rig.housekeeping.note_change()
    rig.clock.advance(LOOK_MS)
    assert rig.looks == [(START_MS + LOOK_MS, 5_000)]
    rig.clock.advance(10 * LOOK_MS)
    assert len(rig.looks) == 1


async def test_the_look_is_repeated_while_producers_are_left(rig: Rig) -> None:
    rig.producers_left = 1
    rig.housekeeping.note_change()
    for looks in range(1, 4):
        rig.clock.advance(LOOK_MS)
        assert len(rig.looks) == looks
        await eventually(lambda: rig.housekeeping._expiry_timer is not None)


async def test_the_look_is_repeated_after_a_bug(rig: Rig) -> None:
    rig.bug = RuntimeError("a bug")
    rig.housekeeping.note_producers()
    for looks in range(1, 4):
        rig.clock.advance(LOOK_MS)
        assert len(rig.looks) == looks


async def test_producers_that_come_from_the_disk_are_looked_at_without_an_append(rig: Rig) -> None:
    rig.logs["t", 0] = None
    rig.housekeeping.begin()
    rig.clock.advance(LOOK_MS)
    assert len(rig.looks) == 1
    rig.clock.advance(10 * LOOK_MS)
    assert len(rig.looks) == 1, "nothing is left in memory"
    rig.housekeeping.note_producers()
    rig.clock.advance(LOOK_MS)
    assert len(rig.looks) == 2


async def test_retention_is_armed_by_logs_that_are_there_already(rig: Rig) -> None:
    rig.housekeeping.begin()
    rig.housekeeping.on_topic_config(None)
    assert not rig.housekeeping.retention.is_armed
    rig.logs["t", 0] = None
    rig.housekeeping.begin()
    assert rig.housekeeping.retention.is_armed


async def test_a_changed_configuration_brings_a_retention_check(rig: Rig) -> None:
    rig.logs["t", 0] = None
    rig.housekeeping.on_topic_config("t")
    assert rig.housekeeping.retention.is_armed
    rig.housekeeping.close()
    rig.clock.advance(10 * LOOK_MS)
    assert rig.errors == []


async def test_nothing_happens_after_the_timers_are_closed(rig: Rig) -> None:
    rig.housekeeping.note_change()
    rig.timers.close()
    rig.clock.advance(10 * LOOK_MS)
    assert rig.looks == []
    assert rig.work == []
