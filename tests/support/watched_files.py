"""`WatchedFiles`: the real files, with a log of the calls of the loop's thread; it can hold
workers.

files = WatchedFiles()                     on the loop's thread
files.hold(directory)                      a worker that calls for a file below it waits
await files.is_held()                      one does
files.release()                            they all go on
files.calls                                what the loop's thread has called since
"""

from __future__ import annotations

import asyncio
import os
import threading
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from minibroker.broker.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import Callable


TIMEOUT_S = 60.0


class Call(NamedTuple):
    """One call of the loop's thread: the method of `Files`, and the file."""

    name: str
    path: str


class WatchedFiles(Files):
    """The files; made on the loop's thread."""

    __slots__ = ("_arrival", "_go_on", "_loop_thread", "_prefix", "calls")

    def __init__(self) -> None:
        self._loop_thread = threading.get_ident()
        self._prefix: str | None = None
        self._arrival = threading.Event()
        self._go_on = threading.Event()
        self.calls: list[Call] = []

    def hold(self, directory: str) -> None:
        """Let workers wait at any call for a file below this directory."""
        self._go_on.clear()
        self._arrival.clear()
        self._prefix = directory

    async def is_held(self) -> bool:
        """Wait until a worker waits; return whether one does."""
        return await asyncio.to_thread(self._arrival.wait, TIMEOUT_S)

    def release(self) -> None:
        """Let all held workers go on."""
        self._prefix = None
        self._go_on.set()

    def calls_below(self, directory: str) -> set[str]:
        """Return which methods the loop's thread has called for files below this directory."""
        return {call.name for call in self.calls if call.path.startswith(directory)}

    def _note(self, name: str, file: object) -> None:
        path = os.readlink(f"/proc/self/fd/{file}") if isinstance(file, int) else str(file)  # noqa: PTH115
        if threading.get_ident() == self._loop_thread:
            self.calls.append(Call(name, path))
        elif self._prefix is not None and path.startswith(self._prefix):
            self._arrival.set()
            assert self._go_on.wait(TIMEOUT_S)


def _watched(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: WatchedFiles, file: object, *arguments: Any, **options: Any) -> Any:
        self._note(name, file)
        bound = method.__get__(self) if name not in _STATIC else method
        return bound(file, *arguments, **options)

    return call


_STATIC = ("close", "pread", "pwritev", "truncate", "sync")
_OTHERS = (
    *("open", "open_to_read", "size_at", "map", "read_all", "create", "write_atomically"),
    *("sync_path", "sync_directory", "replace", "link", "remove", "make_directory"),
    *("remove_directory", "list_files", "walk_names"),
)
for _name in (*_STATIC, *_OTHERS):
    setattr(WatchedFiles, _name, _watched(_name, getattr(Files, _name)))


# `CountingFiles`: real files that count opened files and read bytes.


class CountingFiles(Files):
    """Counts the bytes that are read. `opened_paths`: paths, in order."""

    __slots__ = ("opened_paths", "read_bytes")

    def __init__(self) -> None:
        self.opened_paths: list[str] = []
        self.read_bytes = 0

    def open(self, path: str, *, create: bool = False) -> int:
        self.opened_paths.append(path)
        return super().open(path, create=create)

    def pread(self, fd: int, size: int, position: int) -> bytes:  # type: ignore[override]
        data = os.pread(fd, size, position)
        self.read_bytes += len(data)
        return data
