"""A disk whose fsyncs wait for the test: it replaces the worker of a `Flusher`. And a disk that
takes one write, and refuses the next.
"""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING, Any

from minibroker.broker.partitions.append_queue import Flusher
from minibroker.broker.storage.files import Files
from minibroker.broker.worker import Caller, Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from minibroker.broker.worker import Done
    from minibroker.kafka.errors import StorageError


class HeldDisk(Caller):
    """A disk whose fsyncs wait for the test after `hold`."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], None]] | None = None
        self.error: StorageError | None = None
        """The error that every fsync ends with, None for success."""

    def run_then(self, task: Callable[[], None], done: Done) -> None:
        def run() -> None:
            if self.error is None:
                task()
            done(self.error)

        if self.tasks is None:
            run()
        else:
            self.tasks.append(run)

    def flusher(self) -> Flusher:
        """Return the value for `AppendQueue.flusher`, for every log directory."""
        return Flusher(Workers.by(self).flushes)

    def hold(self) -> None:
        self.tasks = []

    def go_on(self) -> None:
        while self.tasks:
            self.tasks.pop(0)()
        self.tasks = None

    def go_on_once(self) -> None:
        """Let the oldest held fsync finish; the others stay held."""
        assert self.tasks, "no fsync is held"
        self.tasks.pop(0)()


def refuse_second_write(patch: pytest.MonkeyPatch) -> None:
    """Let the second append from now on fail with an I/O error. A log is written by the thread of
    the loop, which calls this; a worker may write `partition.metadata` meanwhile.
    """
    pwritev = Files.pwritev
    loop_thread = threading.get_ident()
    count = 0

    def write(*arguments: Any) -> int:
        nonlocal count
        if threading.get_ident() == loop_thread:
            count += 1
            if count == 2:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pwritev(*arguments)

    patch.setattr(Files, "pwritev", staticmethod(write))
