"""The closing lines of all parts of `make test`, and last of all one line like them for the whole.

    python3 .ci/closing_line.py REPORT

A part begins with make's own line, `make test: …`; what pytest closed it with is the last line of
that form before the next part, since a test that failed may show such lines of its own.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PART = "make test: "
CLOSING = re.compile(
    r"=+ (?P<counts>\d+ [a-z ]+(?:, \d+ [a-z ]+)*|no tests ran) in (?P<seconds>[\d.]+)s.*"
)
ORDER = ["failed", "passed", "skipped", "deselected", "xfailed", "xpassed", "warning", "error"]
"""Pytest's own."""


def closing_lines(report: str) -> list[tuple[str, str | None]]:
    """(part, its closing line or None) in order."""
    found: list[tuple[str, str | None]] = []
    for line in report.splitlines():
        if line.startswith(PART):
            found.append((line, None))
        elif found and CLOSING.fullmatch(line):
            found[-1] = (found[-1][0], line)
    return found


def added_up(lines: list[str]) -> str:
    """One closing line that counts what all `lines` count."""
    totals = dict.fromkeys(ORDER, 0)
    seconds = 0.0
    for line in lines:
        match = CLOSING.fullmatch(line)
        assert match is not None, line
        seconds += float(match["seconds"])
        for count, name in re.findall(r"(\d+) ([a-z ]+)", match["counts"]):
            one = re.sub(r"^(warning|error)s$", r"\1", name)
            totals[one] = totals.get(one, 0) + int(count)
    parts = [_counted(number, name) for name, number in totals.items() if number]
    return f" {', '.join(parts) or 'no tests ran'} in {seconds:.2f}s ".center(80, "=")


def _counted(number: int, name: str) -> str:
    return (
        f"{number} {name}s" if name in ("warning", "error") and number != 1 else f"{number} {name}"
    )


def main(path: str) -> None:
    """Print them."""
    found = closing_lines(Path(path).read_text(encoding="utf-8", errors="replace"))
    for part, line in found:
        sys.stdout.write(f"{part}\n{line or '(ended before pytest did)'}\n")
    lines = [line for _, line in found if line is not None]
    if not lines or len(lines) < len(found):
        sys.stdout.write(".ci/run: make test ended before pytest did\n")
    else:
        sys.stdout.write(added_up(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
