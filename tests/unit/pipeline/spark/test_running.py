"""A query watched: what Spark tells of its batches, what is made of it, and how it ends."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.spark.repeating import repeated
from minibroker.pipeline.spark.running import Watch, lag_of, run_started


def progress_of(number: int, rows: int, **more: Any) -> dict[str, Any]:
    """Spark's progress of one batch."""
    return {
        "batchId": number,
        "timestamp": f"2026-11-21T07:00:{number:02d}.500Z",
        "durationMs": {"addBatch": 400, "triggerExecution": 500},
        "numInputRows": rows,
        "sources": [{"endOffset": '{"t":{"0":5}}', "latestOffset": {"t": {"0": 7, "1": 3}}}],
        "stateOperators": [],
        **more,
    }


class ProgressDict(dict[str, Any]):
    """Spark's progress, as PySpark gives it: fields, and all of it as JSON."""

    @property
    def json(self) -> str:
        return json.dumps(self)


class Query:
    """A query of Spark's, as far as it is asked."""

    def __init__(self, *batches: dict[str, Any], error: Exception | None = None) -> None:
        self._batches = list(batches)
        self._error = error
        self.recentProgress: list[ProgressDict] = []
        self.isActive = True
        self.status = {"isTriggerActive": True}
        self.stops = 0

    @property
    def lastProgress(self) -> ProgressDict | None:
        """Each look finds one batch more; behind the last one the query ends."""
        if self._batches:
            batch = self._batches.pop(0)
            self.recentProgress.append(ProgressDict(batch))
        else:
            self.isActive = False
        return self.recentProgress[-1] if self.recentProgress else None

    def exception(self) -> Exception | None:
        return None if self.isActive else self._error

    def awaitTermination(self, timeout: float) -> bool:
        return not self.isActive

    def stop(self) -> None:
        self.stops += 1
        self.isActive = False


class FailingQuery(Query):
    """A query that fails while it is waited for: PySpark raises then."""

    def awaitTermination(self, timeout: float) -> bool:
        self.isActive = False
        raise StreamingQueryException(str(self._error))


def test_every_batch_is_told_once_and_summed_up() -> None:
    idle = progress_of(1, 0)
    idle["durationMs"] = {"latestOffset": 1, "triggerExecution": 1}
    state = {"numRowsDroppedByWatermark": 2, "numRowsTotal": 9, "numRowsRemoved": 4}
    last = progress_of(2, 20, stateOperators=[state], observedMetrics={"bad": {"bad_records": 3}})
    batches: list[Any] = []
    query = Query(progress_of(0, 10), idle, last)
    outcome = Watch(query, batches.append).run(threading.Event())
    assert [(batch.number, batch.rows, batch.total_rows, batch.lag) for batch in batches] == [
        (0, 10, 10, 5),
        (2, 20, 30, 5),
    ]
    assert (batches[0].late_rows, batches[0].bad_records) == (None, None)
    assert (batches[1].late_rows, batches[1].bad_records, batches[1].open_windows) == (2, 3, 9)
    assert outcome.rows == 30
    assert outcome.seconds == 2.5
    assert (outcome.bad_records, outcome.late_rows, outcome.open_windows) == (3, 2, 9)
    assert outcome.final_windows == 4
    assert not outcome.was_stopped
    assert query.stops == 1


def test_counted_rows_win_over_those_of_the_source() -> None:
    first, second = (
        {"row_operations": {"written_rows": 3, "unmaskable_rows": 1, "found_places": bits}}
        for bits in (0b01, 0b10)
    )
    query = Query(
        progress_of(0, 10, observedMetrics=first),
        progress_of(1, 10, observedMetrics=second),
        progress_of(
            2, 10, observedMetrics={"row_operations": {"written_rows": 0, "found_places": None}}
        ),
    )
    batches: list[Any] = []
    outcome = Watch(query, batches.append).run(threading.Event())
    assert [(batch.rows, batch.bad_records) for batch in batches] == [
        (3, None),
        (3, None),
        (0, None),
    ]
    assert (outcome.rows, outcome.unmaskable_rows, outcome.found_places) == (6, 2, 0b11)


