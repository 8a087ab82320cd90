"""Answers that wait for other brokers, for as long as the request allows.

They are futures and not coroutines: a coroutine takes a place of a task (`queued.max.requests`),
and clients that wait for a slow follower would keep the next ones from making a topic.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

R = TypeVar("R")


def when_all_done(waits: Sequence[asyncio.Future[None]], response: R) -> asyncio.Future[R]:
    """Return a future of the response, which is done when all of `waits` are. They go on when it is
    cancelled.
    """
    answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
    open_count = len(waits)

    def count(_wait: asyncio.Future[None]) -> None:
        nonlocal open_count
        open_count -= 1
        if not open_count and not answer.done():
            answer.set_result(response)

    for wait in waits:
        wait.add_done_callback(count)
    return answer
