"""Long work in slices: others have the loop between two of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker import slices
from minibroker.slices import run_in_slices

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    seen = []
    while len(done) < 3:
        seen.append(len(done))
        await asyncio.sleep(0)
    assert seen == [1, 2]


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
