"""A round on its thread: the loop swaps, and can always end it."""

from __future__ import annotations

import queue
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.compaction.cleaner import plan_round
from minibroker.broker.storage.compaction.cleaner_settings import CleanerSettings
from minibroker.broker.storage.compaction.round_thread import (
    SLICE_S,
    BoundedPace,
    RoundEnd,
    RoundThread,
    napper,
)
from minibroker.broker.storage.compaction.selection import candidate_of
from minibroker.broker.worker import Caller
from minibroker.kafka.errors import StorageError
from tests.support.compaction import facts_of, put
from tests.support.logs import NOW_MS, ManualClock, NewLog, values_of
from tests.support.runners import TestRunner

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.partition_log import PartitionLog


class Stopped(Exception):  # noqa: N818
    pass


class World:
    """Time that passes by working and by waiting."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.waited_s = 0.0
        self.nap_count = 0
        self.is_stopping = False

    def wait(self, seconds: float) -> bool:
        self.now_s += seconds
        self.waited_s += seconds
        return self.is_stopping

    def nap(self) -> None:
        self.now_s += SLICE_S
        self.nap_count += 1

    def pace(self, bytes_per_second: float = 1e300) -> BoundedPace:
        def stop() -> None:
            raise Stopped

        return BoundedPace(
            bytes_per_second,
            monotonic_s=lambda: self.now_s,
            wait=self.wait,
            nap=self.nap,
            on_stop=stop,
        )


def test_so_many_bytes_a_second_and_no_more() -> None:
    world = World()
    pace = world.pace(1000)
    for _ in range(50):
        world.now_s += 0.01  # the work is quicker than the rate
        pace.spent(100)
    assert world.now_s - 100 == pytest.approx(5.0)


def test_without_a_rate_it_does_not_wait() -> None:
    world = World()
    pace = world.pace()
    for _ in range(100):
        pace.spent(1 << 20)
    assert world.waited_s == 0


def test_it_naps_after_every_slice_of_work() -> None:
    world = World()
    pace = world.pace()
    for _ in range(10):
        world.now_s += SLICE_S * 0.6
        pace.breathe()
        world.now_s += SLICE_S * 0.6
        pace.breathe()
    assert world.nap_count == 10
    world.now_s += SLICE_S * 100
    pace.breathe()
    assert world.nap_count == 11


def test_a_nap_ends_by_itself() -> None:
    nap = napper()
    assert nap() is False
    assert nap() is False


def test_a_stop_ends_the_round() -> None:
    world = World()
    pace = world.pace()
    pace.spent(1)
    world.is_stopping = True
    with pytest.raises(Stopped):
        pace.spent(1)


WAIT_S = 180
SETTINGS = CleanerSettings(True, 1 << 20, 0.9, 1 << 19, 1e300, 15_000, 1000, 300_000)


class Loop:
    """Takes calls from the thread; the test makes them."""

    def __init__(self) -> None:
        self.calls: queue.Queue[Callable[[], None]] = queue.Queue()
        self.ends: list[RoundEnd] = []
        self.run_later: Callable[[Callable[[], None]], object] = Caller().run_later
        self.is_gone = False

    def call_soon(self, call: Callable[[], None]) -> None:
        if self.is_gone:
            raise RuntimeError("Event loop is closed")
        self.calls.put(call)

    def turn(self) -> None:
        self.calls.get(timeout=WAIT_S)()

    def begin(self, log: PartitionLog) -> RoundThread:
        work = plan_round(log, candidate_of(facts_of(log), NOW_MS), NOW_MS)
        thread = RoundThread(
            work,
            SETTINGS,
            clock=ManualClock(),
            files=log.files,
            call_soon=self.call_soon,
            worker=TestRunner(self.run_later),
            on_end=self.ends.append,
        )
        thread.start()
        return thread


def dirty(new_log: NewLog) -> PartitionLog:
    log = new_log(cleanup_policy="compact")
    for number in range(10):
        put(log, (b"a", b"%d" % number))
    log.roll()
    return log


def cleaned_files(log: PartitionLog) -> list[Path]:
    return [path for path in Path(log.directory).iterdir() if path.suffix in (".cleaned", ".swap")]


def test_the_loop_swaps_and_hears_of_the_end(new_log: NewLog) -> None:
    log, loop = dirty(new_log), Loop()
    thread = loop.begin(log)
    assert len(values_of(log)) == 10
    loop.turn()
    assert values_of(log) == [b"9"]
    loop.turn()
    thread.join()
    (end,) = loop.ends
    assert (end.end_offset, end.error) == (10, None)
    assert (end.stats.read_count, end.stats.kept_count) == (10, 1)


def test_a_swap_is_done_when_its_names_are_synced(new_log: NewLog) -> None:
    """The worker comes to it in the order of what it was given: the sync is before."""
    log, loop = dirty(new_log), Loop()
    later: list[Callable[[], None]] = []
    loop.run_later = later.append
    thread = loop.begin(log)
    loop.turn()
    assert thread._call is not None
    assert not thread._call.done.is_set()
    assert values_of(log) == [b"9"]
    for task in later:
        task()
    loop.turn()
    thread.join()
    assert [end.end_offset for end in loop.ends] == [10]


def test_a_stop_ends_a_wait_for_the_loop(new_log: NewLog) -> None:
    log, loop = dirty(new_log), Loop()
    thread = loop.begin(log)
    swap = loop.calls.get(timeout=WAIT_S)
    thread.stop()
    swap()  # the loop comes to it too late
    assert len(values_of(log)) == 10
    loop.turn()
    assert loop.ends[0].end_offset is None


def test_a_stop_after_the_swap_changes_nothing(new_log: NewLog) -> None:
    log, loop = dirty(new_log), Loop()
    thread = loop.begin(log)
    loop.turn()
    thread.stop()
    loop.turn()
    assert values_of(log) == [b"9"]
    assert loop.ends[0].end_offset == 10


def test_a_loop_that_is_gone_ends_the_round(new_log: NewLog) -> None:
    log, loop = dirty(new_log), Loop()
    loop.is_gone = True
    loop.begin(log).join()
    assert loop.ends == []
    assert len(values_of(log)) == 10


def test_a_swap_that_the_disk_refuses_is_the_rounds_error(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, loop = dirty(new_log), Loop()
    refused = StorageError("no room")

    def refuse(*_: object) -> bool:
        raise refused

    monkeypatch.setattr("minibroker.broker.storage.compaction.cleaning.replace_segments", refuse)
    thread = loop.begin(log)
    loop.turn()
    loop.turn()
    thread.join()
    assert loop.ends[0].error is refused


def test_a_fault_of_ours_is_told_as_well(new_log: NewLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log, loop = dirty(new_log), Loop()
    monkeypatch.setattr(
        "minibroker.broker.storage.compaction.cleaning.read_rows", lambda *_: 1 // 0
    )
    loop.begin(log).join()
    loop.turn()
    assert isinstance(loop.ends[0].error, ZeroDivisionError)
    assert cleaned_files(log) == []
