"""An inspection: a line on stderr while it runs, and its table."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TextIO

from minibroker.pipeline import launch, report_text
from minibroker.pipeline.commands.exits import EXIT_OK
from minibroker.pipeline.commands.interrupting import ctrl_c_sets, when_set
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.jobs import inspect
from minibroker.pipeline.progress import TerminalProgress

if TYPE_CHECKING:
    from minibroker.pipeline.verbs.inspect import InspectPlan
    from minibroker.pipeline.verbs.shared import Engine


def run(plan: InspectPlan, engine: Engine, out: TextIO, errors: TextIO) -> int:
    """Inspect, write the table to `out`, and return the exit code.

    Raises KeyboardInterrupt after Ctrl-C.
    """
    inspect.check(plan)
    line = TerminalProgress(errors)
    tell = line.show if errors.isatty() else None
    stop = threading.Event()
    try:
        with ctrl_c_sets(stop), launch.started(engine, tell=tell, is_quiet=True) as spark:
            if stop.is_set():
                raise KeyboardInterrupt
            with when_set(stop, spark.sparkContext.cancelAllJobs):
                found = inspect.run(spark, plan, tell=tell)
    except PipelineError:
        if stop.is_set():
            raise KeyboardInterrupt from None
        raise
    finally:
        line.close()
    out.write(report_text.text(found))
    return EXIT_OK
