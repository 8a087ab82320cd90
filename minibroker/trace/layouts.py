"""The layouts of an exchange in text: a line, all fields, a line of JSON.

`minibroker trace` and `minibroker proxy` have the same options for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.trace.full_text import full_lines
from minibroker.trace.json_lines import to_json
from minibroker.trace.line import to_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from minibroker.trace.exchange import Exchange


def writer_to(
    out: TextIO, *, is_full: bool, is_json: bool, is_live: bool
) -> Callable[[Exchange], None]:
    """Return the function that writes an exchange to `out`; `is_live`: it is seen at once."""

    write_text = out.write
    if is_json:
        text_of: Callable[[Exchange], str] = to_json
    elif is_full:
        text_of = _full_text
    else:
        text_of = to_line

    def write(exchange: Exchange) -> None:
        write_text(f"{text_of(exchange)}\n")
        if is_live:
            out.flush()

    return write


def _full_text(exchange: Exchange) -> str:
    return "\n".join(full_lines(exchange))
