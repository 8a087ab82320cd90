"""The help page of a verb and of a group of verbs, from their declarations.

Imported when a page is shown: a start does without.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from minibroker.cli.declaration import VerbGroup, help_text, option_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.cli.declaration import Option, PlanField, Verb

COLUMNS: Final = 98
_COLUMN_OF_HELP: Final = 27


def help_of(verb: Verb) -> str:
    """Return the help page of a verb."""
    fields = verb.fields()
    parts = [
        f"{verb.command}: {verb.does}",
        _filled(f"{verb.command} {usage_of(verb)}", "  ", "      "),
    ]
    for title in titles_of(verb):
        rows = [_row(field) for field in fields if title_of(verb, field) == title]
        parts.append("\n".join([f"{title}:", *rows]))
    parts += [_filled(paragraph) for paragraph in paragraphs_of(verb)]
    parts.append("\n".join(example_lines(words) for words in verb.examples))
    return "\n\n".join(parts) + "\n"


def overview(group: VerbGroup, members: Mapping[str, Verb | VerbGroup]) -> str:
    """Return the help page of a group: its verbs, and an example of each if the group wants it."""
    width = max(map(len, members)) + 3
    parts = [f"{group.command}: {group.does}"]
    if not group.shows_examples:
        parts.append(f"  {group.command} VERB [OPTION]...")
    for title, names in group.sections.items():
        rows = [
            _filled(f"  {name:<{width}}{members[name].does}", "", " " * (width + 2))
            for name in names
        ]
        parts.append("\n".join([f"{title}:", *rows] if title else rows))
    if group.shows_examples:
        firsts = [
            member.examples[0] for member in members.values() if not isinstance(member, VerbGroup)
        ]
        parts.append("\n".join(map(example_lines, firsts)))
    parts += [_filled(paragraph) for paragraph in _paragraphs(group.notes)]
    return "\n\n".join(parts) + "\n"


def usage_of(verb: Verb) -> str:
    """Return the words behind the name of a verb: what it needs, and whether there are options."""
    options = [(option_of(field), field.is_needed) for field in verb.fields()]
    if verb.usage:
        words = [verb.usage]
    else:
        words = [_place(option, is_needed) for option, is_needed in options if not option.is_flag]
        words += [
            f"{option.flag} {option.metavar or option.kind.metavar}"
            for option, is_needed in options
            if option.is_flag and is_needed
        ]
    if any(option.is_flag and not is_needed for option, is_needed in options):
        words.append("[OPTION]...")
    return " ".join(words)


def titles_of(verb: Verb) -> list[str]:
    """Return the titles of the options, those of the verb itself first."""
    titles = dict.fromkeys(title_of(verb, field) for field in verb.fields())
    order = [verb.group, *verb.groups, *titles]
    return sorted(titles, key=order.index)


def title_of(verb: Verb, field: PlanField) -> str:
    """Return the title under which an option stands."""
    return option_of(field).group or verb.group


def paragraphs_of(verb: Verb) -> list[str]:
    """Return the notes of a verb and its exit codes, each a line."""
    return [*_paragraphs(verb.notes), *_paragraphs(verb.exits)]


def flag_text(option: Option) -> str:
    """Return the flags of an option with the name of its value: `-n, --count N`."""
    if not option.is_flag:
        return _place(option, is_needed=True)
    flags = f"{option.short}, {option.flag}" if option.short else option.flag
    return f"{flags} {option.metavar or option.kind.metavar}".rstrip()


def example_lines(words: str) -> str:
    """Return an example as a command, over several lines if it is long."""
    first, *flags = words.split(" --")
    lines = [f"  minibroker {first}".rstrip()]
    for flag in flags:
        if len(lines[-1]) + len(flag) + len(" -- \\") > COLUMNS:
            lines[-1] += " \\"
            lines.append("     ")
        lines[-1] += f" --{flag}"
    return "\n".join(lines)


def _place(option: Option, is_needed: bool) -> str:
    name = f"{option.flag}..." if option.kind.is_repeated else option.flag
    return name if is_needed else f"[{name}]"


def _row(field: PlanField) -> str:
    """Return an option and what it does, in two columns."""
    flags = flag_text(option_of(field))
    indent = " " * _COLUMN_OF_HELP
    text = _filled(help_text(field), indent, indent)
    if len(flags) > _COLUMN_OF_HELP - 4:
        return f"  {flags}\n{text}"
    return f"  {flags:<{_COLUMN_OF_HELP - 2}}{text.lstrip()}"


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.strip().split("\n\n") if part.strip()]


def _filled(text: str, first: str = "", others: str = "") -> str:
    return textwrap.fill(
        text,
        COLUMNS,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
        break_long_words=False,
    )
