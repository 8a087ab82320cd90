"""Tables of text for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH: Final = 100
"""Most characters of a line; only a table of large numbers is wider."""


def value_text(value: int | None) -> str:
    """Return a number, and `-` for one that is not known."""
    return "-" if value is None else str(value)


def table_lines(
    titles: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    left_columns: int = 1,
    words: Sequence[str] = (),
) -> list[str]:
    """Return `table` of any values, each line with its end."""
    cells = [titles, *([str(cell) for cell in row] for row in rows)]
    return [f"{line}\n" for line in table(cells, left_columns=left_columns, words=words)]


def table(
    rows: Sequence[Sequence[str]], *, left_columns: int = 1, words: Sequence[str] = ()
) -> list[str]:
    """Return lines with columns as wide as their widest cell, right-aligned but for texts.

    Args:
        rows: cells, first those of the head.
        left_columns: so many columns from the left hold text and not numbers.
        words: titles of further columns that hold text.
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width)
            if column < left_columns or rows[0][column] in words
            else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    lines.insert(1, "  " + "  ".join("-" * width for width in widths))
    return lines
