"""`minibroker check-log`: damage in data directories; the work is in `tools.check_log`."""

from __future__ import annotations

from typing import Final, TextIO

from minibroker.cli.declaration import Verb
from minibroker.tools.check_plan import CheckPlan


def run(plan: CheckPlan, out: TextIO, errors: TextIO) -> int:
    """Check the directories, print the findings, and return the exit code."""
    from minibroker.tools.check_log import run_check_log  # noqa: PLC0415  not for help

    return run_check_log(plan, out, errors)


VERB: Final = Verb(
    name="check-log",
    does="check a data directory for damage; nothing is changed",
    plan=CheckPlan,
    run=run,
    notes="""
The broker should not be running: a file that it is writing looks torn. Every finding names file and
position. Notes are leftovers, and defects that the next start mends.
""",
    exits="Exit codes: 0 without damage, 1 with damage, 2 for wrong usage.",
    examples=(
        "check-log minibroker-data",
        "check-log --deep --json minibroker-data/orders-0",
    ),
    later_wins=True,
)