def test_dead_letters_are_bad_records_and_not_written_ones() -> None:
    counts = {0: {"written_rows": 9, "set_aside_rows": 1}, 1: {"written_rows": 5}}
    batches: list[Any] = []
    watch = Watch(
        Query(progress_of(0, 10), progress_of(1, 5)),
        batches.append,
        metrics_of=lambda progress: counts[progress["batchId"]],
    )
    outcome = watch.run(threading.Event())
    assert (outcome.rows, outcome.bad_records) == (14, 1)
    assert [(batch.rows, batch.bad_records) for batch in batches] == [(9, 1), (5, None)]


def test_it_ends_when_asked_and_the_batch_is_done() -> None:
    stop = threading.Event()
    stop.set()
    query = Query(progress_of(0, 10), progress_of(1, 10), progress_of(2, 10))
    outcome = Watch(query, None).run(stop)
    assert outcome.was_stopped
    assert outcome.batches >= 2  # the one it saw running, and at least what came before
    assert query.stops == 1


def test_it_ends_with_the_batch_that_is_the_last() -> None:
    query = Query(*[progress_of(number, 10) for number in range(50)])
    outcome = Watch(query, None, is_done=lambda progress: progress["batchId"] == 1).run(
        threading.Event()
    )
    assert 20 <= outcome.rows < 100
    assert query.stops == 1
    assert not outcome.was_stopped


def test_a_failure_is_one_sentence_and_the_query_is_stopped() -> None:
    query = Query(error=RuntimeError("PipelineError: make the topic"))
    query.isActive = False
    with pytest.raises(PipelineError, match=r"^make the topic$"):
        Watch(query, None).run(threading.Event())
    assert query.stops == 1


def test_a_failure_between_two_looks_is_one_sentence() -> None:
    query = FailingQuery(progress_of(0, 10), error=RuntimeError("PipelineError: make the topic"))
    with pytest.raises(PipelineError, match=r"^make the topic$"):
        Watch(query, None).run(threading.Event())
    assert query.stops == 1


def test_rows_may_be_counted_by_the_job() -> None:
    outcome = Watch(Query(progress_of(0, 10)), None, rows_of=lambda _: 7).run(threading.Event())
    assert outcome.rows == 7


def test_a_start_that_was_too_slow_is_made_again() -> None:
    """Only before the first batch, and only for that."""
    slow = RuntimeError("SparkException: Python worker failed to connect back.")

    def failing(*batches: dict[str, Any], error: Exception = slow) -> Watch:
        return Watch(Query(*batches, error=error), None)

    starts = [Watch(Query(progress_of(0, 10)), None), failing(), failing()]
    assert run_started(starts.pop, None).rows == 10
    for watch in (failing(progress_of(0, 1)), failing(error=RuntimeError("other"))):
        with pytest.raises(PipelineError):
            run_started([watch].pop, None)
    with pytest.raises(PipelineError, match="too busy"):
        run_started(failing, None)


def test_lag_is_known_when_the_source_tells_its_end() -> None:
    assert lag_of(progress_of(0, 1)) == 2 + 3
    assert lag_of({"sources": [{"endOffset": {"t": {"0": 5}}, "latestOffset": None}]}) is None


def test_the_calls_end_with_the_block() -> None:
    called = threading.Semaphore(0)
    thread_count = threading.active_count()
    with repeated(0.001, called.release):
        for _ in range(3):
            assert called.acquire(timeout=60)
    assert threading.active_count() == thread_count


def test_a_block_may_end_before_the_first_call() -> None:
    called = threading.Event()
    with repeated(3_600.0, called.set):
        pass
    assert not called.is_set()
