"""Worker threads: a worker runs tasks that may block, in the order of the calls.

Each log directory has workers of its own (`Workers`), so that a disk that hangs stops only its own
partitions. An idle worker has no cost, and a task in the queue costs only itself: ten thousand new
partitions add ten thousand tasks at once. The loop never waits for a worker. A task that fails is
logged. A disk error is also reported to the loop, which may take the log directory offline.
"""

from __future__ import annotations

import logging
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Protocol, TypeVar

from minibroker.kafka.errors import MinibrokerError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    RunThen = Callable[
        [Callable[[], None], Callable[[MinibrokerError | OSError | None], None]], object
    ]
    """Gets work that may block, and what the loop calls then, with its error or None."""

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class Loop(Protocol):
    """The event loop, as a worker sees it."""

    def call_soon_threadsafe(self, callback: Callable[[], None], /) -> object:
        """Call `callback` on the loop; any thread. Raises RuntimeError where the loop is closed."""


class Worker:
    """A thread and its queue of tasks. Call `begin` with the loop first, and `close` at the end."""

    def __init__(
        self, on_storage_error: Callable[[StorageError], None], name: str = "minibroker-worker"
    ) -> None:
        """`on_storage_error` is called on the loop for each StorageError of a task. `name` is the
        name of the thread.
        """
        self._name = name
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._is_closed = False
        self._on_storage_error = on_storage_error
        self._loop: Loop | None = None

    def begin(self, loop: Loop) -> None:
        """Report errors on this loop from now on."""
        self._loop = loop

    def run_later(self, task: Callable[[], None]) -> None:
        """Run a task that may block; after `close` it runs at once, on the calling thread."""
        if self._is_closed:
            task()
        else:
            self._submit(task)

    def run_reported(
        self, task: Callable[[], None], done: Callable[[MinibrokerError | OSError | None], None]
    ) -> None:
        """Do the same as `run_then`, and handle an error of the task as in `run_later`, too. After
        `close` both run at once, on the calling thread, and the error is raised.
        """
        if self._is_closed:
            task()
            done(None)
            return

        def run() -> None:
            try:
                task()
            except (MinibrokerError, OSError) as error:
                self._tell(done, error)
                raise
            except Exception as error:  # a bug of ours: whoever waits must not wait for ever
                self._tell(done, MinibrokerError(f"background work failed: {error!r}"))
                raise
            self._tell(done, None)

        self._submit(run)

    def run_then(
        self, task: Callable[[], None], on_done: Callable[[MinibrokerError | OSError | None], None]
    ) -> None:
        """Run a task that may block, then call `on_done` on the loop with its exception, or None.
        An exception that nobody expected is logged, and `on_done` gets a MinibrokerError that names
        it. After `close` neither is called, not even `on_done` of a task that has ended.
        """
        if self._loop is None:
            return

        def run() -> None:
            failure: MinibrokerError | OSError | None = None
            try:
                task()
            except (MinibrokerError, OSError) as error:
                failure = error
            except Exception as error:  # a bug of ours: whoever waits must not wait for ever
                logger.exception("background work failed: %r", task)
                failure = MinibrokerError(f"background work failed: {error!r}")
            self._tell(on_done, failure)

        self._submit(run)

    def close(self) -> None:
        """Run the tasks in the queue, then end the thread."""
        self._loop = None
        self._is_closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _submit(self, task: Callable[[], None]) -> None:
        """Queue a task; the first task starts the thread."""
        if self._thread is None:
            self._thread = Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._queue.put(task)

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            try:
                self._run(task)
            except Exception:  # the root of the thread: a bug of minibroker; the next task runs
                logger.exception("background work failed: %r", task)

    def _run(self, task: Callable[[], None]) -> None:
        try:
            task()
        except (MinibrokerError, OSError) as error:
            logger.error("background work failed: %s", error)
            if isinstance(error, StorageError):
                self._tell(self._on_storage_error, error)

    def _tell(self, listener: Callable[[Result], None], result: Result) -> None:
        """Have the loop call `listener`, unless the worker is closed by then."""

        def tell() -> None:
            if self._loop is not None:
                listener(result)

        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(tell)


class Workers:
    """The workers of the log directories, one for each. The loop owns it."""

    def __init__(self, on_storage_error: Callable[[StorageError], None], name: str) -> None:
        """`on_storage_error` as for `Worker`. `name` and the path make the name of each thread."""
        self._on_storage_error = on_storage_error
        self._name = name
        self._workers: dict[str, Worker] = {}
        self._loop: Loop | None = None

    def of(self, path: str) -> Worker:
        """Return the worker of the log directory `path`."""
        worker = self._workers.get(path)
        if worker is None:
            worker = Worker(self._on_storage_error, f"{self._name} {path}")
            self._workers[path] = worker
            if self._loop is not None:
                worker.begin(self._loop)
        return worker

    def begin(self, loop: Loop) -> None:
        """Report errors on this loop from now on."""
        self._loop = loop
        for worker in self._workers.values():
            worker.begin(loop)

    def close(self) -> None:
        """Run all tasks in the queues, then end the threads."""
        for worker in self._workers.values():
            worker.close()
