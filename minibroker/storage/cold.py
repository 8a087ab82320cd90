"""Work that would wait for the disk, and that a reader on the loop has done beside it first.

A consumer that lags behind asks for pages that the system has dropped. Where the loop touched one,
every client would wait for the disk. So a reader on the loop asks for what is in memory only
(`Disk.resident_only`). Otherwise it gets a `ColdError`: its task is for the worker of the log
directory, then the reader tries again. For a range of a file that is `WarmTask`. Others load what
is made of files (`producers_load`, `index_load`).
"""

import logging
from collections.abc import Callable
from typing import Final, Protocol

from minibroker.storage.files import Files
from minibroker.storage.handles import Handles

logger = logging.getLogger(__name__)

WARM_BYTES_MIN: Final = 1 << 20
"""At least this much is read from where a reader met something cold: it goes on behind that."""
_CHUNK_BYTES: Final = 256 << 10

RunThen = Callable[[Callable[[], None], Callable[[], None]], object]
"""Gets a task for any thread, and what the loop calls after it. If the task raises, nothing is
called."""


class ColdTask(Protocol):
    """A worker calls it, then the loop calls `apply`."""

    def __call__(self) -> None:
        """Read what is needed. Raises nothing: an error is told to the next reader."""

    def apply(self) -> None:
        """Hand over the result, unless it is out of date. On the loop."""


class ColdError(Exception):
    """A reader's bytes are not in memory. This is no error of the disk."""

    def __init__(self, detail: str, task: ColdTask, run_then: RunThen) -> None:
        super().__init__(detail)
        self.task = task
        self._run_then = run_then

    def load(self, then: Callable[[], None]) -> None:
        """Have the worker do the task. Call `then` on the loop when its result is applied."""

        def apply() -> None:
            self.task.apply()
            then()

        self._run_then(self.task, apply)


class WarmTask:
    """Brings a range of a file into memory, and leaves the file open."""

    __slots__ = ("_files", "_forgotten", "_handle", "_handles", "path", "position", "size")

    def __init__(self, files: Files, handles: Handles, path: str, position: int, size: int) -> None:
        """`position` and `size` in bytes."""
        self._files = files
        self._handles = handles
        self.path = path
        self.position = position
        self.size = size
        self._forgotten = handles.forget_count
        # Set by the worker, taken by the loop in `apply`.
        self._handle: int | None = None

    def __call__(self) -> None:
        """Read it. Raises nothing: what the disk refuses is told to who reads it next."""
        files = self._files
        end = self.position + max(self.size, WARM_BYTES_MIN)
        try:
            self._handle = files.open(self.path)
            for position in range(self.position, end, _CHUNK_BYTES):
                if not files.pread(self._handle, min(_CHUNK_BYTES, end - position), position):
                    return
        except OSError as error:
            logger.warning("cannot read ahead in %s: %s", self.path, error)

    def apply(self) -> None:
        """Keep the open file; not where a file has left service meanwhile, it may be this one."""
        if self._handle is None:
            return
        if self._handles.forget_count == self._forgotten:
            self._handles.adopt(self.path, self._handle)
        else:
            self._files.close(self._handle)
