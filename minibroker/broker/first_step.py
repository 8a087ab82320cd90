"""The first step of a coroutine, taken at once.

A task begins in the next turn of the loop, and its end is told in the turn behind. A handler whose
coroutine seldom waits, as the tree of a broker that stands alone is written at once, does without.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

T = TypeVar("T")


def begin(work: Coroutine[Any, Any, T]) -> T | asyncio.Future[T]:
    """Run a coroutine up to where it waits; return its result, or a future of it where it waits.

    The work goes on when the future is cancelled. Up to there the coroutine is in no task: it may
    not use `asyncio.timeout`. Raises what the coroutine raises up to there.
    """
    try:
        awaited = work.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    if awaited is not None:  # a future, which says that a task takes it from its coroutine now
        awaited._asyncio_future_blocking = False  # noqa: SLF001  others may wait for it before
    rest = _end(_Rest(work, awaited))
    return asyncio.shield(asyncio.get_running_loop().create_task(rest))


async def _end(rest: _Rest[T]) -> T:
    return await rest


class _Rest(Generic[T]):
    """The rest of a coroutine, which waits for `awaited`; to await it gives the result."""

    __slots__ = ("_awaited", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], awaited: Any) -> None:
        self._work = work
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, T]:
        work, awaited = self._work, self._awaited
        if awaited is not None:
            awaited._asyncio_future_blocking = True  # noqa: SLF001  see `begin`
        try:
            while True:
                try:
                    yield awaited
                except BaseException as error:
                    awaited = work.throw(error)
                else:
                    awaited = work.send(None)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]
