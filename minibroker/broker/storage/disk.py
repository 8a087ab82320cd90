"""The door of all logs to the disk: files, open handles, mapped windows, workers.

Each log directory has a `Disk` of its own, with workers of its own. Handles and windows are one
for all. Used by the loop's thread only; `run_later` gets tasks that may run on any thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.open_files import (
    HANDLES_MAX,
    HANDLES_SHARE,
    MAPPED_BYTES_MAX,
    ColdError,
    ColdTask,
    FileRange,
    Handles,
    RunLater,
    WarmedEnds,
    WarmTask,
    Windows,
)
from minibroker.broker.storage.partition_metadata import MetadataWriter
from minibroker.kafka.errors import MinibrokerError

if TYPE_CHECKING:
    from minibroker.broker.worker import RunThen

logger = logging.getLogger(__name__)

RunAfter = Callable[[int, Callable[[], None]], object]
"""Gets a delay in ms and what the loop calls then."""

PRODUCER_EXPIRATION_MS: Final = 86_400_000


def run_now(task: Callable[[], None]) -> None:
    """Run a task at once, on the calling thread: the `run_later` of tools and tests."""
    task()


def _nothing() -> None:
    """Do nothing: the `on_producers_loaded` of tools and tests, where nothing expires by itself."""


class Runner(Protocol):
    """A worker thread as storage sees it."""

    def run_later(self, task: Callable[[], None]) -> object:
        """Run what may block."""

    def run_reported(
        self, task: Callable[[], None], done: Callable[[MinibrokerError | OSError | None], None]
    ) -> object:
        """Run what may block, report its error, and call `done` on the loop with it, or None."""


class _Settings:
    """Settings of all disks of a broker. The loop sets it."""

    __slots__ = ("is_resident_only", "on_producers_loaded", "producer_expiration_ms")

    def __init__(self) -> None:
        self.is_resident_only = False
        self.producer_expiration_ms = PRODUCER_EXPIRATION_MS
        self.on_producers_loaded: Callable[[], None] = _nothing


class Disk:
    """The files of one log directory (`of`), with what all of them share: handles and windows.

    Constant after construction, but for the properties, which the loop sets.
    """

    __slots__ = (
        "_after",
        "_directories",
        "_reader_of",
        "_run_read",
        "_settings",
        "_warmed",
        "_worker_of",
        "epochs_lock",
        "files",
        "handles",
        "metadata",
        "names_lock",
        "run_after",
        "run_later",
        "run_then",
        "windows",
    )

    def __init__(
        self,
        files: Files = REAL_FILES,
        run_later: RunLater = run_now,
        *,
        after: RunAfter | None = None,
        run_then: RunThen | None = None,
        run_read: RunThen | None = None,
        worker_of: Callable[[str], Runner] | None = None,
        reader_of: Callable[[str], Runner] | None = None,
        handles_max: int = HANDLES_MAX,
        mapped_bytes_max: int = MAPPED_BYTES_MAX,
        shares: Disk | None = None,
    ) -> None:
        """`after`: timers of the loop. `worker_of`: who works for a log directory; None: the one
        that `run_later` and `run_then` stand for. `run_read` and `reader_of`: the same for reads
        of files that a client waits for. `shares`: whose handles and windows are used.
        """
        self.files = files
        self.run_later = run_later
        self.run_then = run_then or self._run_both
        self._run_read = run_read or self.run_then
        self._after = after
        self.run_after: RunAfter = self._run_after
        """Runs what may block after a delay in ms; tools and tests have no timers: now. On the
        loop."""
        self._worker_of = worker_of
        self._reader_of = reader_of
        self._directories: dict[str, Disk] = {}
        if shares is None:
            self._settings = _Settings()
            limit = min(handles_max, files.open_files_max() // HANDLES_SHARE)
            self.handles = Handles(files, limit)
            self.windows = Windows(files, run_later, mapped_bytes_max)
            self._warmed = WarmedEnds()
        else:
            self._settings = shares._settings  # noqa: SLF001  (its own class)
            self.handles = shares.handles
            self.windows = shares.windows
            self._warmed = shares._warmed  # noqa: SLF001  (its own class)
        self.metadata = MetadataWriter(files)
        """Used by tasks of `run_later` only."""
        self.names_lock = Lock()
        """Held while a worker makes a file, and while the loop takes a segment, snapshots or a
        log's directory out of service: not both at once. The loop waits for it only where it is
        about to change names on this very disk."""
        self.epochs_lock = Lock()
        """Held by the workers while one writes `leader-epoch-checkpoint`."""

    def of(self, path: str) -> Disk:
        """Return the disk of the log directory `path`: its work waits for no other directory."""
        disk = self._directories.get(path)
        if disk is None:
            run_later, run_then = self.run_later, self.run_then
            if self._worker_of is not None:
                worker = self._worker_of(path)
                run_later, run_then = worker.run_later, worker.run_reported
            run_read = run_then
            if self._reader_of is not None:
                run_read = self._reader_of(path).run_reported
            disk = Disk(
                self.files,
                run_later,
                after=self._after,
                run_then=run_then,
                run_read=run_read,
                shares=self,
            )
            self._directories[path] = disk
        return disk

    @property
    def producer_expiration_ms(self) -> int:
        """`producer.id.expiration.ms`: how long a silent producer is remembered by every log."""
        return self._settings.producer_expiration_ms

    @producer_expiration_ms.setter
    def producer_expiration_ms(self, value: int) -> None:
        self._settings.producer_expiration_ms = value

    @property
    def on_producers_loaded(self) -> Callable[[], None]:
        """Called on the loop when a log has read producers from the disk: they are to expire."""
        return self._settings.on_producers_loaded

    @on_producers_loaded.setter
    def on_producers_loaded(self, listener: Callable[[], None]) -> None:
        self._settings.on_producers_loaded = listener

    @contextmanager
    def resident_only(self) -> Iterator[None]:
        """Let reads in this block raise ColdError instead of waiting for the disk. On the loop."""
        self._settings.is_resident_only = True
        try:
            yield
        finally:
            self._settings.is_resident_only = False

    def pread(self, path: str, size: int, position: int) -> bytes | bytearray:
        """`size` bytes of a file, less only at its end. Raises OSError, ColdError."""
        if not self._settings.is_resident_only:
            return self.files.pread(self.handles.get(path), size, position)
        if self.handles.is_open(path):
            found = self.files.pread_resident(self.handles.get(path), size, position)
            if found is not None:
                return found
        raise self._cold_range(FileRange(path, position, size))

    def slice(self, path: str, position: int, size: int, file_size: int) -> memoryview:
        """`size` bytes of a file, mapped; they exist. Raises OSError, ColdError."""
        if self._settings.is_resident_only:
            wanted = FileRange(path, position, size)
            if (
                not self.handles.is_open(path)
                or self._warmed.is_crossed(wanted)
                or not self.files.is_resident(self.handles.get(path), size, position)
            ):
                raise self._cold_range(wanted)
        return self.windows.slice(path, self.handles.get(path), position, size, file_size)

    @property
    def is_resident_only(self) -> bool:
        """Return whether this is a read that must not wait for the disk."""
        return self._settings.is_resident_only

    def cold(self, what: str, task: ColdTask) -> ColdError:
        """Return the error that says that `what` is not in memory; `task` brings it there."""
        return ColdError(f"{what}: not in memory", task, self.run_then)

    def _cold_range(self, wanted: FileRange) -> ColdError:
        task = WarmTask(self.files, self.handles, self._warmed, wanted)
        what = f"{wanted.size} bytes at {wanted.position} of {wanted.path}"
        # It changes no name and no file, so it need not wait for what the worker has to do.
        return ColdError(f"{what}: not in memory", task, self._run_read)

    def _run_after(self, delay_ms: int, task: Callable[[], None]) -> None:
        if self._after is None:
            self.run_later(task)
        else:
            self._after(delay_ms, partial(self._run_later, task))

    def _run_later(self, task: Callable[[], None]) -> None:
        self.run_later(task)

    def _run_both(
        self, task: Callable[[], None], done: Callable[[MinibrokerError | OSError | None], None]
    ) -> None:
        """Run both at once: the `run_then` of tools and tests, which have no loop. An error of a
        disk is raised; `done` gets any other, as from a worker.
        """

        def run() -> None:
            try:
                task()
            except (MinibrokerError, OSError):
                raise
            except Exception as error:
                logger.exception("background work failed: %r", task)
                done(MinibrokerError(f"background work failed: {error!r}"))
            else:
                done(None)

        self.run_later(run)

    def remove(self, path: str) -> None:
        """Close and remove a file; one that is not there is no error. Raises OSError otherwise."""
        self.handles.forget(path)
        self.windows.forget(path)
        try:
            self.files.remove(path)
        except FileNotFoundError:
            return

    def close(self) -> None:
        self.handles.close()
        self.windows.close()
