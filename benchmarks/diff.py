"""`python -m benchmarks.diff BASE`: this checkout beside another commit, in turns on one machine.

Both brokers are asked by this checkout's client, so only the broker differs. A round measures each
row of both sides, the sides in turn; the next round begins with the other side. A table shows the
median of the ratios of the rounds and their range. CPU of the broker comes first: it is steady
where the client takes the cores. A ratio below 1 is cheaper, or quicker, than the base.

`--compiled` measures the compiled package of this checkout: against `HEAD`, what compiling brings.
`--instructions` counts instead of timing: that shows a percent, and beside other work too.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks import instructions
from benchmarks.callgrind import CounterError, require_valgrind
from benchmarks.compiled import compiled_package
from benchmarks.diff_rows import ROWS
from benchmarks.sides import ROOT, Measured, Side, checkout_of
from benchmarks.table import number

Rows = Mapping[str, Callable[[Side, Path], Measured]]
"""Name of a row → what measures it."""


def compare(
    base: Side, own: Side, names: Sequence[str], rounds: int, rows: Rows = ROWS
) -> dict[str, list[tuple[float, float]]]:
    """Return the values at base and here of each figure, a pair for each round."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for turn in range(rounds):
        for row in names:
            figures: dict[str, Measured] = {}
            for side in (base, own) if turn % 2 == 0 else (own, base):
                with tempfile.TemporaryDirectory(prefix="minibroker-diff-") as name:
                    figures[side.name] = rows[row](side, Path(name))
            for figure, value in figures[own.name].items():
                pairs.setdefault(figure, []).append((figures[base.name][figure], value))
    return pairs


def table(pairs: Mapping[str, Sequence[tuple[float, float]]], base: str, own: str = "here") -> str:
    """Return medians and ranges as a Markdown table, the figures of CPU first."""
    lines = [f"| figure | {base} | {own} | {own} / {base} | range |", "|---|---:|---:|---:|---:|"]
    for figure in sorted(pairs, key=lambda name: "CPU" not in name):
        bases, owns = zip(*pairs[figure], strict=True)
        ratios = [own_value / base_value for base_value, own_value in pairs[figure]]
        values = f"{number(statistics.median(bases))} | {number(statistics.median(owns))}"
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        lines.append(f"| {figure} | {values} | {statistics.median(ratios):.3f} | {spread} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    options = _parser().parse_args(arguments)
    rows = instructions.ROWS if options.instructions else ROWS
    names = options.rows.split(",") if options.rows else list(rows)
    if unknown := [name for name in names if name not in rows]:
        print(f"no row {', '.join(unknown)}: there are {', '.join(rows)}", file=sys.stderr)
        return 2
    rounds = options.rounds or (1 if options.instructions else 5)
    try:
        if options.instructions:
            require_valgrind()
        base = checkout_of(options.base)
        own = Side("compiled", compiled_package()) if options.compiled else Side("here", ROOT)
        print(table(compare(base, own, names, rounds, rows), base.name, own.name))
    except CounterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diff", description=__doc__)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument(
        "--instructions", action="store_true", help="count instructions of a request (valgrind)"
    )
    parser.add_argument(
        "--compiled", action="store_true", help="this checkout's compiled package (a C compiler)"
    )
    parser.add_argument("--rounds", type=int, help="rounds of each row (default 5; counted: 1)")
    parser.add_argument(
        "--rows",
        help=f"of {', '.join(ROWS)}; counted: of {', '.join(instructions.ROWS)} (default: all)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
