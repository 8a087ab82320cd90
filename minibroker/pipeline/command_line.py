"""`minibroker pipeline VERB …`: words in, exit code out.

    words ─► cli.parser ─► plan ─► VERB.command ─► VERB.job, progress, one last sentence
                             ├──► --dry-run: cli.dry_run
                             └──► else, before that: cli.starting

Help and wrong usage need no Spark: a command's modules are imported when it runs.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Final, TextIO

from minibroker.pipeline.cli.parser import help_of, overview, parse
from minibroker.pipeline.cli.starting import announce
from minibroker.pipeline.errors import (
    EXIT_BAD_RECORD,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    BadRecordError,
    JobUsageError,
    PipelineError,
)
from minibroker.pipeline.options.kinds import near
from minibroker.pipeline.verbs.table import VERBS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.pipeline.cli.parser import Arguments

_NEEDED: Final = {"pyspark": "pyspark", "pyarrow": "pyarrow"}
"""Module → the package that has it."""


def run(words: Sequence[str]) -> int:
    """Run the command behind `minibroker pipeline` and return the exit code."""
    return run_words(words, sys.stdout, sys.stderr)


def run_words(words: Sequence[str], out: TextIO, errors: TextIO) -> int:
    """Show help, report wrong usage, or run the verb; return the exit code.

    Results go to `out`, complaints to `errors`.
    """
    name = words[0] if words else ""
    if name in ("-h", "--help", "help"):
        out.write(overview(list(VERBS.values())))
        return EXIT_OK
    if name not in VERBS:
        if name:
            errors.write(f"minibroker pipeline: unknown verb {name!r}{near(name, VERBS)}\n\n")
        errors.write(overview(list(VERBS.values())))
        return EXIT_USAGE
    if "--help" in words or "-h" in words:
        out.write(help_of(VERBS[name]))
        return EXIT_OK
    said = f"minibroker pipeline {name}"
    try:
        arguments = parse(VERBS[name], words[1:])
        check_installed()
        return _run(arguments, out, errors)
    except JobUsageError as error:
        errors.write(f"{said}: {error}; see {said} --help\n")
        return EXIT_USAGE
    except PipelineError as error:
        errors.write(f"{said}: {error}\n")
        return EXIT_BAD_RECORD if isinstance(error, BadRecordError) else EXIT_FAILED
    except KeyboardInterrupt:
        errors.write(f"{said}: interrupted; nothing was written\n")
        return EXIT_INTERRUPTED


def check_installed() -> None:
    """Raise PipelineError if a package of the extra `pipeline` is missing."""
    missing = [name for module, name in _NEEDED.items() if not importlib.util.find_spec(module)]
    if missing:
        raise PipelineError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed: "
            "pip install 'minibroker[pipeline]'"
        )


def _run(arguments: Arguments, out: TextIO, errors: TextIO) -> int:
    if arguments.dry_run:
        from minibroker.pipeline.cli.dry_run import preview  # noqa: PLC0415  asks the broker

        out.write("\n".join(preview(arguments)) + "\n")
        return EXIT_OK
    announce(arguments, out, errors)
    command = importlib.import_module(arguments.verb.command)
    return int(command.run(arguments, out, errors))
