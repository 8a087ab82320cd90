"""The open files of all logs: handles, mapped windows, and reads that would wait for the disk.

`Handles`: the files used last stay open, the others are opened when somebody asks. A broker may
hold tens of thousands of partitions and must not hold as many handles.

`Windows`: mapped pieces of segments, out of which Fetch answers are cut without a copy. Their total
size is bounded, and so is the memory that the process shows. A window that is given up is closed by
the worker (a thread in the broker): unmapping megabytes on the loop would put
that time on every request (KAFKA-4614).

`ColdError`: a consumer that lags behind asks for pages that the system has dropped. Where the loop
touched one, every client would wait for the disk. So a reader on the loop asks for what is in
memory only (`Disk.resident_only`). Otherwise it gets a `ColdError`: its task is for a worker of the
log directory, then the reader tries again. For a range of a file that is `WarmTask`, which has a
worker for reads alone. Others load what is made of files (`producers`, `indexes`), in turn with
what changes these files.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

from minibroker.broker.storage.files import MAP_GRANULARITY, Files, Map

if TYPE_CHECKING:
    from minibroker.broker.storage.slice_places import SlicePlaces
    from minibroker.broker.worker import Runner
    from minibroker.kafka.errors import MinibrokerError

logger = logging.getLogger(__name__)

HANDLES_MAX: Final = 1 << 16
"""A handle is some 2 KB of the system's memory."""
HANDLES_SHARE: Final = 4
"""Log files may take a quarter of what the process may open; the rest is for connections."""


class Handles:
    """Open files by path, the least recently used closed when there are more than `limit`."""

    __slots__ = ("_files", "_open", "forget_count", "limit")

    def __init__(self, files: Files, limit: int = HANDLES_MAX) -> None:
        self._files = files
        self.forget_count = 0
        """How often files were renamed, removed or no longer used."""
        self._open: OrderedDict[str, int] = OrderedDict()
        self.limit = limit

    def get(self, path: str, *, create: bool = False) -> int:
        """Return a handle to read and write; valid until the next call here. Raises OSError.

        `create` makes an absent file.
        """
        handle = self._open.get(path)
        if handle is None:
            return self._add(path, self._files.open(path, create=create))
        self._open.move_to_end(path)
        return handle

    def find(self, path: str) -> int | None:
        """Return a handle as `get` does, None where the file is not open."""
        handle = self._open.get(path)
        if handle is not None:
            self._open.move_to_end(path)
        return handle

    def adopt(self, path: str, handle: int) -> None:
        """Keep a handle to read and write that a worker opened."""
        if path in self._open:
            self._close(path, handle)
        else:
            self._add(path, handle)

    def _add(self, path: str, handle: int) -> int:
        self._open[path] = handle
        if len(self._open) > self.limit:
            self._close(*self._open.popitem(last=False))
        return handle

    def _close(self, path: str, handle: int) -> None:
        """Close a handle and ignore the disk's error.

        The caller wants another file, and the next fsync of this file reports the error too; the
        handle is free in any case.
        """
        try:
            self._files.close(handle)
        except OSError as error:
            logger.warning("%s was closed with an error: %s", path, error)

    def forget(self, path: str) -> None:
        """Close the handle of a file that is renamed, removed or no longer used."""
        self.forget_count += 1
        handle = self._open.pop(path, None)
        if handle is not None:
            self._close(path, handle)

    def close(self) -> None:
        while self._open:
            self._close(*self._open.popitem())

    def __len__(self) -> int:
        return len(self._open)


WINDOW_BYTES: Final = 4 << 20
"""A window starts at a multiple of half its size, so any slice up to that half lies in one window.
"""
WINDOW_STRIDE: Final = WINDOW_BYTES // 2
MAPPED_BYTES_MAX: Final = 32 << 20


class Window:
    """One mapped piece of one segment: bytes `start` … `end` of the file."""

    __slots__ = ("end", "map", "path", "start", "view")

    def __init__(self, path: str, mapped: Map, start: int) -> None:
        self.path = path
        """Path of the file; empty once the window has memory of its own (`Windows.cut`)."""
        self.map = mapped
        self.view = memoryview(mapped)
        self.start = start
        self.end = start + len(mapped)

    def close(self) -> bool:
        """Unmap it; False where a slice of it is in use."""
        try:
            self.view.release()
            self.map.close()
        except BufferError:
            return False
        return True


