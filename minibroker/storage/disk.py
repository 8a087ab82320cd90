"""What all logs of a process share: the door to the files, open handles, mapped windows.

A broker may hold tens of thousands of partitions and must not hold as many handles: `Handles` keeps
the ones used last and opens the others when asked. `Windows` does the same for mapped pieces of
segments, out of which Fetch answers are cut without a copy; their total size is bounded, and so is
the memory the process shows. A window that is given up is closed by the `run_later` callable (a
worker thread in the broker): unmapping megabytes on the loop would put that time on every request
(KAFKA-4614).

Used by the loop thread only; `run_later` gets closures that may run on any thread.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from minibroker.storage.files import MAP_GRANULARITY, REAL_FILES, Files, Map
from minibroker.storage.partition_metadata import MetadataWriter

if TYPE_CHECKING:
    from minibroker.storage.durable_log import DurableLog

_log = logging.getLogger(__name__)

RunLater = Callable[[Callable[[], None]], object]
RunAfter = Callable[[int, Callable[[], None]], object]
"""Gets a delay in ms and a task; called on the loop, the task runs on any thread."""
RunThen = Callable[[Callable[[], None], Callable[[], None]], object]
"""Gets a task for any thread, and what the loop calls after it. If the task raises, nothing is
called."""

HANDLES_MAX: Final = 512
HANDLES_SHARE: Final = 4
"""Log files may take a quarter of what the process may open; the rest is for connections."""
WINDOW_BYTES: Final = 4 << 20
"""A window starts at a multiple of half its size, so any slice up to that half lies in one window.
"""
WINDOW_STRIDE: Final = WINDOW_BYTES // 2
MAPPED_BYTES_MAX: Final = 32 << 20

PRODUCER_EXPIRATION_MS: Final = 86_400_000


OnUnsynced = Callable[["DurableLog", bool], object]
"""Gets a log that was appended to since its last sync, and whether that was much since it asked
last."""


def run_now(task: Callable[[], None]) -> None:
    """The `run_later` of tools and tests: at once, on the calling thread."""
    task()


def _unsynced(_log: "DurableLog", _has_grown_much: bool) -> None:
    """The `on_unsynced` of tools and tests: nothing is synced by itself."""


class Handles:
    """Open files by path, the least recently used closed when there are more than `limit`."""

    __slots__ = ("_files", "_open", "limit")

    def __init__(self, files: Files, limit: int = HANDLES_MAX) -> None:
        self._files = files
        self._open: OrderedDict[str, int] = OrderedDict()
        self.limit = limit

    def get(self, path: str, *, create: bool = False) -> int:
        """A handle to read and write; valid until the next call here. Raises OSError.

        `create` makes an absent file.
        """
        handle = self._open.get(path)
        if handle is None:
            return self._add(path, self._files.open(path, create=create))
        self._open.move_to_end(path)
        return handle

    def _add(self, path: str, handle: int) -> int:
        self._open[path] = handle
        if len(self._open) > self.limit:
            self._close(*self._open.popitem(last=False))
        return handle

    def _close(self, path: str, handle: int) -> None:
        """What a disk refuses here is not the fault of who wants another file, nor anything that
        the next fsync of the file does not tell; the handle is free in any case.
        """
        try:
            self._files.close(handle)
        except OSError as error:
            _log.warning("%s was closed with an error: %s", path, error)

    def forget(self, path: str) -> None:
        """Close the handle of a file that is renamed, removed or no longer used."""
        handle = self._open.pop(path, None)
        if handle is not None:
            self._close(path, handle)

    def close(self) -> None:
        while self._open:
            self._close(*self._open.popitem())

    def __len__(self) -> int:
        return len(self._open)


class Window:
    """One mapped piece of one segment: bytes `start` … `end` of the file."""

    __slots__ = ("end", "map", "start", "view")

    def __init__(self, mapped: Map, start: int) -> None:
        self.map = mapped
        self.view = memoryview(mapped)
        self.start = start
        self.end = start + len(mapped)


class Windows:
    """Mapped windows by (path, place), the least recently used given up beyond `limit_bytes`.

    A slice that was handed out keeps its window's memory alive; such a window is tried again
    whenever another one is given up, and on `close_unused`.
    """

    __slots__ = ("_files", "_given_up", "_open", "_run_later", "limit_bytes", "mapped_bytes")

    def __init__(
        self, files: Files, run_later: RunLater, limit_bytes: int = MAPPED_BYTES_MAX
    ) -> None:
        self._files = files
        self._run_later = run_later
        self._open: OrderedDict[tuple[str, int], Window] = OrderedDict()
        self._given_up: deque[Window] = deque()
        self.limit_bytes = limit_bytes
        self.mapped_bytes = 0

    def slice(self, path: str, handle: int, position: int, size: int, file_size: int) -> memoryview:
        """`size` bytes from `position` of the open file, which must have `file_size` ≥ their end.

        Raises OSError where the system cannot map.
        """
        place = position // WINDOW_STRIDE
        start = place * WINDOW_STRIDE
        end = position + size
        key = (path, place)
        window = self._open.get(key)
        if window is None or window.end < end:
            if end - start > WINDOW_BYTES:
                return self._wide_slice(handle, position, size)
            if window is not None:
                self._give_up(self._open.pop(key))
            length = min(WINDOW_BYTES, file_size - start)
            window = Window(self._files.map(handle, start, length), start)
            self._open[key] = window
            self.mapped_bytes += length
            while self.mapped_bytes > self.limit_bytes and len(self._open) > 1:
                self._give_up(self._open.popitem(last=False)[1])
        else:
            self._open.move_to_end(key)
        return window.view[position - start : end - start]

    def _wide_slice(self, handle: int, position: int, size: int) -> memoryview:
        """More than a window can hold: a map for this slice alone, given up at once."""
        start = position - position % MAP_GRANULARITY
        window = Window(self._files.map(handle, start, position + size - start), start)
        view = window.view[position - start :]
        self.mapped_bytes += window.end - start
        self._give_up(window)
        return view

    def _give_up(self, window: Window) -> None:
        self.mapped_bytes -= window.end - window.start
        self._given_up.append(window)
        self._run_later(self.close_unused)

    def forget(self, path: str) -> None:
        """Give up every window of a file that is cut, renamed or removed."""
        for key in [key for key in self._open if key[0] == path]:
            self._give_up(self._open.pop(key))

    def close_unused(self) -> None:
        """Unmap what was given up and no slice refers to any more. Any thread."""
        for _ in range(len(self._given_up)):
            try:
                window = self._given_up.popleft()
            except IndexError:
                return  # another thread is at it
            try:
                window.view.release()
                window.map.close()
            except BufferError:
                self._given_up.append(window)

    @property
    def unclosed_count(self) -> int:
        return len(self._given_up)

    def close(self) -> None:
        while self._open:
            self._give_up(self._open.popitem()[1])
        self.close_unused()


class Disk:
    """All of them; one for a log manager and all its logs."""

    __slots__ = (
        "files",
        "handles",
        "metadata",
        "on_unsynced",
        "producer_expiration_ms",
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
        run_after: RunAfter | None = None,
        run_then: RunThen | None = None,
        handles_max: int = HANDLES_MAX,
        mapped_bytes_max: int = MAPPED_BYTES_MAX,
    ) -> None:
        self.files = files
        self.run_later = run_later
        self.run_after = run_after or self._run_undelayed
        self.run_then = run_then or self._run_both
        self.on_unsynced: OnUnsynced = _unsynced
        """Called on the loop by a log that wants to be synced (`partitions/syncing.py`)."""
        self.producer_expiration_ms = PRODUCER_EXPIRATION_MS
        """`producer.id.expiration.ms`: how long a silent producer is remembered by every log."""
        self.handles = Handles(files, min(handles_max, files.open_files_max() // HANDLES_SHARE))
        self.windows = Windows(files, run_later, mapped_bytes_max)
        self.metadata = MetadataWriter(files)
        """Used by tasks of `run_later` only."""

    def _run_undelayed(self, _delay_ms: int, task: Callable[[], None]) -> None:
        """The `run_after` of tools and tests, which have no timers."""
        self.run_later(task)

    def _run_both(self, task: Callable[[], None], then: Callable[[], None]) -> None:
        """The `run_then` of tools and tests, which have no loop."""

        def run() -> None:
            task()
            then()

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
