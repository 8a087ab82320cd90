"""The door of all logs to the disk: files, open handles, mapped windows, workers.

Each log directory has a `Disk` of its own, with workers of its own. Handles and windows are one
for all. Used by the loop's thread only; `worker` runs the tasks that may run on any thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final

from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.gathered import Gathered
from minibroker.broker.storage.open_files import (
    HANDLES_MAX,
    HANDLES_SHARE,
    MAPPED_BYTES_MAX,
    ColdError,
    ColdTask,
    FileRange,
    Handles,
    WarmedEnds,
    WarmTask,
    Windows,
)
from minibroker.broker.storage.partition_metadata import MetadataWriter
from minibroker.broker.worker import AT_ONCE

if TYPE_CHECKING:
    from minibroker.broker.storage.gathered import CallLater
    from minibroker.broker.worker import Workers

RunAfter = Callable[[int, Callable[[], None]], object]
"""Gets a delay in ms and what the loop calls then."""

PRODUCER_EXPIRATION_MS: Final = 86_400_000


def _nothing() -> None:
    """Do nothing: the `on_producers_loaded` of tools and tests, where nothing expires by itself."""


class _Settings:
    """Settings of all disks of a broker. The loop sets it."""

    __slots__ = ("is_resident_only", "on_producers_loaded", "producer_expiration_ms")

    def __init__(self) -> None:
        self.is_resident_only = False
        self.producer_expiration_ms = PRODUCER_EXPIRATION_MS
        self.on_producers_loaded: Callable[[], None] = _nothing


class _ResidentOnly:
    """Lets reads in its block raise ColdError instead of waiting for the disk. On the loop."""

    __slots__ = ("_settings",)

    def __init__(self, settings: _Settings) -> None:
        self._settings = settings

    def __enter__(self) -> None:
        self._settings.is_resident_only = True

    def __exit__(self, *_error: object) -> None:
        self._settings.is_resident_only = False


class Disk:
    """The files of one log directory (`of`), with what all of them share: handles and windows.

    Constant after construction, but for the properties, which the loop sets.
    """

    __slots__ = (
        "_after",
        "_call_later",
        "_directories",
        "_reader",
        "_settings",
        "_warmed",
        "_workers",
        "epochs_lock",
        "files",
        "gathered",
        "handles",
        "metadata",
        "names_lock",
        "resident_only",
        "run_after",
        "windows",
        "worker",
    )

    def __init__(
        self,
        files: Files = REAL_FILES,
        workers: Workers = AT_ONCE,
        *,
        after: RunAfter | None = None,
        call_later: CallLater | None = None,
        handles_max: int = HANDLES_MAX,
        mapped_bytes_max: int = MAPPED_BYTES_MAX,
        parent: Disk | None = None,
        path: str | None = None,
    ) -> None:
        """`after`: timers of the broker's clock. `call_later`: the loop's. `parent`: whose handles
        and windows are used; `path`: the log directory whose disk this is, None for the parent of
        all.
        """
        self.files = files
        self._workers = workers
        self.worker = workers.common if path is None else workers.files.of(path)
        """Runs what may block."""
        self._reader = workers.common if path is None else workers.reads.of(path)
        """Runs reads of files that a client waits for."""
        self._after = after
        self._call_later = call_later
        self.gathered = Gathered(self.worker, call_later)
        """Tasks of the worker that nobody waits for."""
        self.run_after: RunAfter = self._run_after
        """Runs what may block after a delay in ms; tools and tests have no timers: now. On the
        loop."""
        self._directories: dict[str, Disk] = {}
        if parent is None:
            self._settings = _Settings()
            limit = min(handles_max, files.open_files_max() // HANDLES_SHARE)
            self.handles = Handles(files, limit)
            self.windows = Windows(files, self.worker, mapped_bytes_max)
            self._warmed = WarmedEnds()
        else:
            self._settings = parent._settings  # noqa: SLF001  (its own class)
            self.handles = parent.handles
            self.windows = parent.windows
            self._warmed = parent._warmed  # noqa: SLF001  (its own class)
        self.resident_only = _ResidentOnly(self._settings)
        """Reads in a block `with disk.resident_only` raise ColdError instead of waiting."""
        self.metadata = MetadataWriter(files)
        """Used by tasks of the worker only."""
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
            disk = Disk(
                self.files,
                self._workers,
                after=self._after,
                call_later=self._call_later,
                parent=self,
                path=path,
            )
            self._directories[path] = disk
        return disk

    def hand_over(self) -> None:
        """Give the workers of all log directories the tasks that are gathered."""
        for disk in self._directories.values():
            disk.gathered.hand_over()

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

    def pread(self, path: str, size: int, position: int) -> bytes | bytearray:
        """`size` bytes of a file, less only at its end. Raises OSError, ColdError."""
        if not self._settings.is_resident_only:
            return self.files.pread(self.handles.get(path), size, position)
        handle = self.handles.find(path)
        if handle is not None:
            resident_bytes = self.files.pread_resident(handle, size, position)
            if resident_bytes is not None:
                return resident_bytes
        raise self._cold_range(FileRange(path, position, size))

    def slice(self, path: str, position: int, size: int, file_size: int) -> memoryview:
        """`size` bytes of a file, mapped; they exist. Raises OSError, ColdError."""
        handle = self.handles.find(path)
        if self._settings.is_resident_only:
            if (
                handle is None
                or self._warmed.is_crossed(path, position, size)
                or not self.files.is_resident(handle, size, position)
            ):
                raise self._cold_range(FileRange(path, position, size))
        elif handle is None:
            handle = self.handles.get(path)
        return self.windows.slice(path, handle, position, size, file_size)

    def note_slice(self, view: memoryview, path: str, position: int) -> None:
        """Remember where a slice lies, for `place_of`."""
        self.windows.places.note(view, path, position)

    def place_of(self, view: object) -> tuple[int, int] | None:
        """Return the handle of a slice's file and the position in it, for use at once.

        None: it is no slice of a file, the file was changed since, or it is not open.
        """
        place = self.windows.places.place_of(view)
        if place is None:
            return None
        path, position = place
        handle = self.handles.find(path)
        return None if handle is None else (handle, position)

    @property
    def is_resident_only(self) -> bool:
        """Return whether this is a read that must not wait for the disk."""
        return self._settings.is_resident_only

    def cold(self, subject: str, task: ColdTask) -> ColdError:
        """Return the error that says that `subject` is not in memory; `task` brings it there."""
        return ColdError(f"{subject}: not in memory", task, self.worker)

    def _cold_range(self, file_range: FileRange) -> ColdError:
        task = WarmTask(self.files, self.handles, self._warmed, file_range)
        subject = f"{file_range.size} bytes at {file_range.position} of {file_range.path}"
        # It changes no name and no file, so it need not wait for what the worker has to do.
        return ColdError(f"{subject}: not in memory", task, self._reader)

    def _run_after(self, delay_ms: int, task: Callable[[], None]) -> None:
        if self._after is None:
            self.worker.run_later(task)
        else:
            self._after(delay_ms, partial(self.worker.run_later, task))

    def remove(self, path: str) -> None:
        """Close and remove a file; one that is not there is no error. Raises OSError otherwise."""
        self.handles.forget(path)
        self.windows.forget(path)
        try:
            self.files.remove(path)
        except FileNotFoundError:
            return

    def close(self) -> None:
        """Close all files; tasks that were not handed over are dropped."""
        for disk in self._directories.values():
            disk.gathered.drop()
        self.handles.close()
        self.windows.close()
