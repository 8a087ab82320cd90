"""The Python process of a task, which Spark keeps for the next ones.

    Spark ─► process ─► task ─► gc.collect() ─► next task

Between two tasks Spark collects garbage, and Python walks over every object that the process has:
50,000 are of the imported modules, and that takes some 10 ms.
"""

from __future__ import annotations

import gc
from functools import cache

from pyspark import TaskContext


def leave_imports_out() -> None:
    """Leave the objects of this process so far, mostly those of its modules, out of collections.

    Does nothing where no task of Spark runs, and from the second task of a process on.
    """
    if TaskContext.get() is not None:
        _freeze()


@cache
def _freeze() -> None:
    """Freeze the objects, once in a process: to ask how many are frozen counts them all."""
    gc.freeze()
