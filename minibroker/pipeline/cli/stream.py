"""A job that reports batches: one line on a terminal, else a line of JSON for each batch."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TextIO

from minibroker.pipeline.cli.exits import EXIT_INTERRUPTED, EXIT_OK
from minibroker.pipeline.cli.interrupting import ctrl_c_sets, when_set
from minibroker.pipeline.spark import launch
from minibroker.pipeline.spark.progress import (
    JsonProgress,
    TerminalProgress,
    last_sentence,
    windows_note,
)

if TYPE_CHECKING:
    from minibroker.pipeline.options.shared import Engine
    from minibroker.pipeline.verbs.table import StreamPlan


def run(plan: StreamPlan, engine: Engine, out: TextIO, errors: TextIO) -> int:
    """Run the job, report its batches to `out`, and return the exit code."""
    stop = threading.Event()
    return (
        _for_a_person(plan, engine, out, stop)
        if out.isatty()
        else _for_a_script(plan, engine, out, stop)
    )


def _for_a_script(plan: StreamPlan, engine: Engine, out: TextIO, stop: threading.Event) -> int:
    lines = JsonProgress(out)
    with ctrl_c_sets(stop):
        outcome = launch.run(
            plan, engine, progress=lines, note=lines.note, stop=stop, is_quiet=True
        )
    if windows := windows_note(plan, outcome):
        lines.note(windows)
    return EXIT_INTERRUPTED if stop.is_set() else EXIT_OK


def _for_a_person(plan: StreamPlan, engine: Engine, out: TextIO, stop: threading.Event) -> int:
    line = TerminalProgress(out)
    try:
        with ctrl_c_sets(stop), when_set(stop, lambda: line.show("ending with this batch")):
            outcome = launch.run(
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
    out.write(f"{last_sentence(plan, outcome)}\n")
    if windows := windows_note(plan, outcome):
        line.note(windows)
    return EXIT_INTERRUPTED if stop.is_set() else EXIT_OK
