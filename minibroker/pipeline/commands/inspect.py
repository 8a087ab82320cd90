"""An inspection: a line on stderr while it runs, and its table."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from minibroker.pipeline import launch
from minibroker.pipeline.commands.exits import EXIT_OK
from minibroker.pipeline.commands.one_answer import answer_of
from minibroker.pipeline.jobs import inspect
from minibroker.pipeline.reports import text as report_text

if TYPE_CHECKING:
    from minibroker.pipeline.verbs.inspect import InspectPlan
    from minibroker.pipeline.verbs.shared import Engine


def run(plan: InspectPlan, engine: Engine, out: TextIO, errors: TextIO) -> int:
    """Inspect, write the table to `out`, and return the exit code.

    Raises KeyboardInterrupt after Ctrl-C.
    """
    inspect.check(launch.placed(plan, engine))
    found = answer_of(lambda spark, tell: inspect.run(spark, plan, tell=tell), engine, errors)
    out.write(report_text.text(found))
    return EXIT_OK
