"""The program: from the words of a user to the verb, its answer and the exit code.

    words ─► the table of a `VerbGroup` ─► the module of a verb ─► parser ─► plan ─► run
                    └──► help               └──► help_page

`serve` has a start of 120 ms, so a verb pays for its own module alone.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from minibroker.cli import resume_collector
from minibroker.cli.declaration import Verb, VerbGroup
from minibroker.cli.errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    CommandError,
    UsageError,
)
from minibroker.cli.kinds import near
from minibroker.cli.parser import HELP, asks_for_help, parse
from minibroker.cli.verbs_table import PROGRAM
from minibroker.kafka.errors import MinibrokerError

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Run a command with the streams of the process; return the exit code."""
    out = sys.stdout
    if (out.encoding or "").lower() != "utf-8" and hasattr(out, "reconfigure"):
        out.reconfigure(errors="replace")  # a terminal that cannot show a key shows a question mark
    try:
        code = run_words(sys.argv[1:] if words is None else words, out, sys.stderr)
        out.flush()
    except BrokenPipeError:  # `… | head` has read enough
        drop_rest(out)
        return EXIT_OK
    except OSError as error:  # a full disk, for instance; those of a verb's work are sentences
        drop_rest(out)
        sys.stderr.write(f"minibroker: standard output: {error.strerror}\n")
        return EXIT_FAILED
    return code


def drop_rest(out: TextIO) -> None:
    """Let what is still buffered go nowhere: Python would complain about it at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


def run_words(words: Sequence[str], out: TextIO, errors: TextIO) -> int:
    """Run a command: its results go to `out`, complaints to `errors`. Return the exit code.

    Raises BrokenPipeError: nobody reads `out` any more.
    """
    return _run_group(PROGRAM, words, out, errors)


def member(group: VerbGroup, name: str) -> Verb | VerbGroup:
    """Return a verb of a group, or a group in it, by its name. Raises KeyError."""
    verb: Verb | VerbGroup = import_module(group.modules[name]).VERB
    return verb


def _run_group(group: VerbGroup, words: Sequence[str], out: TextIO, errors: TextIO) -> int:
    name = words[0] if words else ""
    if name in (*HELP, "help"):
        if len(words) > 1 and words[1] in group.modules:
            return _run_group(group, [*words[1:], "--help"], out, errors)
        out.write(_overview(group))
        return EXIT_OK
    name = group.aliases.get(name, name)
    if name not in group.modules:
        if not name:
            errors.write(_overview(group))
        else:
            hint = near(name, group.modules)
            errors.write(
                f"{group.command}: unknown verb {name!r}{hint}; see {group.command} --help\n"
            )
        return EXIT_USAGE
    verb = member(group, name)
    if isinstance(verb, VerbGroup):
        return _run_group(verb, words[1:], out, errors)
    if asks_for_help(words[1:]):
        from minibroker.cli.help_page import help_of  # noqa: PLC0415  a start needs no help page

        out.write(help_of(verb))
        return EXIT_OK
    return _run_verb(verb, words[1:], out, errors)


def _overview(group: VerbGroup) -> str:
    from minibroker.cli.help_page import overview  # noqa: PLC0415  as above

    return overview(group, {name: member(group, name) for name in group.modules})


def _run_verb(verb: Verb, words: Sequence[str], out: TextIO, errors: TextIO) -> int:
    """Run a verb; its failures become a sentence on `errors` and an exit code."""
    command = verb.command
    try:
        if not verb.resumes_collector:
            resume_collector()
        return verb.start(parse(verb, words), out, errors)
    except UsageError as error:
        errors.write(f"{command}: {error}; see {command} --help\n")
        return EXIT_USAGE
    except CommandError as error:
        errors.write(f"{command}: {error}\n")
        return error.exit_code
    except MinibrokerError as error:
        errors.write(f"{command}: {error}\n")
        return EXIT_FAILED
    except BrokenPipeError:
        raise
    except OSError as error:
        file_text = f"{error.filename}: " if error.filename else ""
        errors.write(f"{command}: {file_text}{error.strerror or error}\n")
        return EXIT_FAILED
    except KeyboardInterrupt:
        errors.write(f"{command}: interrupted\n")
        return EXIT_INTERRUPTED
