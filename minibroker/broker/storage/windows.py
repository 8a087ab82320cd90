"""Mapped pieces of segments, out of which Fetch answers are cut without a copy.

Their total size is bounded, and so is the memory that the process shows. A window that is given up
is closed by the `run_later` callable (a worker thread in the broker): unmapping megabytes on the
loop would put that time on every request (KAFKA-4614).
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock
from typing import Final

from minibroker.broker.storage.files import MAP_GRANULARITY, Files, Map

RunLater = Callable[[Callable[[], None]], object]
"""Gets a task for any thread."""
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
        "_run_later",
        "limit_bytes",
        "mapped_bytes",
    )

    def __init__(
        self, files: Files, run_later: RunLater, limit_bytes: int = MAPPED_BYTES_MAX
    ) -> None:
        self._files = files
        self._run_later = run_later
        self._open: OrderedDict[tuple[str, int], Window] = OrderedDict()
        self._given_up: deque[Window] = deque()
        # Windows that a worker closes as soon as it can; the loop adds to them.
        self._lock = Lock()
        # Held while one of those is closed, and while a cut looks for its own.
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
        self._run_later(self.close_unused)

    def forget(self, path: str) -> None:
        """Give up every window of a file that is renamed or removed."""
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
