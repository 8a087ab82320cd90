"""Housekeeping: armed by an append, idle without one, checkpoints on the worker."""

import asyncio
from collections.abc import Callable

from minibroker.config.broker import BrokerConfig
from minibroker.config.dynamic import DynamicConfig
from minibroker.partitions.housekeeping import Housekeeping
from tests.support.in_process import ManualClock

SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": "1",
    "producer.id.expiration.check.interval.ms": "1",
    "producer.id.expiration.ms": "5000",
}


class Logs:
    """Counts what is asked of it; `producers_left` is what a look at the producers finds."""

    def __init__(self, producers_left: int = 0) -> None:
        self.producers_left = producers_left
        self.looks: list[tuple[int, int]] = []
        self.looked = asyncio.Event()

    def checkpoint_now(self) -> None:
        """Only handed on, never called here."""

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> int:
        self.looks.append((now_ms, expiration_ms))
        self.looked.set()
        return self.producers_left


def make(logs: Logs, work: "asyncio.Queue[Callable[[], None]]") -> Housekeeping:
    return Housekeeping(
        logs=logs,  # type: ignore[arg-type]
        dynamic=DynamicConfig(BrokerConfig(SETTINGS)),
        clock=ManualClock(7_000),
        run_later=work.put_nowait,
    )


async def test_an_append_brings_one_checkpoint_on_the_worker() -> None:
    logs, work = Logs(), asyncio.Queue[Callable[[], None]]()
    housekeeping = make(logs, work)
    for _ in range(3):
        housekeeping.note_change()
    assert await asyncio.wait_for(work.get(), 5) == logs.checkpoint_now
    assert work.empty()
    housekeeping.note_change()
    assert await asyncio.wait_for(work.get(), 5) == logs.checkpoint_now


async def test_producers_are_looked_at_with_the_time_and_the_limit() -> None:
    logs = Logs()
    housekeeping = make(logs, asyncio.Queue())
    housekeeping.note_change()
    await asyncio.wait_for(logs.looked.wait(), 5)
    assert logs.looks == [(7_000, 5_000)]


async def test_the_look_is_repeated_while_producers_are_left() -> None:
    logs = Logs(producers_left=1)
    housekeeping = make(logs, asyncio.Queue())
    housekeeping.note_change()
    for _ in range(3):
        await asyncio.wait_for(logs.looked.wait(), 5)
        logs.looked.clear()
    housekeeping.close()
    assert len(logs.looks) == 3


async def test_nothing_happens_after_close() -> None:
    logs, work = Logs(), asyncio.Queue[Callable[[], None]]()
    housekeeping = make(logs, work)
    housekeeping.note_change()
    housekeeping.close()
    ended = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.005, ended.set_result, None)
    await ended
    assert not logs.looks
    assert work.empty()
