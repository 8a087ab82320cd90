"""From a plan to its job: check everything that needs no Spark, then start the session.

Both ways in, the command line and the functions of `minibroker.pipeline`, come through here.
"""

from __future__ import annotations

import importlib
import os
import signal
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.explain import explained, start_sentence
from minibroker.pipeline.files.paths import is_on_this_machine
from minibroker.pipeline.spark import places
from minibroker.pipeline.spark.progress import Note, Reports, operation_notes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from minibroker.pipeline.options.declaration import PipelineVerb
    from minibroker.pipeline.options.shared import Engine
    from minibroker.pipeline.spark.places import Plan
    from minibroker.pipeline.spark.progress import Outcome, Progress

SHUFFLE_PARTITIONS: Final = "8"
"""Partitions of a rollup's windows, in the checkpoint from the first batch on.

Spark's default of 200 costs seconds of every batch on one machine.
"""

_STDERR: Final = 2


class Job(Protocol):
    """The interface of the module of a verb's job, for one that reports batches."""

    def check(self, plan: Any, spark: SparkSession | None = None) -> object:
        """Check the brokers and the directories. Raises PipelineError."""

    def run(self, spark: SparkSession, plan: Any, reports: Reports) -> Outcome:
        """Run the job. `launch` makes a PipelineError of whatever it raises."""


def run(
    verb: PipelineVerb,
    plan: Any,
    engine: Engine,
    *,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
    note: Callable[[Note], None] | None = None,
    stop: threading.Event | None = None,
    tell: Callable[[str], None] | None = None,
    is_quiet: bool = False,
) -> Outcome:
    """Run the job of a plan that reports batches.

    Args:
        engine: the Spark to start, unless there is one.
        spark: a session that runs already, and stays.
        progress: is told of every batch.
        note: is told what there is to know beside the batches.
        stop: set by somebody who wants it to end after the running batch.
        tell: is told what goes on until the first batch is done, a few words each time.
        is_quiet: what Java and Spark's workers print is kept back.

    Raises:
        PipelineError: it cannot be done.
    """
    job: Job = job_of(verb)
    if verb.engine_for is not None:
        engine = verb.engine_for(plan, engine, os.environ)
    if spark is None:
        if tell is not None:
            tell("asking the brokers")
        job.check(resolve_places(plan, engine))
    with started(engine, spark=spark, tell=tell, note=note, is_quiet=is_quiet) as own:
        if spark is None and stop is not None and stop.is_set():
            raise KeyboardInterrupt
        plan = places.resolve_places(plan, places.default_of_session(own))
        if not is_on_this_machine(own.sparkContext.master or ""):
            places.check_shared(own, plan.shared_paths)
        if tell is not None:
            tell("first batch")
        reports = Reports(stop or threading.Event(), progress)
        if note is not None:
            reports = reports._replace(note=note)
        try:
            outcome = job.run(own, plan, reports)
        except Exception as error:
            raise explained(error) from error
    for operation_note in operation_notes(outcome):
        reports.note(operation_note)
    return outcome


def resolve_places(plan: Plan, engine: Engine, spark: SparkSession | None = None) -> Plan:
    """Return the plan with its directories where the session has them, or will have them.

    Args:
        plan: of any verb with a session.
        engine: the Spark to start, unless there is one.
        spark: the caller's session.

    Raises:
        PipelineError: a path is relative, and the default file system is not this machine's.
    """
    from minibroker.pipeline.spark.session import running  # noqa: PLC0415  --dry-run

    if (current_session := spark or running()) is not None:
        return places.resolve_places(plan, places.default_of_session(current_session))
    return places.resolve_places(plan, places.default_of(engine.conf, os.environ))


def job_of(verb: PipelineVerb) -> Any:
    """Return the module of the verb's job; this imports Spark if the verb needs it."""
    return importlib.import_module(verb.job)


def answer(verb: PipelineVerb, plan: Any, engine: Engine, spark: SparkSession | None = None) -> Any:
    """Return what a verb finds that gives one answer. Raises PipelineError."""
    job = job_of(verb)
    job.check(resolve_places(plan, engine, spark))
    with started(engine, spark=spark) as session:
        return job.run(session, plan)


@contextmanager
def started(
    engine: Engine,
    *,
    spark: SparkSession | None = None,
    tell: Callable[[str], None] | None = None,
    note: Callable[[Note], None] | None = None,
    is_quiet: bool = False,
) -> Iterator[SparkSession]:
    """Return a session for one job; a Spark that runs already is used and not stopped.

    Args:
        engine: the Spark to start; of one that runs, only the settings of a session count.
        spark: the caller's session, which stays as it is (`session.beside`).
        tell: is told what goes on.
        note: is told where Spark's pages are, if they are served.
        is_quiet: what Java prints is kept back.

    Raises PipelineError.
    """
    from minibroker.pipeline.spark.session import beside, running, session  # noqa: PLC0415  --dry-run

    if (current_session := spark or running()) is not None:
        if engine.ui and current_session.sparkContext.uiWebUrl is None:
            raise PipelineError(
                "Spark runs already in this process, without its pages: leave out --ui, or make "
                "the session with spark.ui.enabled=true"
            )
        with beside(current_session, engine.conf if spark is None else {}) as own:
            yield own
        return
    if tell is not None:
        tell("starting Spark")
    conf = {"spark.sql.shuffle.partitions": SHUFFLE_PARTITIONS, **engine.conf}
    with _unchanged_ctrl_c(), _java_errors_in_a_file(is_quiet=is_quiet):
        own = session(
            master=engine.master,
            app_name="minibroker pipeline",
            jars=engine.jars,
            packages=engine.packages,
            conf=conf,
            ui=engine.ui,
        )
    if note is not None and engine.ui:
        url = own.sparkContext.uiWebUrl
        note(Note(f"Spark's pages are at {url}", {"ui": url}))
    try:
        yield own
    finally:
        own.stop()


@contextmanager
def _unchanged_ctrl_c() -> Iterator[None]:
    """Give Ctrl-C its handler back behind the block.

    Spark's start makes it cancel jobs and raise in the middle of a call.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _java_errors_in_a_file(*, is_quiet: bool) -> Iterator[None]:
    """Send stderr of Java, and of Spark's Python workers, to a file while the block runs.

    Spark prints a dozen lines before it begins and logs every task that is stopped. Errors that a
    person can mend come as PipelineError. The file has no name: it is gone with the last process
    that writes to it.
    """
    if not is_quiet:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="minibroker-spark-") as directory:
        log = Path(directory) / "log"
        stderr_copy = os.dup(_STDERR)
        with log.open("wb") as file:
            os.dup2(file.fileno(), _STDERR)
        try:
            yield
        except PipelineError as error:
            text = log.read_text(encoding="utf-8", errors="replace")
            raise PipelineError(start_sentence(error, text)) from error
        finally:
            os.dup2(stderr_copy, _STDERR)
            os.close(stderr_copy)
