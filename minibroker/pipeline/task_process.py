"""The Python process of a task, which Spark keeps for the next ones.

    Spark ─► process ─► task ─► gc.collect() ─► next task

Between two tasks Spark collects garbage, and Python walks over every object that the process has:
those of the imported modules are 300,000, and that takes 30 ms.
"""

from __future__ import annotations

import gc

from pyspark import TaskContext


def leave_imports_out() -> None:
    """Leave the objects of this process so far, mostly those of its modules, out of collections.

    Does nothing where no task of Spark runs, and from the second task of a process on.
    """
    if not gc.get_freeze_count() and TaskContext.get() is not None:
        gc.freeze()
