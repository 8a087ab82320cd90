"""Compaction keeps to its rate and rests between pieces of work."""

from __future__ import annotations

import pytest

from minibroker.broker.storage.compaction.round_thread import (
    SLICE_S,
    BoundedPace,
    napper,
)


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
