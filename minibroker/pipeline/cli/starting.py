"""The first line of a command with Spark: the job, its brokers and its Spark.

It is written before anything slow is imported: Spark's start takes seconds, the first batch more.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from minibroker.cli.declaration import given_lines, option_of, options_of
from minibroker.pipeline.spark.progress import Note

if TYPE_CHECKING:
    from minibroker.pipeline.options.declaration import Arguments


def announce(arguments: Arguments, out: TextIO, errors: TextIO) -> None:
    """Write the line, unless the verb needs no Spark.

    Jobs that report batches write it to `out`, as a line of JSON for a script. The others have one
    answer there, so the line goes to `errors`.
    """
    if arguments.verb.engine is None:
        return
    note = starting(arguments)
    if arguments.verb.reports_batches and not out.isatty():
        out.write(json.dumps(note.fields) + "\n")
        out.flush()
        return
    stream = out if arguments.verb.reports_batches else errors
    stream.write(f"{note.sentence}\n")
    stream.flush()


def starting(arguments: Arguments) -> Note:
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
