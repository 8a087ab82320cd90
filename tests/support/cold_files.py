"""`ColdFiles`: real files whose pages a test drops from memory, with a log of the reads.

    files = ColdFiles()              on the loop's thread
    files.drop(directory)            nothing below it is in memory
    files.waits                      reads of the loop's thread that would have waited for the disk

A read on any thread brings its pages back. `WatchedFiles` notes calls and holds workers as well.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from minibroker.broker.storage.files import probed
from tests.support.watched_files import Call, WatchedFiles

if TYPE_CHECKING:
    import mmap

PAGE_BYTES = 4096


class ColdFiles(WatchedFiles):
    """The files; made on the loop's thread."""

    __slots__ = ("_cold_below", "_resident", "_thread", "waits")

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self._cold_below: str | None = None
        self._resident: set[tuple[str, int]] = set()
        self.waits: list[Call] = []

    def drop(self, directory: str) -> None:
        """Drop all pages below this directory from memory."""
        self._resident.clear()
        self._cold_below = directory

    def _pages(self, fd: int, size: int, position: int) -> set[tuple[str, int]]:
        path = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115
        if self._cold_below is None or not path.startswith(self._cold_below):
            return set()
        end = min(position + size, os.fstat(fd).st_size)
        return {
            (path, page) for page in range(position // PAGE_BYTES, -(-end // PAGE_BYTES))
        } - self._resident

    def _read_back(self, name: str, fd: int, size: int, position: int) -> None:
        cold = self._pages(fd, size, position)
        self._resident |= cold
        if cold and threading.get_ident() == self._thread:
            self.waits.append(Call(name, next(iter(cold))[0]))

    def pread(self, fd: int, size: int, position: int) -> bytes:  # type: ignore[override]
        """Read like the system, from memory or from the disk."""
        self._note("pread", fd)
        self._read_back("pread", fd, size, position)
        return os.pread(fd, size, position)

    def pread_resident(self, fd: int, size: int, position: int) -> bytes | None:
        """Read bytes that are in memory, None otherwise."""
        return None if self._pages(fd, size, position) else os.pread(fd, size, position)

    def is_resident(self, fd: int, size: int, position: int) -> bool:
        """Return whether the bytes that the system would be asked about are in memory."""
        return all(
            self.pread_resident(fd, 1, place) is not None for place in probed(size, position)
        )

    def map(self, fd: int, position: int, size: int) -> mmap.mmap:
        """Map a range; later reads of its pages are not noticed."""
        return super().map(fd, position, size)
