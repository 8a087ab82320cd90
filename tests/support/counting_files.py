"""`CountingFiles`: real files that count opened files and read bytes."""

from __future__ import annotations

import os

from minibroker.broker.storage.files import Files


class CountingFiles(Files):
    """Counts the bytes that are read. `opened`: paths, in order."""

    __slots__ = ("opened", "read_bytes")

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.read_bytes = 0

    def open(self, path: str, *, create: bool = False) -> int:
        self.opened.append(path)
        return super().open(path, create=create)

    def pread(self, fd: int, size: int, position: int) -> bytes:  # type: ignore[override]
        found = os.pread(fd, size, position)
        self.read_bytes += len(found)
        return found
