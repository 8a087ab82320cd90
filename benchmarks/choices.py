"""Names that a command line of the benchmarks may choose: rows and brokers."""

import argparse
from collections.abc import Sequence


class Choices:
    """Comma-separated names out of a fixed list, in the list's order."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = allowed

    def __call__(self, text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            check_name(name, self._allowed)
        return [name for name in self._allowed if name in names]


def check_name(name: str, allowed: Sequence[str]) -> str:
    """Return the name. Raises ArgumentTypeError for one that is not allowed."""
    if name not in allowed:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(allowed)}")
    return name


def row_parser(program: str, rows: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser of `PROGRAM [--quick] [ROW …]`; without a row all are chosen."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}")
    parser.add_argument(
        "rows",
        nargs="*",
        type=lambda name: check_name(name, rows),
        default=list(rows),
        metavar="ROW",
        help=f"of {', '.join(rows)} (all)",
    )
    parser.add_argument("--quick", action="store_true", help="small loads, to try it out")
    return parser
