"""Long work in slices: others have the loop between two of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker import slices
from minibroker.broker.slices import (
    TimeSlice,
    Unfinished,
    begin_in_slices,
    collect,
    complete_in_slices,
    end_in_slices,
    gather,
    run_all,
    run_in_slices,
    run_rest,
    run_slice,
)
from tests.support.turns import Turns
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.broker.slices import Steps


@pytest.fixture(autouse=True)
def long_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """No slice ends by itself, on a busy machine either; tests make slices of no length."""
    monkeypatch.setattr(slices, "SLICE_S", 60.0)


def counted(done: list[int], count: int) -> Iterator[None]:
    for number in range(count):
        done.append(number)
        yield


async def test_short_work_is_done_at_once() -> None:
    done: list[int] = []
    run_in_slices(counted(done, 3))
    assert done == [0, 1, 2]


async def test_others_have_the_loop_between_two_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    done: list[int] = []
    run_in_slices(counted(done, 3))
    counts = []
    while len(done) < 3:
        counts.append(len(done))
        await asyncio.sleep(0)
    assert counts == [1, 2]


async def test_a_generator_that_is_closed_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    done: list[int] = []
    steps = counted(done, 3)
    run_in_slices(steps)
    steps.close()
    await asyncio.sleep(0)
    assert done == [0]


async def test_an_error_of_a_step_is_the_callers() -> None:
    def failing() -> Iterator[None]:
        yield
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_in_slices(failing())


async def test_a_slice_that_is_over_gives_others_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    turns = Turns()
    assert await collect(range(100)) == list(range(100))
    assert turns.stop() >= 100


async def test_quick_work_is_done_in_one_slice() -> None:
    turns = Turns()
    assert await collect(range(100)) == list(range(100))
    assert turns.stop() == 0


async def test_a_pause_begins_a_new_slice() -> None:
    turn = TimeSlice(60.0)
    assert not turn.is_over
    turn._until_s = 0.0
    assert turn.is_over
    await turn.pause()
    assert not turn.is_over
    await asyncio.sleep(0)


async def test_work_that_fits_into_a_slice_needs_no_future() -> None:
    done: list[int] = []
    assert complete_in_slices(counted(done, 3)) is None
    assert done == [0, 1, 2]


async def test_the_end_of_longer_work_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    done: list[int] = []
    future = complete_in_slices(counted(done, 3))
    assert future is not None
    assert done == [0]
    await future
    assert done == [0, 1, 2]


async def test_work_goes_on_when_nobody_waits_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    done: list[int] = []
    future = complete_in_slices(counted(done, 3))
    assert future is not None
    future.cancel()
    await eventually(lambda: len(done) == 3)


async def test_the_future_has_the_error_of_a_later_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> Iterator[None]:
        yield
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        complete_in_slices(failing())
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    future = complete_in_slices(failing())
    assert future is not None
    with pytest.raises(ValueError, match="broken"):
        await future


async def test_work_that_was_begun_is_ended_later(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    assert begin_in_slices(counted(done, 3))
    assert done == [0, 1, 2]
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    steps = counted(done, 5)
    assert not begin_in_slices(steps)
    assert done == [0, 1, 2, 0, 1]
    turns = Turns()
    await end_in_slices(steps)
    assert turns.stop() >= 3
    assert done == [0, 1, 2, 0, 1, 2, 3, 4]


def summed(count: int) -> Steps[int]:
    total = 0
    for number in range(count):
        total += number
        yield
    return total


async def test_a_slice_ends_where_its_time_is_over_and_the_rest_is_done_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run_slice(summed(5), TimeSlice()) == 10
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    steps = summed(5)
    turn = TimeSlice()
    with pytest.raises(Unfinished):
        run_slice(steps, turn)
    turns = Turns()
    assert await run_rest(steps, turn) == 10
    assert turns.stop() >= 4


def test_steps_may_be_run_at_once() -> None:
    assert run_all(summed(5)) == 10
    assert run_all(gather(str(number) for number in range(3))) == ["0", "1", "2"]
