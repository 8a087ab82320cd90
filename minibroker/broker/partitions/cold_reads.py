"""Readers that meet what is not in memory wait for the workers of the log directories.

Between a request and its answer, where a consumer lags, or where a log is looked at for the first
time: `storage/open_files.py` says why.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from minibroker.broker.slices import run_with_pauses
from minibroker.broker.storage.open_files import ColdError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from minibroker.broker.slices import Steps

__all__ = ["ROUNDS_MAX", "ColdError", "answer_resident", "warm"]

T = TypeVar("T")

ROUNDS_MAX: Final = 8
"""So often a reader tries again. The system may drop pages as fast as they are read; then the
reader waits for the disk on the loop, as it gets no further otherwise."""


def answer_resident(
    answer: Callable[[list[ColdError] | None], Steps[T]],
) -> Steps[T | Awaitable[T]]:
    """Return what the steps of `answer` return, an awaitable of it where it has to wait for the
    disk.

    `answer` adds to the list what it would have to wait for, and is called again when that is in
    memory. With None it waits for the disk itself.
    """
    cold: list[ColdError] = []
    response = yield from answer(cold)
    return _answer_when_resident(answer, cold) if cold else response


async def _answer_when_resident(
    answer: Callable[[list[ColdError] | None], Steps[T]], cold: list[ColdError]
) -> T:
    for _ in range(ROUNDS_MAX):
        await warm(cold)
        cold = []
        response = await run_with_pauses(answer(cold))
        if not cold:
            return response
    return await run_with_pauses(answer(None))


async def warm(cold: Iterable[ColdError]) -> None:
    """Return when the workers have read these ranges; each directory's worker takes its own."""
    await asyncio.gather(*(_warm_one(error) for error in cold))


def _warm_one(cold: ColdError) -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done() -> None:
        if not future.done():
            future.set_result(None)

    cold.load(done)
    return future
