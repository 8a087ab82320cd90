"""A comparison: a line on stderr while it runs, and its table, or JSON if no person reads it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from minibroker.pipeline.cli.one_answer import answer_of
from minibroker.pipeline.errors import EXIT_DIFFERENT, EXIT_OK
from minibroker.pipeline.spark import launch
from minibroker.pipeline.verbs.compare import job as compare
from minibroker.pipeline.verbs.compare import text as compare_text

if TYPE_CHECKING:
    from minibroker.pipeline.cli.parser import Arguments


def run(arguments: Arguments, out: TextIO, errors: TextIO) -> int:
    """Compare, write the result to `out`, and return the exit code.

    Raises KeyboardInterrupt after Ctrl-C.
    """
    plan, engine = arguments.plan, arguments.engine
    compare.check(launch.placed(plan, engine))
    found = answer_of(lambda spark, tell: compare.run(spark, plan, tell=tell), engine, errors)
    if out.isatty():
        out.write(compare_text.text(found))
    else:
        out.write(json.dumps(found.as_json()) + "\n")
    return EXIT_OK if found.is_same else EXIT_DIFFERENT
