"""The run of a verb that gives one answer: progress on stderr, the answer on stdout."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from minibroker.cli.errors import EXIT_OK
from minibroker.pipeline.cli.interrupting import ctrl_c_sets, when_set
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.spark import launch
from minibroker.pipeline.spark.progress import TerminalProgress

if TYPE_CHECKING:
    from minibroker.pipeline.options.declaration import Arguments


class VerbAnswer(NamedTuple):
    """The answer of a verb: `answer(found, is_terminal=…)` of its job makes it."""

    text: str
    exit_code: int = EXIT_OK


def run(arguments: Arguments, out: TextIO, errors: TextIO) -> int:
    """Run the job, write its answer to `out`, and return the exit code.

    Raises:
        KeyboardInterrupt: after Ctrl-C.
        PipelineError: it cannot be done.
    """
    verb, plan, engine, _ = arguments
    job = launch.job_of(verb)
    if verb.engine is None:
        result = job.run(plan)
    else:
        job.check(launch.resolve_places(plan, engine))
        result = _result_in_session(job, arguments, errors)
    answer: VerbAnswer = job.answer(result, is_terminal=out.isatty())
    out.write(answer.text)
    return answer.exit_code


def _result_in_session(job: Any, arguments: Arguments, errors: TextIO) -> Any:
    """Return what a job finds in a session of its own; Ctrl-C ends what Spark does."""
    line = TerminalProgress(errors)
    tell = line.show if errors.isatty() else None
    stop = threading.Event()
    try:
        with (
            ctrl_c_sets(stop),
            launch.started(arguments.engine, tell=tell, note=line.note, is_quiet=True) as spark,
        ):
            if stop.is_set():
                raise KeyboardInterrupt
            with when_set(stop, spark.sparkContext.cancelAllJobs):
                return job.run(spark, arguments.plan, tell=tell)
    except PipelineError:
        if stop.is_set():
            raise KeyboardInterrupt from None
        raise
    finally:
        line.close()
