"""An inspection: a line on stderr while it runs, and its table."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from minibroker.pipeline.cli.one_answer import answer_of
from minibroker.pipeline.errors import EXIT_OK
from minibroker.pipeline.spark import launch
from minibroker.pipeline.verbs.inspect import job as inspect
from minibroker.pipeline.verbs.inspect import text as report_text

if TYPE_CHECKING:
    from minibroker.pipeline.cli.parser import Arguments


def run(arguments: Arguments, out: TextIO, errors: TextIO) -> int:
    """Inspect, write the table to `out`, and return the exit code.

    Raises KeyboardInterrupt after Ctrl-C.
    """
    plan, engine = arguments.plan, arguments.engine
    inspect.check(launch.placed(plan, engine))
    found = answer_of(lambda spark, tell: inspect.run(spark, plan, tell=tell), engine, errors)
    out.write(report_text.text(found))
    return EXIT_OK
