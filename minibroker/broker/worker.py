"""Worker threads: a worker runs tasks that may block, in the order of the calls.

`Workers` holds all of a broker. Each log directory has some of its own (`DirectoryWorkers`), so
that a disk that hangs stops only its own partitions. An idle worker has no cost, and a task in the
queue costs only itself: ten thousand new partitions add ten thousand tasks at once. The loop never
waits for a worker. A task that fails is logged. A disk error is also reported to the loop, which
may take the log directory offline.
"""

from __future__ import annotations

import logging
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Final, TypeVar

from minibroker.kafka.errors import MinibrokerError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    Done = Callable[[MinibrokerError | OSError | None], None]
    """The loop calls it when a task has ended, with its error or None."""

    class Loop(Protocol):
        """The event loop, as a worker sees it."""

        def call_soon_threadsafe(self, callback: Callable[[], None], /) -> object:
            """Call `callback` on the loop; any thread. Raises RuntimeError where the loop is
            closed.
            """

    class Runner(Protocol):
        """Runs tasks that may block: a `Worker`, or the `Caller` where there is no loop."""

        def run_later(self, task: Callable[[], None], /) -> None:
            """Run a task. Its error is logged, and a disk's error is reported."""

        def run_then(self, task: Callable[[], None], done: Done, /) -> None:
            """Run a task, then call `done` on the loop with its error, or None."""

        def run_reported(self, task: Callable[[], None], done: Done, /) -> None:
            """Do the same as `run_then`, and handle an error of the task as `run_later` does,
            too.
            """

    class Runners(Protocol):
        """The runners of the log directories, one for each."""

        def of(self, path: str, /) -> Runner:
            """Return the runner of the log directory `path`."""


logger = logging.getLogger(__name__)

Result = TypeVar("Result")

LONG_LANES: Final = 2
"""Workers of a broker that check large batches (`partitions/checking.py`)."""


class Caller:
    """Runs every task at once, on the calling thread: the runner of tools and tests."""

    def run_later(self, task: Callable[[], None]) -> None:
        """Run the task. Raises what the task raises."""
        task()

    def run_then(self, task: Callable[[], None], done: Done) -> None:
        """Run the task, then `done`. Raises what is no MinibrokerError and no OSError."""
        try:
            task()
        except (MinibrokerError, OSError) as error:
            done(error)
        else:
            done(None)

    def run_reported(self, task: Callable[[], None], done: Done) -> None:
        """Run the task, then `done`. Raises MinibrokerError, OSError of the task; any other
        exception is logged, and `done` gets a MinibrokerError that names it.
        """
        try:
            task()
        except (MinibrokerError, OSError):
            raise
        except Exception as error:
            logger.exception("background work failed: %r", task)
            done(MinibrokerError(f"background work failed: {error!r}"))
        else:
            done(None)


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

    def run_reported(self, task: Callable[[], None], done: Done) -> None:
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

    def run_then(self, task: Callable[[], None], done: Done) -> None:
        """Run a task that may block, then call `done` on the loop with its exception, or None.
        An exception that nobody expected is logged, and `done` gets a MinibrokerError that names
        it. After `close` neither is called, not even `done` of a task that has ended.
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
            self._tell(done, failure)

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


class DirectoryWorkers:
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


class _Everywhere:
    """The same runner for every log directory."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def of(self, _path: str) -> Runner:
        return self._runner


class Workers:
    """All workers of a broker. Constant after construction; the loop begins and closes them."""

    __slots__ = ("_threads", "checks", "common", "files", "flushes", "long_checks", "reads")

    def __init__(
        self,
        common: Runner,
        *,
        files: Runners,
        flushes: Runners,
        reads: Runners,
        checks: Runner,
        long_checks: Sequence[Runner],
        threads: Sequence[Worker | DirectoryWorkers] = (),
    ) -> None:
        """Make them with `threads_of` or `by`. `threads`: those that `begin` and `close` handle."""
        self.common = common
        """Work that belongs to no log directory: parts of journals, assignments, maps."""
        self.files = files
        """Changes of the files of a log directory."""
        self.flushes = flushes
        """Fsyncs that producers wait for; each begins with its first."""
        self.reads = reads
        """Reads that consumers wait for."""
        self.checks = checks
        """Checks of batches that take some ms."""
        self.long_checks = long_checks
        """Checks of batches that take longer, one batch each at a time."""
        self._threads = threads

    @classmethod
    def threads_of(
        cls, on_storage_error: Callable[[StorageError], None], *, long_checks: int
    ) -> Workers:
        """Return workers with threads of their own, `long_checks` of them for long checks.
        `on_storage_error` as for `Worker`.
        """
        common = Worker(on_storage_error)
        files = DirectoryWorkers(on_storage_error, "minibroker-files")
        flushes = DirectoryWorkers(on_storage_error, "minibroker-flush")
        reads = DirectoryWorkers(on_storage_error, "minibroker-read")
        checks = Worker(on_storage_error, "minibroker-check")
        long = [
            Worker(on_storage_error, f"minibroker-long-check-{number}")
            for number in range(long_checks)
        ]
        return cls(
            common,
            files=files,
            flushes=flushes,
            reads=reads,
            checks=checks,
            long_checks=long,
            threads=(common, files, flushes, reads, checks, *long),
        )

    @classmethod
    def by(cls, runner: Runner) -> Workers:
        """Return workers that leave everything to `runner`, which the caller begins and closes."""
        directories = _Everywhere(runner)
        return cls(
            runner,
            files=directories,
            flushes=directories,
            reads=directories,
            checks=runner,
            long_checks=[runner],
        )

    def begin(self, loop: Loop) -> None:
        """Report errors on this loop from now on."""
        for thread in self._threads:
            thread.begin(loop)

    def close(self) -> None:
        """Run all tasks in the queues, then end the threads."""
        for thread in self._threads:
            thread.close()


AT_ONCE: Final = Workers.by(Caller())
"""No threads: every task runs at once. For tools and tests."""
