"""`minibroker dump-log`: the files of a log as text; the work is in `tools.dump_log`."""

from __future__ import annotations

from typing import Final, TextIO

from minibroker.cli.declaration import Verb
from minibroker.tools.dump_plan import DECODERS, INDEXES, OUTPUT, DumpPlan, check


def run(plan: DumpPlan, out: TextIO, errors: TextIO) -> int:
    """Dump the files and return the exit code."""
    from minibroker.tools.dump_log import run_dump_log  # noqa: PLC0415  not for help

    return run_dump_log(plan, out, errors)


VERB: Final = Verb(
    name="dump-log",
    does="print the contents of segment files, as Kafka's DumpLogSegments does",
    usage="FILE...",
    plan=DumpPlan,
    run=run,
    group="Files",
    groups=(DECODERS, INDEXES, OUTPUT),
    notes="""
The name of a file says its kind: .log, .index, .timeindex, .txnindex, .snapshot. An index is
compared with the .log beside it; mismatches are printed at the end, on stderr.
""",
    exits="Exit codes: 0; 1 if a file cannot be read, or is so damaged that reading has to stop; 2 "
    "for wrong usage.",
    examples=(
        "dump-log minibroker-data/orders-0/00000000000000000000.log",
        "dump-log --print-data-log minibroker-data/orders-0/*.log | head",
        "dump-log --offsets-decoder minibroker-data/__consumer_offsets-7/*.log",
    ),
    check=check,
    later_wins=True,
)
