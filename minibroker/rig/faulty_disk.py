"""The files of a broker under test: a disk that is full or slow to sync, if a test says so.

It replaces `storage.files.Files`. The broker's loop sets its fields, any thread reads them. The
metadata of a broker without ZooKeeper is a separate database, which is never full: topics can be
made while their records find no room.
"""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING, Any

from minibroker.broker import system
from minibroker.broker.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.storage.files import Buffer


class FaultyDisk(Files):
    """The real files, with two faults.

    `is_full`: every call that needs room raises ENOSPC. `sync_delay_ms`: every fsync takes that
    much longer, by the machine's clock.
    """

    __slots__ = ("_never", "is_full", "sync_delay_ms")

    def __init__(self) -> None:
        self.is_full = False
        self.sync_delay_ms = 0.0
        self._never = threading.Event()

    def _need_room(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int) -> int:
        """Write like the system's `pwritev`. Raises OSError(ENOSPC) if the disk is full."""
        self._need_room()
        return system.pwritev(fd, buffers, position)

    def open(self, path: str, *, create: bool = False) -> int:
        """Open like `Files.open`; a new file needs room."""
        if create and not self.exists(path):
            self._need_room()
        return super().open(path, create=create)

    def make_directory(self, path: str) -> None:
        """Make a directory like `Files.make_directory`.

        Raises OSError(ENOSPC) if the disk is full.
        """
        self._need_room()
        super().make_directory(path)

    def sync(self, fd: int) -> Any:  # type: ignore[override]
        """Sync like `Files.sync`, after the delay."""
        if self.sync_delay_ms:
            self._never.wait(self.sync_delay_ms / 1000)
        os.fsync(fd)
