"""A job that reports batches: one line on a terminal, else a line of JSON for each batch."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TextIO

from minibroker.cli.errors import EXIT_INTERRUPTED, EXIT_OK
from minibroker.pipeline.cli.interrupting import ctrl_c_sets, when_set
from minibroker.pipeline.spark import launch
from minibroker.pipeline.spark.progress import JsonProgress, TerminalProgress, last_sentence

if TYPE_CHECKING:
    from minibroker.pipeline.options.declaration import Arguments
    from minibroker.pipeline.spark.progress import Note, Outcome


def run(arguments: Arguments, out: TextIO, errors: TextIO) -> int:
    """Run the job, report its batches to `out`, and return the exit code."""
    stop = threading.Event()
    show = _for_a_person if out.isatty() else _for_a_script
    show(arguments, out, stop)
    return EXIT_INTERRUPTED if stop.is_set() else EXIT_OK


def _for_a_script(arguments: Arguments, out: TextIO, stop: threading.Event) -> None:
    verb, plan, engine, _ = arguments
    lines = JsonProgress(out)
    with ctrl_c_sets(stop):
        outcome = launch.run(
            verb, plan, engine, progress=lines, note=lines.note, stop=stop, is_quiet=True
        )
    if (note := _note_of(arguments, outcome)) is not None:
        lines.note(note)


def _for_a_person(arguments: Arguments, out: TextIO, stop: threading.Event) -> None:
    verb, plan, engine, _ = arguments
    line = TerminalProgress(out)
    try:
        with ctrl_c_sets(stop), when_set(stop, lambda: line.show("ending with this batch")):
            outcome = launch.run(
                verb,
                plan,
                engine,
                progress=line,
                note=line.note,
                stop=stop,
                tell=line.show,
                is_quiet=True,
            )
    finally:
        line.close()
    done = "" if verb.done is None else verb.done(plan, outcome.rows)
    out.write(f"{last_sentence(done, outcome)}\n")
    if (note := _note_of(arguments, outcome)) is not None:
        line.note(note)


def _note_of(arguments: Arguments, outcome: Outcome) -> Note | None:
    """Return what there is to say about the end of the job, mostly nothing."""
    note = arguments.verb.note
    return None if note is None else note(arguments.plan, outcome)