class Windows:
    """Mapped windows by (path, place), the least recently used given up beyond `limit_bytes`.

    A slice that was handed out keeps its window's memory alive; such a window is tried again
    whenever another one is given up, and on `close_unused`.
    """

    __slots__ = (
        "_files",
        "_given_up",
        "_lock",
        "_open",
        "_places",
        "_worker",
        "limit_bytes",
        "mapped_bytes",
    )

    def __init__(self, files: Files, worker: Runner, limit_bytes: int = MAPPED_BYTES_MAX) -> None:
        self._files = files
        self._worker = worker
        self._open: OrderedDict[tuple[str, int], Window] = OrderedDict()
        self._given_up: deque[Window] = deque()
        # Windows that a worker closes as soon as it can; the loop adds to them.
        self._lock = Lock()
        # Held while one of those is closed, and while a cut looks for its own.
        self.limit_bytes = limit_bytes
        self.mapped_bytes = 0
        self._places: SlicePlaces | None = None
        """Made with the first slice that is noted."""

    @property
    def places(self) -> SlicePlaces:
        """Return the places of the slices that are in use."""
        if self._places is None:
            from minibroker.broker.storage.slice_places import SlicePlaces  # noqa: PLC0415  for large reads only

            self._places = SlicePlaces()
        return self._places

    def slice(self, path: str, handle: int, position: int, size: int, file_size: int) -> memoryview:
        """`size` bytes from `position` of the open file, which must have `file_size` ≥ their end.

        Raises OSError where the system cannot map.
        """
        if not self._files.can_map:
            return memoryview(self._files.pread(handle, size, position))
        place = position // WINDOW_STRIDE
        start = place * WINDOW_STRIDE
        end = position + size
        key = (path, place)
        window = self._open.get(key)
        if window is None or window.end < end:
            if end - start > WINDOW_BYTES:
                return self._wide_slice(path, handle, position, size)
            if window is not None:
                self._give_up(self._open.pop(key))
            length = min(WINDOW_BYTES, file_size - start)
            window = Window(path, self._files.map(handle, start, length), start)
            self._open[key] = window
            self.mapped_bytes += length
            while self.mapped_bytes > self.limit_bytes and len(self._open) > 1:
                self._give_up(self._open.popitem(last=False)[1])
        else:
            self._open.move_to_end(key)
        return window.view[position - start : end - start]

    def _wide_slice(self, path: str, handle: int, position: int, size: int) -> memoryview:
        """More than a window can hold: a map for this slice alone, given up at once."""
        start = position - position % MAP_GRANULARITY
        window = Window(path, self._files.map(handle, start, position + size - start), start)
        view = window.view[position - start :]
        self.mapped_bytes += window.end - start
        self._give_up(window)
        return view

    def _give_up(self, window: Window) -> None:
        self.mapped_bytes -= window.end - window.start
        self._given_up.append(window)
        self._worker.run_later(self.close_unused)

    def forget(self, path: str) -> None:
        """Give up every window of a file that is renamed or removed."""
        if self._places is not None:
            self._places.forget(path)
        for key in [key for key in self._open if key[0] == path]:
            self._give_up(self._open.pop(key))

    def cut(self, path: str, position: int) -> None:
        """Give up every window of a file that is about to be cut at `position`. Slices that show
        what is behind it keep their bytes: those are copied. Raises OSError.
        """
        self.forget(path)
        with self._lock:
            for window in list(self._given_up):
                if window.path == path and window.end > position and not window.close():
                    self._files.keep_map(window.map)
                    window.path = ""

    def close_unused(self) -> None:
        """Unmap what was given up and no slice refers to any more. Any thread."""
        for _ in range(len(self._given_up)):
            with self._lock:
                try:
                    window = self._given_up.popleft()
                except IndexError:
                    return  # another thread is at it
                if not window.close():
                    self._given_up.append(window)

    @property
    def unclosed_count(self) -> int:
        return len(self._given_up)

    def close(self) -> None:
        while self._open:
            self._give_up(self._open.popitem()[1])
        self.close_unused()


