"""Work that would wait for the disk, and that a reader on the loop has done beside it first.

A consumer that lags behind asks for pages that the system has dropped. Where the loop touched one,
every client would wait for the disk. So a reader on the loop asks for what is in memory only
(`Disk.resident_only`). Otherwise it gets a `ColdError`: its task is for a worker of the log
directory, then the reader tries again. For a range of a file that is `WarmTask`, which has a worker
for reads alone. Others load what is made of files (`producers_load`, `index_load`), in turn with
what changes these files.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from minibroker.broker.storage.files import Files
from minibroker.broker.storage.handles import Handles

logger = logging.getLogger(__name__)

WARM_BYTES_MIN: Final = 2 << 20
"""At least this much is read from where a reader met something cold: it goes on behind that."""
WARMED_FILES_MAX: Final = 256
"""Files of which the end of the last such read is remembered."""
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
        """Have the worker do the task. Call `then` on the loop when its result is applied, and
        after a bug in it, too: the reader asks again, and at last waits for the disk itself.
        """
        is_done = False

        def run() -> None:
            nonlocal is_done
            try:
                self.task()
                is_done = True
            except Exception:
                logger.exception("cannot bring into memory: %s", self)

        def apply() -> None:
            if is_done:
                self.task.apply()
            then()

        self._run_then(run, apply)


class FileRange(NamedTuple):
    """Bytes of a file: `size` from `position` on."""

    path: str
    position: int
    size: int


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

    def is_crossed(self, wanted: FileRange) -> bool:
        """Return whether this read goes on behind the place where a worker stopped."""
        end = self._ends.get(wanted.path)
        return end is not None and wanted.position <= end < wanted.position + wanted.size


class WarmTask:
    """Brings a range of a file into memory, and leaves the file open."""

    __slots__ = ("_end", "_ends", "_files", "_forgotten", "_handle", "_handles", "wanted")

    def __init__(self, files: Files, handles: Handles, ends: WarmedEnds, wanted: FileRange) -> None:
        # Constant, these four.
        self._files = files
        self._handles = handles
        self._ends = ends
        self.wanted = wanted
        self._forgotten = handles.forget_count
        # Set by the worker, taken by the loop in `apply`.
        self._handle: int | None = None
        self._end: int | None = None

    def __call__(self) -> None:
        """Read it. Raises nothing: the next reader gets the disk's error."""
        files = self._files
        path, begin, size = self.wanted
        end = begin + max(size, WARM_BYTES_MIN)
        try:
            self._handle = files.open(path)
            for position in range(begin, end, _CHUNK_BYTES):
                if not files.pread(self._handle, min(_CHUNK_BYTES, end - position), position):
                    return
            self._end = end
        except OSError as error:
            logger.warning("cannot read ahead in %s: %s", path, error)

    def apply(self) -> None:
        """Keep the open file; not where a file has left service meanwhile, it may be this one."""
        if self._handle is None:
            return
        if self._handles.forget_count == self._forgotten:
            self._handles.adopt(self.wanted.path, self._handle)
            self._ends.note(self.wanted.path, self._end)
        else:
            self._files.close(self._handle)
