"""Work that waits for another machine: a name server, an identity provider.

Each piece of work has a thread of its own, which is a daemon: a stop of the broker does not wait
for an answer that comes late or never. Threads of the loop's executor are joined at the end of a
process, so they get only work that ends by itself.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


def in_daemon(work: Callable[[], Result], name: str) -> asyncio.Future[Result]:
    """Begin `work` on a thread of this name; return the future of its result, or of its error. If
    the future is cancelled, the work goes on and its result is dropped. Call it on the loop.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()
    future.add_done_callback(mark_retrieved)

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # the caller gets it, whatever it is
            settle: Callable[[], None] = partial(_settle, future, error, None)
        else:
            settle = partial(_settle, future, None, result)
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            loop.call_soon_threadsafe(settle)

    Thread(target=run, name=name, daemon=True).start()
    return future


def _settle(future: asyncio.Future[Any], error: Exception | None, result: Any) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


def mark_retrieved(future: asyncio.Future[Any]) -> None:
    """Read the error, so that asyncio does not log it if nobody waits any more."""
    if not future.cancelled():
        future.exception()
