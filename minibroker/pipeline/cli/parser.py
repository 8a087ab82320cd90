"""argparse's parser of a verb and its help page, both from the declaration.

Imported when a verb is parsed or explained: argparse costs 6 ms, which no other command pays.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.options.declaration import (
    InWords,
    built,
    help_text,
    option_of,
    options_of,
    plan_of,
)
from minibroker.pipeline.options.declaration import unknown as unknown_word
from minibroker.pipeline.options.shared import GROUPS, CommandOptions, Engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.pipeline.options.declaration import PlanField, Verb

PROGRAM: Final = "minibroker pipeline"
_BELOW_ZERO: Final = re.compile(r"-\d")
_COLUMNS: Final = 98
_COLUMN_OF_HELP: Final = 27
_PLAIN: Final[dict[str, Any]] = {"color": False} if sys.version_info >= (3, 14) else {}
_ENDS: Final = """\
On a terminal one line shows the progress; otherwise each batch is one JSON line on stdout. A line
without "batch" is a note, for instance about a new topic or about open windows. Ctrl-C ends the job
after the running batch.
"""
_EXITS: Final = (
    "Exit codes: 0; 1 for an error, with one sentence that says why; 2 for wrong usage; 4 for a "
    "record that cannot be used and has no place (--dead-letters); 130 after "
    "Ctrl-C."
)


class Arguments(NamedTuple):
    """A command line, parsed."""

    verb: Verb
    plan: Any
    engine: Engine
    dry_run: bool


class _Parser(argparse.ArgumentParser):
    """argparse's parser, with the sentences of this command line."""

    def error(self, message: str) -> Any:
        raise JobUsageError(message)


def parse(verb: Verb, words: Sequence[str]) -> Arguments:
    """Parse the words behind `minibroker pipeline VERB`.

    Raises:
        JobUsageError: an unknown flag, or a value that cannot be, alone or beside the others.
        PipelineError: the file of `--kafka-config` cannot be read.
    """
    try:
        found, rest = parser_of(verb).parse_known_intermixed_args(_joined(words))
    except argparse.ArgumentError as error:
        raise _usage_error(verb, error) from None
    if rest:
        raise unknown_word(rest[0], [option_of(field).flag for field in _fields_of(verb)])
    way = InWords(
        {
            name: [given] if isinstance(given, str) else given
            for name, given in vars(found).items()
            if given is not None
        }
    )
    plan = plan_of(verb, way)
    engine = Engine() if verb.engine is None else built(verb.engine, way)
    return Arguments(verb, plan, engine, built(CommandOptions, way).dry_run)


def _joined(words: Sequence[str]) -> list[str]:
    """Return the words with `--since -2h` as `--since=-2h`: argparse takes `-2h` for a flag."""
    joined: list[str] = []
    for word in words:
        before = joined[-1] if joined else ""
        if _BELOW_ZERO.match(word) and before.startswith("--") and "=" not in before:
            joined[-1] = f"{before}={word}"
        else:
            joined.append(word)
    return joined


def parser_of(verb: Verb) -> argparse.ArgumentParser:
    """Return the parser; the values stay text, so that Python's way in reads them alike."""
    parser = _Parser(
        prog=f"{PROGRAM} {verb.name}",
        usage=argparse.SUPPRESS,
        description=f"{PROGRAM} {verb.name}: {verb.does}\n\n{_usage(verb)}",
        epilog=_epilog(verb),
        formatter_class=_Page,
        add_help=False,
        allow_abbrev=False,
        exit_on_error=False,
        **_PLAIN,
    )
    fields = _fields_of(verb)
    titles = {option_of(field).group or verb.group: None for field in fields}
    for title in sorted(titles, key=lambda title: _rank(title, verb)):
        group = parser.add_argument_group(title)
        for field in fields:
            if (option_of(field).group or verb.group) == title:
                _add(group, field)
    return parser


def help_of(verb: Verb) -> str:
    """Return the help page of a verb."""
    return parser_of(verb).format_help()


def overview(verbs: Sequence[Verb]) -> str:
    """Return the help page of the pipeline: its verbs, and an example of each."""
    width = max(len(verb.name) for verb in verbs) + 3
    lines = [f"  {verb.name:<{width}}{verb.does}" for verb in verbs]
    examples = "\n".join(_example(verb.examples[0]) for verb in verbs)
    return (
        f"{PROGRAM}: topics into files and back with Apache Spark, on this machine or on a cluster"
        "\n\n" + "\n".join(lines) + f"\n\n{examples}\n\n"
        f"`{PROGRAM} VERB --help` explains the flags. Works with minibroker and with any Kafka.\n"
        "Needs: pip install 'minibroker[pipeline]', and Java 17 or newer.\n"
    )


def _fields_of(verb: Verb) -> list[PlanField]:
    engine = [] if verb.engine is None else options_of(verb.engine)
    return [*options_of(verb.plan), *engine, *options_of(CommandOptions)]


def _rank(title: str, verb: Verb) -> int:
    return -1 if title == verb.group else GROUPS.index(title)


def _add(group: argparse._ArgumentGroup, field: PlanField) -> None:
    option = option_of(field)
    text = help_text(field).replace("%", "%%")
    if option.kind.is_switch:
        group.add_argument(
            option.flag, dest=option.flag, action="append_const", const="", help=text
        )
    elif not option.is_flag:
        # It may be missing for argparse: the sentence about that is ours.
        group.add_argument(option.flag, nargs="?", help=text)
    else:
        metavar = option.metavar or option.kind.metavar
        group.add_argument(
            option.flag, dest=option.flag, action="append", metavar=metavar, help=text
        )


def _usage_error(verb: Verb, error: argparse.ArgumentError) -> JobUsageError:
    """Return the sentence for a flag whose value is missing, or too much."""
    flag = error.argument_name or ""
    switches = {
        option_of(field).flag for field in _fields_of(verb) if option_of(field).kind.is_switch
    }
    return JobUsageError(f"{flag} {'takes no' if flag in switches else 'needs a'} value")


def _usage(verb: Verb) -> str:
    return textwrap.fill(
        f"{PROGRAM} {verb.name} {verb.usage} [OPTION]...",
        _COLUMNS,
        initial_indent="  ",
        subsequent_indent="      ",
        break_on_hyphens=False,
    )


def _epilog(verb: Verb) -> str:
    paragraphs = [
        *verb.notes.strip().split("\n\n"),
        *([_ENDS] if verb.reports_batches else []),
        _EXITS,
    ]
    text = "\n\n".join(
        textwrap.fill(" ".join(paragraph.split()), _COLUMNS, break_on_hyphens=False)
        for paragraph in paragraphs
    )
    return text + "\n\n" + "\n".join(map(_example, verb.examples))


def _example(words: str) -> str:
    """Return an example as a command, over several lines if it is long."""
    lines = [f"  {PROGRAM} {words.split(' --', maxsplit=1)[0]}"]
    for flag in words.split(" --")[1:]:
        if len(lines[-1]) + len(flag) + len(" -- \\") > _COLUMNS:
            lines[-1] += " \\"
            lines.append("     ")
        lines[-1] += f" --{flag}"
    return "\n".join(lines)


class _Page(argparse.RawDescriptionHelpFormatter):
    """argparse's page, with columns of its own; names with hyphens stay whole."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_COLUMN_OF_HELP, width=_COLUMNS)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)
