"""A running streaming query: reports its batches, stops it on request, turns errors into sentences.

Spark runs the query in Java; this thread looks at it a few times a second. A batch counts once
Spark has reported its progress, which happens after the commit of the batch.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import StreamingQueryException

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.explain import PYTHON_TOO_SLOW, explained
from minibroker.pipeline.operations.rows import METRIC, PLACE_BITS, ROWS, SET_ASIDE, UNMASKABLE
from minibroker.pipeline.spark.progress import Batch, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.streaming import StreamingQuery

    from minibroker.pipeline.spark.progress import Progress

_LOOK_S: Final = 0.2
_STARTS_MAX: Final = 5


class Watch:
    """Follows one query."""

    def __init__(
        self,
        query: StreamingQuery,
        progress: Progress | None,
        *,
        rows_of: Callable[[Mapping[str, Any]], int] | None = None,
        metrics_of: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        is_done: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> None:
        """Follow `query`.

        Args:
            query: the query whose batches are reported.
            progress: called with each batch, None for no reports.
            rows_of: returns the rows of a batch from its progress; the default is the rows of the
                source.
            metrics_of: returns metrics of `operations.rows` from a batch's progress, beside those
                that the query itself has observed. Their rows win over `rows_of`.
            is_done: returns whether a batch was the last one, for a query that does not end by
                itself.
        """
        self._query = query
        self._progress = progress
        self._rows_of = rows_of or _input_rows
        self._metrics_of = metrics_of or _none
        self._is_done = is_done or _never
        self._last_number = -1
        self._began_ms: int | None = None
        self._saw_last = False
        self.outcome = Outcome()

    def run(self, stop: threading.Event) -> Outcome:
        """Wait until the query ends, or until `stop` is set and the running batch is done.

        Raises:
            PipelineError: the query failed.
        """
        try:
            while self._query.isActive:
                self._report()
                self._raise_failure()
                if self._saw_last:
                    break
                if stop.is_set():
                    self._end_batch()
                    self.outcome = self.outcome._replace(was_stopped=True)
                    break
                self._wait()
        finally:
            self._query.stop()
        self._raise_failure()
        self._report()
        return self.outcome

    def _wait(self) -> None:
        """Wait until the next look, or until the query ends.

        `_raise_failure` reports an error of the query, so this leaves it.
        """
        with suppress(StreamingQueryException):
            self._query.awaitTermination(_LOOK_S)  # type: ignore[arg-type]  # PySpark takes float

    def _end_batch(self) -> None:
        """Wait until the running batch is over."""
        number = _number_of(self._query)
        while _number_of(self._query) == number and self._query.isActive:
            if not self._query.status["isTriggerActive"]:
                break
            threading.Event().wait(_LOOK_S)

    def _raise_failure(self) -> None:
        error = self._query.exception()
        if error is not None and not self._query.isActive:
            raise explained(error)

    def _report(self) -> None:
        """Report the batches that ended since the last look."""
        last = self._query.lastProgress
        if last is None or last["batchId"] <= self._last_number:
            return
        # All that Spark keeps, up to a hundred, is read only if more than one batch ended.
        is_next = last["batchId"] == self._last_number + 1
        for progress in [last] if is_next else self._query.recentProgress:
            facts = json.loads(progress.json)
            if facts["batchId"] <= self._last_number or "addBatch" not in facts["durationMs"]:
                continue
            self._last_number = facts["batchId"]
            self._take(facts)

    def _take(self, facts: Mapping[str, Any]) -> None:
        began_ms = _milliseconds(facts["timestamp"])
        took_ms = facts["durationMs"]["triggerExecution"]
        if self._began_ms is None:
            self._began_ms = began_ms
        metrics = {**_of_operations(facts), **self._metrics_of(facts)}
        count = self._rows_of(facts)
        earlier, rows = self.outcome, int(metrics.get(ROWS, count))
        states = facts.get("stateOperators") or ()
        self.outcome = earlier._replace(
            rows=earlier.rows + rows,
            batches=earlier.batches + 1,
            seconds=(began_ms + took_ms - self._began_ms) / 1000,
            bad_records=earlier.bad_records
            + _observed(facts, "bad_records")
            + int(metrics.get(SET_ASIDE) or 0),
            unmaskable_rows=earlier.unmaskable_rows + int(metrics.get(UNMASKABLE) or 0),
            found_places=earlier.found_places | int(metrics.get(PLACE_BITS) or 0),
            late_rows=earlier.late_rows
            + sum(state["numRowsDroppedByWatermark"] for state in states),
            final_windows=earlier.final_windows + sum(state["numRowsRemoved"] for state in states),
            open_windows=sum(state["numRowsTotal"] for state in states),
        )
        self._saw_last = self._saw_last or self._is_done(facts)
        if self._progress is not None:
            self._progress(
                Batch(
                    number=facts["batchId"],
                    rows=rows,
                    total_rows=self.outcome.rows,
                    seconds=self.outcome.seconds,
                    batch_seconds=took_ms / 1000,
                    lag=lag_of(facts),
                    bad_records=self.outcome.bad_records
                    if SET_ASIDE in metrics or _has_observed(facts)
                    else None,
                    late_rows=self.outcome.late_rows if states else None,
                    open_windows=self.outcome.open_windows if states else None,
                )
            )


def run_started(start: Callable[[], Watch], stop: threading.Event | None) -> Outcome:
    """Start queries and run them; start again if Spark's Python was not ready for the first batch.

    Spark waits ten seconds for the process of a streaming source, which is too short on a busy
    machine. With the checkpoint a second start does the same as the first.

    Raises:
        PipelineError: a query failed.
    """
    stop = stop or threading.Event()
    for _ in range(_STARTS_MAX - 1):
        watch = start()
        try:
            return watch.run(stop)
        except PipelineError as error:
            if watch.outcome.batches or str(error) != PYTHON_TOO_SLOW or stop.is_set():
                raise
    return start().run(stop)


def lag_of(progress: Mapping[str, Any]) -> int | None:
    """Return the offsets between the end of a batch and the end of the topics, None if unknown."""
    total = 0
    for source in progress["sources"]:
        end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if end is None or latest is None:
            return None
        for topic, partitions in latest.items():
            for partition, offset in partitions.items():
                total += max(0, offset - end.get(topic, {}).get(partition, 0))
    return total


def _offsets(text: Any) -> Mapping[str, Mapping[str, int]] | None:
    """Return the position of a source; Spark gives it as JSON or as text of JSON."""
    plain = json.loads(text) if isinstance(text, str) else text
    return plain if isinstance(plain, dict) else None


def _input_rows(progress: Mapping[str, Any]) -> int:
    return int(progress["numInputRows"])


def _never(progress: Mapping[str, Any]) -> bool:
    return False


def _none(progress: Mapping[str, Any]) -> Mapping[str, Any]:
    return {}


def _has_observed(progress: Mapping[str, Any]) -> bool:
    metrics = (progress.get("observedMetrics") or {}).values()
    return any("bad_records" in names for names in metrics)


def _of_operations(progress: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the rows of `operations.frames` have counted, empty without operations."""
    metrics: Mapping[str, Any] = (progress.get("observedMetrics") or {}).get(METRIC) or {}
    return metrics


def _observed(progress: Mapping[str, Any], name: str) -> int:
    """Return the sum of a metric over all `observe`s of the query."""
    metrics = (progress.get("observedMetrics") or {}).values()
    return sum(int(metric.get(name) or 0) for metric in metrics)


def _number_of(query: StreamingQuery) -> int:
    last = query.lastProgress
    return -1 if last is None else int(last["batchId"])


def _milliseconds(timestamp: str) -> int:
    """Return the milliseconds since the epoch of Spark's `2026-11-21T07:34:20.191Z`."""
    return round(datetime.fromisoformat(timestamp).timestamp() * 1000)
