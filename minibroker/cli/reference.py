"""`docs/reference/command-line.md` out of the declarations of all verbs.

    python -m minibroker.cli.reference docs/reference/command-line.md

`make generate` runs it, and a test proves that the page is fresh.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.cli.declaration import VerbGroup, help_text, option_of
from minibroker.cli.help_page import (
    example_lines,
    flag_text,
    paragraphs_of,
    title_of,
    titles_of,
    usage_of,
)
from minibroker.cli.program import member
from minibroker.cli.verbs_table import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.cli.declaration import Verb

_COLUMNS: Final = 100
_HEAD: Final = """\
# Command line

<!-- Made from the declarations of the verbs by `make generate`: change those. -->

`minibroker VERB --help` prints the same in a terminal, and
`minibroker completion bash|zsh|fish` completes it. `python -m minibroker` is the same program.
"""


def page() -> str:
    """Return the page, as Markdown."""
    verbs = list(_verbs(PROGRAM))
    table = ["| verb | effect |", "|---|---|"]
    for verb in verbs:
        anchor = verb.command.replace(" ", "-")
        table.append(f"| [`{verb.command}`](#{anchor}) | {_cell(verb.does)} |")
    return "\n".join([_HEAD, *table, "", *map(_section, verbs)])


def _verbs(group: VerbGroup) -> Iterator[Verb]:
    for name in group.modules:
        verb = member(group, name)
        if isinstance(verb, VerbGroup):
            yield from _verbs(verb)
        else:
            yield verb


def _section(verb: Verb) -> str:
    """Return the part of a verb: what it does, its options by title, its examples."""
    parts = [
        f"## {verb.command}\n",
        f"{verb.does[0].upper()}{verb.does[1:]}.\n",
        f"```text\n{verb.command} {usage_of(verb)}".rstrip() + "\n```\n",
    ]
    for title in titles_of(verb):
        rows = [
            f"| `{_code(flag_text(option_of(field)))}` | {_cell(help_text(field))} |"
            for field in verb.fields()
            if title_of(verb, field) == title
        ]
        parts.append("\n".join([f"| {title} | |", "|---|---|", *rows]) + "\n")
    parts += [
        textwrap.fill(_text(paragraph), _COLUMNS, break_on_hyphens=False) + "\n"
        for paragraph in paragraphs_of(verb)
    ]
    examples = textwrap.dedent("\n".join(map(example_lines, verb.examples)))
    parts.append(f"```text\n{examples}\n```\n")
    return "\n".join(parts)


def _code(text: str) -> str:
    """Return a text for a code span in a cell of a table."""
    return text.replace("|", "\\|")


def _cell(text: str) -> str:
    """Return a text for a cell of a table."""
    return _text(text).replace("|", "\\|")


def _text(text: str) -> str:
    """Return a text whose letters are no marks of Markdown and no tags of HTML."""
    return re.sub(r"[*<\[\\]|(?<!\w)_", r"\\\g<0>", text)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
