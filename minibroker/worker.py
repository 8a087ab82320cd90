"""The broker's one worker thread: what may block is done here, in the order it was asked for.

Idle it costs nothing, and a task in the queue no more than itself: ten thousand partitions that are
made at once ask for ten thousand files. The loop never waits for it. What a task cannot do is
said in the log, and a disk that refused is told to the loop, which may have to take a log directory
offline.
"""

from __future__ import annotations

import logging
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from minibroker.errors import MinibrokerError, StorageError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

logger = logging.getLogger(__name__)

Found = TypeVar("Found")


class Worker:
    """`begin` with the loop, `close` when the loop needs nothing more of it."""

    def __init__(self, on_storage_error: Callable[[StorageError], None]) -> None:
        """`on_storage_error` is called on the loop, for every StorageError of a task."""
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._is_closed = False
        self._on_storage_error = on_storage_error
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Errors are told on this loop from now on."""
        self._loop = loop

    def run_later(self, task: Callable[[], None]) -> None:
        """Run what may block; after `close`, at once, on the calling thread."""
        if self._is_closed:
            task()
        else:
            self._submit(task)

    def run_applied(self, task: Callable[[], None], apply: Callable[[], None]) -> None:
        """Run what may block, then call `apply` on the loop. If the task raises, this is said as
        for `run_later`, and `apply` is not called. After `close` both run at once, on the calling
        thread.
        """
        if self._is_closed:
            task()
            apply()
            return

        def run() -> None:
            task()
            self._tell(lambda _: apply(), None)

        self._submit(run)

    def run_then(
        self, task: Callable[[], None], done: Callable[[MinibrokerError | OSError | None], None]
    ) -> None:
        """Run what may block, then call `done` on the loop with what went wrong, None: nothing.

        After `close` neither is called, not even of a task that had ended before.
        """
        if self._loop is None:
            return

        def run() -> None:
            failure: MinibrokerError | OSError | None = None
            try:
                task()
            except (MinibrokerError, OSError) as error:
                failure = error
            self._tell(done, failure)

        self._submit(run)

    def close(self) -> None:
        """Do what was asked for, and end."""
        self._loop = None
        self._is_closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _submit(self, task: Callable[[], None]) -> None:
        """The first task starts the thread."""
        if self._thread is None:
            self._thread = Thread(target=self._work, name="minibroker-worker", daemon=True)
            self._thread.start()
        self._queue.put(task)

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            try:
                self._run(task)
            except Exception:  # the root of the thread: a bug of ours, and the next task runs
                logger.exception("background work failed: %r", task)

    def _run(self, task: Callable[[], None]) -> None:
        try:
            task()
        except (MinibrokerError, OSError) as error:
            logger.error("background work failed: %s", error)
            if isinstance(error, StorageError):
                self._tell(self._on_storage_error, error)

    def _tell(self, listener: Callable[[Found], None], found: Found) -> None:
        """Have the loop call `listener`, unless the worker is closed by then."""

        def tell() -> None:
            if self._loop is not None:
                listener(found)

        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(tell)
