"""A coroutine is begun at once, and ends in a task only where it waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.first_step import begin

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


async def test_a_coroutine_that_waits_for_nothing_is_done_at_once() -> None:
    async def work() -> str:
        async with asyncio.Lock():
            return "done"

    tasks = asyncio.all_tasks()
    assert begin(work()) == "done"
    assert asyncio.all_tasks() == tasks


async def test_an_error_before_it_waits_is_raised_at_once() -> None:
    async def work() -> None:
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        begin(work())


async def test_the_future_has_the_result_of_a_coroutine_that_waits_again_and_again() -> None:
    first, second = (asyncio.get_running_loop().create_future() for _ in range(2))

    async def work() -> list[int]:
        values = [await first]
        await asyncio.sleep(0)
        return [*values, await second]

    future = begin(work())
    assert isinstance(future, asyncio.Future)
    first.set_result(1)
    second.set_result(2)
    assert await future == [1, 2]


async def test_a_coroutine_that_only_lets_others_run_ends_too() -> None:
    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    future = begin(work())
    assert isinstance(future, asyncio.Future)
    assert await future == "done"


async def test_an_error_of_what_it_waits_for_is_raised_where_it_waits() -> None:
    waited = asyncio.get_running_loop().create_future()

    async def work() -> str:
        try:
            await waited
        except ValueError as error:
            return f"met {error}"
        return "met nothing"

    future = begin(work())
    assert isinstance(future, asyncio.Future)
    waited.set_exception(ValueError("trouble"))
    assert await future == "met trouble"


async def test_a_later_error_is_the_futures() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise ValueError("refused")

    future = begin(work())
    assert isinstance(future, asyncio.Future)
    with pytest.raises(ValueError, match="refused"):
        await future


async def test_work_that_began_goes_on_when_nobody_waits_for_it_any_more() -> None:
    lock, is_done = asyncio.Lock(), asyncio.Event()

    async def work() -> None:
        async with lock:
            is_done.set()

    await lock.acquire()
    future = begin(work())
    assert isinstance(future, asyncio.Future)
    future.cancel()
    lock.release()
    async with asyncio.timeout(60):
        await is_done.wait()


@pytest.mark.parametrize("others_begin", ["before", "behind"])
async def test_another_task_may_wait_for_the_same_future(others_begin: str) -> None:
    shared = asyncio.get_running_loop().create_future()

    async def work() -> int:
        return int(await shared)

    start: Callable[[Coroutine[None, None, int]], asyncio.Task[int]] = asyncio.create_task
    if others_begin == "before":
        other = start(work())
        future = begin(work())
    else:
        future = begin(work())
        other = start(work())
    assert isinstance(future, asyncio.Future)
    await asyncio.sleep(0)
    shared.set_result(1)
    assert await asyncio.gather(other, future) == [1, 1]
