"""`python -m benchmarks`: measure the brokers side by side, print the table, keep the numbers."""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import machine, plan, table
from benchmarks.choices import Choices
from benchmarks.compiled import use_compiled
from benchmarks.metrics import EXTRA_ROWS, ROWS, USUAL_ROWS
from benchmarks.peers import all_peers
from benchmarks.runner import Runner
from tests.support.build_files import ROOT


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 when a row broke down, 0 otherwise: falling short of a goal is a result."""
    options = _parser().parse_args(arguments)
    if options.compiled:
        use_compiled()
    facts = {**machine.facts(), "package": "compiled" if options.compiled else "pure"}
    machine.warn_if_busy(facts)
    peers = [peer for peer in all_peers() if peer.name in options.only]
    chosen = plan.QUICK if options.quick else plan.FULL
    if options.load_passes:
        passes = max(chosen.passes, options.load_passes)
        chosen = chosen._replace(passes=passes, load_passes=options.load_passes)
    runner = Runner(
        peers, frozenset(options.rows), chosen, deadline_s=options.minutes * 60, say=_say
    )
    results = runner.run()
    described = ", ".join(f"{key} {value}" for key, value in facts.items())
    print(f"{table.render(results, options.rows)}\n{_method(chosen)}\n{described}.")
    path = options.json or ROOT / "benchmarks" / "results" / _file_name()
    results.write(path, facts, chosen._asdict())
    _say(f"written: {path}")
    return 1 if results.has_failures() else 0


def _parser() -> argparse.ArgumentParser:
    names = [peer.name for peer in all_peers()]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        type=Choices(names),
        default=names,
        metavar="BROKER,…",
        help=f"of {', '.join(names)}",
    )
    parser.add_argument(
        "--rows",
        type=Choices(list(ROWS)),
        default=list(USUAL_ROWS),
        metavar="ROW,…",
        help=f"of {', '.join(ROWS)}; without {', '.join(EXTRA_ROWS)} when none is named",
    )
    parser.add_argument(
        "--compiled", action="store_true", help="minibroker's compiled package (a C compiler)"
    )
    parser.add_argument("--quick", action="store_true", help="small loads, to try it out")
    parser.add_argument(
        "--load-passes", type=int, metavar="N", help="run the load N times (default 1)"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=plan.DEADLINE_S / 60,
        help="begin no further row after so many minutes (default 15)",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="instead of benchmarks/results/DATE.json"
    )
    return parser


def _method(chosen: plan.Plan) -> str:
    return (
        f"Values are medians: of {chosen.start_repeats} starts in rounds over the brokers; of "
        f"{chosen.passes} times {chosen.repeats} repeats, each pass on freshly started brokers, "
        f"in the short rows. The load ran {chosen.load_passes} time(s), on the warm broker."
    )


def _file_name() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H%MZ}.json"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