WARM_BYTES_MIN: int = 2 << 20
"""At least this much is read from where a reader met something cold: it goes on behind that."""
WARMED_FILES_MAX: Final = 256
"""Files of which the end of the last such read is remembered."""
_CHUNK_BYTES: Final = 256 << 10


class ColdTask(Protocol):
    """A worker calls it, then the loop calls `apply`."""

    def __call__(self) -> None:
        """Read what is needed. Raises nothing: an error is told to the next reader."""

    def apply(self) -> None:
        """Hand over the result, unless it is out of date. On the loop."""


class ColdError(Exception):
    """A reader's bytes are not in memory. This is no error of the disk."""

    def __init__(self, detail: str, task: ColdTask, worker: Runner) -> None:
        super().__init__(detail)
        self.task = task
        self._worker = worker

    def load(self, then: Callable[[], None]) -> None:
        """Have the worker do the task. Call `then` on the loop when its result is applied, and
        after a bug in it, too: the reader asks again, and at last waits for the disk itself.
        """

        def done(error: MinibrokerError | OSError | None) -> None:
            if error is None:
                self.task.apply()
            then()

        self._worker.run_reported(self.task, done)


class FileRange:
    """Bytes of a file: `size` from `position` on. Constant."""

    __slots__ = ("path", "position", "size")

    def __init__(self, path: str, position: int, size: int) -> None:
        self.path = path
        self.position = position
        self.size = size


class WarmedEnds:
    """The place where a worker stopped reading, by file. Owned by the loop.

    The system reads ahead of them, 8 MB on some machines. Pages that came that way are in memory,
    but no processor has touched them: on a virtual machine the first touch costs some 4 µs a page,
    1 ms a megabyte. So a reader that goes on where a worker stopped is sent to the worker again.
    """

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends: OrderedDict[str, int] = OrderedDict()

    def note(self, path: str, end: int | None) -> None:
        """Remember where a worker stopped; None: it read to the end of the file."""
        self._ends.pop(path, None)
        if end is not None:
            self._ends[path] = end
            if len(self._ends) > WARMED_FILES_MAX:
                self._ends.popitem(last=False)

    def is_crossed(self, path: str, position: int, size: int) -> bool:
        """Return whether this read goes on behind the place where a worker stopped."""
        end = self._ends.get(path)
        return end is not None and position <= end < position + size


class WarmTask:
    """Brings a range of a file into memory, and leaves the file open."""

    __slots__ = ("_end", "_ends", "_files", "_forgotten", "_handle", "_handles", "file_range")

    def __init__(
        self, files: Files, handles: Handles, ends: WarmedEnds, file_range: FileRange
    ) -> None:
        # Constant, these four.
        self._files = files
        self._handles = handles
        self._ends = ends
        self.file_range = file_range
        self._forgotten = handles.forget_count
        # Set by the worker, taken by the loop in `apply`.
        self._handle: int | None = None
        self._end: int | None = None

    def __call__(self) -> None:
        """Read it. Raises nothing: the next reader gets the disk's error."""
        files = self._files
        path, begin = self.file_range.path, self.file_range.position
        end = begin + max(self.file_range.size, WARM_BYTES_MIN)
        try:
            self._handle = files.open(path)
            for position in range(begin, end, _CHUNK_BYTES):
                if not files.pread(self._handle, min(_CHUNK_BYTES, end - position), position):
                    return
            self._end = end
        except FileNotFoundError:
            return  # retention or compaction took it meanwhile
        except OSError as error:
            logger.warning("cannot read ahead in %s: %s", path, error)

    def apply(self) -> None:
        """Keep the open file; not where a file has left service meanwhile, it may be this one."""
        if self._handle is None:
            return
        if self._handles.forget_count == self._forgotten:
            self._handles.adopt(self.file_range.path, self._handle)
            self._ends.note(self.file_range.path, self._end)
        else:
            self._files.close(self._handle)
