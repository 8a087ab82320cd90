"""The first step of a coroutine, taken at once.

A task begins in the next turn of the loop, and its end is told in the turn behind. A handler whose
coroutine seldom waits, as the tree of a broker that stands alone is written at once, does without.
"""

from __future__ import annotations

import asyncio
from types import coroutine
from typing import TYPE_CHECKING, Any, TypeVar

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
    return asyncio.shield(asyncio.get_running_loop().create_task(_end(work, awaited)))


@coroutine
def _end(work: Coroutine[Any, Any, T], awaited: Any) -> Generator[Any, Any, T]:
    """Run the rest of a coroutine, which waits for `awaited`; return its result."""
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
