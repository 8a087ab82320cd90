"""The Python process of a task, which Spark keeps for the next ones.

    Spark ─► process ─► task ─► gc.collect() ─► next task

Between two tasks Spark collects garbage, and Python walks over every object that the process has:
50,000 are of the imported modules, and that takes some 10 ms.

A task takes and frees buffers of some MiB all the time. glibc gives such memory back to the system
at once, and each next buffer costs a page fault for every 4 KiB: a sixth of a scan's CPU time.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache
from typing import Final

from pyspark import TaskContext

KEPT_BYTES: Final = 64 << 20
"""Free memory at the end of the heap that the process keeps, at most."""
_OWN_MAP_BYTES: Final = 32 << 20
"""Size from which a buffer has a map of its own, which goes back to the system; glibc's largest."""
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
"""Parameters of mallopt(3)."""


def prepare_for_tasks() -> None:
    """Prepare this process for this task and the next ones.

    The objects so far, mostly those of modules, are left out of collections. Freed memory stays
    with the process. Does nothing where no task of Spark runs, and from the second task of a
    process on.
    """
    if TaskContext.get() is not None:
        _prepare()


@cache
def _prepare() -> None:
    """Do it, once in a process: to ask how many objects are frozen counts them all."""
    _keep_freed_memory()
    gc.freeze()


def _keep_freed_memory() -> None:
    """Do what the module says, where the C library is glibc."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl has none
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _OWN_MAP_BYTES)
