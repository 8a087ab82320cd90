"""Open files by path: the ones used last stay open, the others are opened when somebody asks.

A broker may hold tens of thousands of partitions and must not hold as many handles.
"""

import logging
from collections import OrderedDict
from typing import Final

from minibroker.broker.storage.files import Files

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

    def is_open(self, path: str) -> bool:
        """Return whether there is a handle already."""
        return path in self._open

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
