"""A range of time as a station of a task (`archive.task`): the rows of a batch that are in it.

The same rows as `operations.frames.in_time` chooses where Spark has the records.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.pipeline.operations.rows import RowOperations

_TIME = pa.timestamp("ms", "UTC")


def stations_of(
    operations: RowOperations,
) -> tuple[Callable[[pa.RecordBatch], pa.RecordBatch], ...]:
    """Return the station for `since` and `until`, none if there is neither."""
    since, until = operations.since, operations.until
    if since is None and until is None:
        return ()
    since_ms = None if since is None else since.ms
    until_ms = None if until is None else until.ms
    return (partial(in_range, since_ms, until_ms),)


def in_range(
    since_ms: int | None,
    until_ms: int | None,
    records: pa.RecordBatch,
    last_ms: int | None = None,
) -> pa.RecordBatch:
    """Return the rows with a timestamp from `since_ms` on and before `until_ms`.

    Args:
        since_ms: milliseconds since the epoch, None for no limit.
        until_ms: the same.
        records: with the columns of `schemas.RECORD`.
        last_ms: of `dated_ahead.latest_ms`, for a job that sets later records aside: nobody knows
            whether these are in the range, so they stay. None: they do not.
    """
    chosen = pc.greater_equal(records["timestampType"], 0)
    if since_ms is not None:
        chosen = pc.and_(chosen, pc.greater_equal(records["timestamp"], _moment(since_ms)))
    if until_ms is not None:
        is_before = pc.less(records["timestamp"], _moment(until_ms))
        if last_ms is not None:
            is_before = pc.or_(is_before, pc.greater(records["timestamp"], _moment(last_ms)))
        chosen = pc.and_(chosen, is_before)
    return records.filter(chosen)


def _moment(ms: int) -> pa.Scalar:
    return pa.scalar(ms, _TIME)
