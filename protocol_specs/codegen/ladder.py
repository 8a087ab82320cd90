"""Version branches: an `if`/`elif`/`else` ladder with the lines of each range of versions.

A *step* is a range of versions with its lines. The newest versions are tested first, because most
clients use them.
"""

from collections.abc import Callable

from protocol_specs.codegen.spec import Range

Lines = list[str]
INDENT = "    "


def indent(lines: Lines) -> Lines:
    """Return the lines one level deeper."""
    return [INDENT + line if line else line for line in lines]


def ladder(scope: Range, breaks: set[int], lines_for: Callable[[int], Lines]) -> Lines:
    """Return code for every version of `scope`, with branches only where the code differs.
    `breaks` holds the versions at which the code changes. `lines_for` returns the code of a
    version, which holds up to the next break.
    """
    starts = sorted({scope.first} | {start for start in breaks if start in scope})
    steps: list[tuple[int, Lines]] = []
    for start in starts:
        lines = lines_for(start)
        if not steps or steps[-1][1] != lines:
            steps.append((start, lines))
    if len(steps) == 1:
        return steps[0][1]
    return _branches(steps)


def _branches(steps: list[tuple[int, Lines]]) -> Lines:
    lowest = steps[0][1]
    if len(steps) == 2 and not steps[1][1]:
        return [f"if version < {steps[1][0]}:", *indent(lowest)]
    out: Lines = []
    for number, (start, lines) in enumerate(reversed(steps[1:])):
        word = "elif" if number else "if"
        out += [f"{word} version >= {start}:", *indent(lines or ["pass"])]
    if lowest:
        out += ["else:", *indent(lowest)]
    return out


def starts_of(*ranges: Range | None) -> set[int]:
    """Return the versions at which one of the ranges begins or has just ended."""
    return {
        edge
        for version_range in ranges
        if version_range
        for edge in (version_range.first, version_range.last + 1)
    }
