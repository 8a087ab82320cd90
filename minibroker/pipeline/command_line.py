"""The run of `minibroker pipeline VERB …`, parsed by `minibroker.cli`: a plan in, exit code out.

    plan ─► VERB.command ─► VERB.job, progress, one last sentence
      └──► --dry-run: cli.dry_run

The first line says the job, its brokers and its Spark, before anything slow is imported: Spark's
start takes seconds, the first batch more. Help and wrong usage need no Spark: a command's modules
are imported when it runs.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from typing import TYPE_CHECKING, Final, TextIO

from minibroker.cli.declaration import given_lines, option_of, options_of
from minibroker.cli.errors import EXIT_INTERRUPTED, EXIT_OK
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.spark.progress import Note

if TYPE_CHECKING:
    from minibroker.pipeline.options.declaration import Arguments

_NEEDED: Final = {"pyspark": "pyspark", "pyarrow": "pyarrow"}
"""Module → the package that has it."""


def run(arguments: Arguments, out: TextIO, errors: TextIO) -> int:
    """Run the verb, or show its plan; return the exit code.

    Results go to `out`, complaints to `errors`. Raises PipelineError.
    """
    check_installed()
    try:
        return _run(arguments, out, errors)
    except KeyboardInterrupt:
        errors.write(f"{arguments.verb.command}: interrupted; nothing was written\n")
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
    command = importlib.import_module(arguments.verb.command_module)
    return int(command.run(arguments, out, errors))


def announce(arguments: Arguments, out: TextIO, errors: TextIO) -> None:
    """Write the line, unless the verb needs no Spark.

    Jobs that report batches write it to `out`, as a line of JSON for a script. The others have one
    answer there, so the line goes to `errors`.
    """
    if arguments.verb.engine is None:
        return
    note = _starting(arguments)
    if arguments.verb.reports_batches and not out.isatty():
        out.write(json.dumps(note.fields) + "\n")
        out.flush()
        return
    stream = out if arguments.verb.reports_batches else errors
    stream.write(f"{note.sentence}\n")
    stream.flush()


def _starting(arguments: Arguments) -> Note:
    """Return the line for a verb with Spark."""
    verb, plan, master = arguments.verb, arguments.plan, arguments.engine.master
    places = [
        str(getattr(plan, field.name))
        for field in options_of(verb.plan)
        if not option_of(field).is_flag
    ]
    options = [*places, *given_lines(plan)]
    command, spark = " ".join([verb.name, *options]), f"starting Spark ({master})"
    fields = {"starting": verb.name, "options": options, "master": master}
    brokers = verb.brokers(plan)
    if brokers is None:
        return Note(f"{command}: {spark}", fields)
    return Note(f"{command}: asking {brokers}, then {spark}", {**fields, "brokers": brokers})
