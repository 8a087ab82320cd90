"""The run of a verb that gives one answer: progress on stderr, and Ctrl-C ends it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TextIO, TypeVar

from minibroker.pipeline.cli.interrupting import ctrl_c_sets, when_set
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.spark import launch
from minibroker.pipeline.spark.progress import TerminalProgress

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from minibroker.pipeline.options.shared import Engine

Answer = TypeVar("Answer")


def answer_of(
    job: Callable[[SparkSession, Callable[[str], None] | None], Answer],
    engine: Engine,
    errors: TextIO,
) -> Answer:
    """Return what a job finds.

    Args:
        job: gets a session, and a function that is told about the current step.
        engine: the Spark to start.
        errors: stderr, for the progress.

    Raises KeyboardInterrupt after Ctrl-C.
    """
    line = TerminalProgress(errors)
    tell = line.show if errors.isatty() else None
    stop = threading.Event()
    try:
        with (
            ctrl_c_sets(stop),
            launch.started(engine, tell=tell, note=line.note, is_quiet=True) as spark,
        ):
            if stop.is_set():
                raise KeyboardInterrupt
            with when_set(stop, spark.sparkContext.cancelAllJobs):
                return job(spark, tell)
    except PipelineError:
        if stop.is_set():
            raise KeyboardInterrupt from None
        raise
    finally:
        line.close()
