"""The cleaner comes with the first compacted log, looks after appends, ends with the broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.partitions.housekeeping import CompactionCheck
from minibroker.broker.timers import Timers
from tests.support.compaction import put
from tests.support.in_process import ManualClock
from tests.support.logs import TOPIC_ID, abandon, config, open_manager, values_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from minibroker.broker.storage.partition_log import PartitionLog

WAIT_S = 180
NOW_MS = 1_700_000_000_000


class Rig:
    """A check over real logs, with a clock that the test moves."""

    def __init__(self, path: Path, settings: dict[str, str]) -> None:
        self.clock = ManualClock(NOW_MS)
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
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path / "data", {"log.cleaner.backoff.ms": "5000"})
    yield rig
    rig.check.close()
    rig.timers.close()
    abandon(rig.manager)


async def test_a_broker_without_compacted_logs_loads_no_cleaner(rig: Rig) -> None:
    put(rig.log(), (b"a", b"1"))
    rig.check.note_change()
    rig.clock.advance(1000)
    assert rig.check.cleaner is None
    assert len(rig.timers) == 0


async def test_an_append_brings_a_look_and_a_quiet_log_a_round(rig: Rig) -> None:
    log = rig.log(cleanup_policy="compact")
    for number in range(5):
        put(log, (b"a", b"%d" % number))
        rig.check.note_change()
    assert len(rig.timers) == 1
    rig.clock.advance(1000)
    assert len(rig.timers) == 1, "the idle time begins with the first look"
    rig.clock.advance(1000)
    await rig.round()
    assert values_of(log) == [b"4"]
    assert len(rig.timers) == 0, "an idle broker has no timer"
    assert rig.errors == []


async def test_without_an_idle_time_it_looks_as_often_as_kafka(tmp_path: Path) -> None:
    settings = {"log.cleaner.backoff.ms": "5000", "minibroker.log.cleaner.idle.ms": "0"}
    rig = Rig(tmp_path / "data", settings)
    log = rig.log(cleanup_policy="compact")
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll()
    rig.check.note_change()
    rig.clock.advance(4999)
    assert rig.check.cleaner is None
    rig.clock.advance(1)
    await rig.round()
    assert values_of(log) == [b"2"]
    rig.check.close()
    rig.timers.close()
    abandon(rig.manager)


async def test_close_ends_what_is_to_come(rig: Rig) -> None:
    log = rig.log(cleanup_policy="compact")
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    rig.check.note_change()
    rig.check.close()
    rig.clock.advance(10_000)
    assert len(values_of(log)) == 2
