"""A thread with a loop of its own."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from minibroker.testing.loop_thread import LoopThread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def test_a_thread_serves_between_begin_and_end() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        seen.append("begin")
        yield
        seen.append("end")

    thread = LoopThread(serving, on_end=lambda: seen.append("over"))
    thread.begin().result(10)
    with pytest.raises(RuntimeError, match="is running"):
        thread.begin()

    async def loop_is_its_own() -> bool:
        return asyncio.get_running_loop() is thread.loop

    assert thread.submit(loop_is_its_own()).result(10)
    ended = thread.end()
    assert ended is not None
    ended.result(10)
    thread.join()
    assert seen == ["begin", "end", "over"]
    assert not thread.is_running
    assert thread.end() is None


def test_a_start_that_fails_is_told_and_can_be_repeated() -> None:
    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        raise ValueError("no room")
        yield

    thread = LoopThread(serving)
    for _ in range(2):
        with pytest.raises(ValueError, match="no room"):
            thread.begin().result(10)
