"""`minibroker pipeline COMMAND …`: words in, exit code out.

    words ─► arguments ─► plan ─► jobs/<command> ─► progress, one last sentence
                            └──► --dry-run: preview

Help and wrong usage need no Spark: a job's modules are imported when it runs.
"""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

from minibroker.pipeline.arguments import parse
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.help_texts import HELP, PIPELINE_HELP
from minibroker.pipeline.plan import InspectPlan, JobUsageError, MaintainPlan
from minibroker.pipeline.progress import JsonProgress, TerminalProgress, last_sentence, windows_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from minibroker.pipeline.arguments import Arguments
    from minibroker.pipeline.plan import Engine

_LOOK_S: Final = 0.2
EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130

_NEEDED: Final = {"pyspark": "pyspark", "pyarrow": "pyarrow", "confluent_kafka": "confluent-kafka"}


def run(words: Sequence[str]) -> int:
    """Run the command behind `minibroker pipeline` and return the exit code."""
    return run_words(words, sys.stdout, sys.stderr)


def run_words(words: Sequence[str], out: TextIO, errors: TextIO) -> int:
    """Show help, report wrong usage, or run the job; return the exit code.

    Results go to `out`, complaints to `errors`.
    """
    command = words[0] if words else ""
    if command in ("-h", "--help", "help"):
        out.write(PIPELINE_HELP)
        return EXIT_OK
    if command not in HELP:
        if command:
            errors.write(f"minibroker pipeline: unknown command {command!r}\n")
        errors.write(PIPELINE_HELP)
        return EXIT_USAGE
    if "--help" in words or "-h" in words:
        out.write(HELP[command])
        return EXIT_OK
    name = f"minibroker pipeline {command}"
    try:
        arguments = parse(command, words[1:])
    except JobUsageError as error:
        errors.write(f"{name}: {error}; see {name} --help\n")
        return EXIT_USAGE
    except PipelineError as error:
        errors.write(f"{name}: {error}\n")
        return EXIT_FAILED
    try:
        check_installed()
        return _run(arguments, out, errors)
    except PipelineError as error:
        errors.write(f"{name}: {error}\n")
        return EXIT_FAILED
    except KeyboardInterrupt:
        errors.write(f"{name}: interrupted; nothing was written\n")
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
    plan, engine = arguments.plan, arguments.engine
    if arguments.dry_run:
        from minibroker.pipeline.preview import preview  # noqa: PLC0415  asks the broker

        out.write("\n".join(preview(plan, engine)) + "\n")
        return EXIT_OK
    if isinstance(plan, MaintainPlan):
        return _maintain(plan, out)
    from minibroker.pipeline import launch  # noqa: PLC0415  imports Spark

    if isinstance(plan, InspectPlan):
        return _inspect(plan, engine, out, errors)
    stop = threading.Event()
    if not out.isatty():
        lines = JsonProgress(out)
        with _ctrl_c_sets(stop):
            outcome = launch.run(
                plan, engine, progress=lines, note=lines.note, stop=stop, is_quiet=True
            )
        if windows := windows_note(plan, outcome):
            lines.note(windows)
        return EXIT_INTERRUPTED if stop.is_set() else EXIT_OK
    line = TerminalProgress(out)
    try:
        with _ctrl_c_sets(stop), _when_set(stop, lambda: line.show("ending with this batch")):
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


def _maintain(plan: MaintainPlan, out: TextIO) -> int:
    from minibroker.pipeline import maintenance  # noqa: PLC0415  imports PyArrow

    done = maintenance.run(plan)
    if out.isatty():
        out.write(
            f"{done.merged_files:,} files merged into {done.into_files:,}; "
            f"{done.expired_versions:,} old versions dropped; "
            f"{done.removed_files:,} files removed\n"
        )
    else:
        out.write(json.dumps(done._asdict()) + "\n")
    return EXIT_OK


def _inspect(plan: InspectPlan, engine: Engine, out: TextIO, errors: TextIO) -> int:
    from minibroker.pipeline import launch, report_text  # noqa: PLC0415  imports Spark
    from minibroker.pipeline.jobs import inspect  # noqa: PLC0415

    inspect.check(plan)
    line = TerminalProgress(errors)
    tell = line.show if errors.isatty() else None
    stop = threading.Event()
    try:
        with _ctrl_c_sets(stop), launch.started(engine, tell=tell, is_quiet=True) as spark:
            if stop.is_set():
                raise KeyboardInterrupt
            with _when_set(stop, spark.sparkContext.cancelAllJobs):
                found = inspect.run(spark, plan, tell=tell)
    except PipelineError:
        if stop.is_set():
            raise KeyboardInterrupt from None
        raise
    finally:
        line.close()
    out.write(report_text.text(found))
    return EXIT_OK


@contextmanager
def _when_set(stop: threading.Event, call: Callable[[], None]) -> Iterator[None]:
    """Call `call` repeatedly, in a thread, from the moment `stop` is set until the block ends."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(_LOOK_S):
            if stop.is_set():
                call()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def _ctrl_c_sets(stop: threading.Event) -> Iterator[None]:
    """Make the first Ctrl-C set `stop`; the next one ends the process."""

    def asked(signum: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, asked)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
