"""Both commands for the command line: words in, exit code out.

`dump-log … | head` ends silently when `head` has read enough.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TextIO

from minibroker.broker.config.options import UsageError
from minibroker.tools.arguments import (
    CHECK_LOG_HELP,
    DUMP_LOG_HELP,
    CheckArguments,
    DumpArguments,
    parse_check_log,
    parse_dump_log,
)

EXIT_OK: Final = 0
EXIT_USAGE: Final = 2


def run(command: str, words: Sequence[str]) -> int:
    """Run `dump-log` or `check-log` with the words behind it; return the exit code."""
    out = sys.stdout
    if out.encoding.lower() != "utf-8" and hasattr(out, "reconfigure"):
        out.reconfigure(errors="replace")  # a terminal that cannot show a key shows a question mark
    try:
        code = run_words(command, words, out, sys.stderr)
        out.flush()
    except BrokenPipeError:
        # What is still buffered has nowhere to go; without this Python complains at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        return EXIT_OK
    return code


def dump_log(arguments: DumpArguments, out: TextIO, errors: TextIO) -> int:
    """Run `minibroker dump-log` and return the exit code. Raises BrokenPipeError."""
    from minibroker.tools.dump_log import run_dump_log  # noqa: PLC0415  not for help

    return run_dump_log(arguments, out, errors)


def check_log(arguments: CheckArguments, out: TextIO, errors: TextIO) -> int:
    """Run `minibroker check-log` and return the exit code. Raises BrokenPipeError."""
    from minibroker.tools.check_log import run_check_log  # noqa: PLC0415  not for help

    return run_check_log(arguments, out, errors)


class _Command(NamedTuple):
    """The functions and texts of a command."""

    help: str
    parse: Callable[[Sequence[str]], Any]
    """Words → arguments; raises UsageError."""
    run: Callable[[Any, TextIO, TextIO], int]


_COMMANDS: Final = {
    "dump-log": _Command(DUMP_LOG_HELP, parse_dump_log, dump_log),
    "check-log": _Command(CHECK_LOG_HELP, parse_check_log, check_log),
}


def run_words(name: str, words: Sequence[str], out: TextIO, errors: TextIO) -> int:
    """Show help, report wrong usage, or run the command; return the exit code.

    Raises BrokenPipeError.
    """
    command = _COMMANDS[name]
    if "--help" in words or "-h" in words:
        out.write(command.help)
        return EXIT_OK
    try:
        arguments = command.parse(words)
    except UsageError as error:
        errors.write(f"minibroker {name}: {error}; see minibroker {name} --help\n")
        return EXIT_USAGE
    return command.run(arguments, out, errors)
