"""The times of records: the one bound for them, and a range that a job chooses. Pure.

A date of more than a day ahead of now makes a bad record. A record's timestamp is a claim of its
producer. One that gives microseconds as milliseconds dates a record in the year 58879, and such a
date may neither end a job nor move a watermark. So it is bad like a value that cannot be decoded,
and goes where such records go (`--dead-letters`). A date before the year 1 is bad, too: no table
knows it.

`now` is the time of the batch in Spark's checkpoint (`job_directory.batch_time_ms`), so that a
batch that is repeated has the same bad records. `operations.dated_columns` has the same bound for
Spark's columns.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.pipeline.operations.rows import RowOperations

AHEAD_MS: Final = 24 * 60 * 60 * 1000
"""How far ahead of now a date may be: clocks and zones differ by less."""
FIRST_MS: Final = -62_135_596_800_000
"""The first moment of the year 1."""
REASON: Final = "reason"

REASON_PARTS: Final = (
    "it is dated ",
    " ms since 1970, which is more than a day ahead, or before the year 1: its producer gave "
    "another unit, or has a wrong clock",
)
"""The reason, before and behind the number."""

_TIME: Final = pa.timestamp("ms", "UTC")


class Judged(NamedTuple):
    """The records of a batch, by their dates."""

    good: pa.RecordBatch
    bad: pa.RecordBatch | None
    """With the column `reason`; None: there is no bad record."""


def latest_ms(now_ms: int) -> int:
    """Return the last moment, in ms since 1970, that a record may be dated."""
    return now_ms + AHEAD_MS


def judged(records: pa.RecordBatch, last_ms: int) -> Judged:
    """Return the records with a good date and those with a bad one, each in their order.

    Args:
        records: with the columns `timestamp` and `timestampType`; one without a time is good.
        last_ms: of `latest_ms`.
    """
    times = records["timestamp"]
    is_outside = pc.or_(pc.greater(times, _moment(last_ms)), pc.less(times, _moment(FIRST_MS)))
    is_bad = pc.and_(pc.greater_equal(records["timestampType"], 0), is_outside)
    if not pc.any(is_bad).as_py():
        return Judged(records, None)
    bad = records.filter(is_bad)
    numbers = bad["timestamp"].cast(_TIME, safe=False).cast(pa.int64()).cast(pa.string())
    head, tail = REASON_PARTS
    reasons = pc.binary_join_element_wise(head, numbers, tail, "")
    return Judged(records.filter(pc.invert(is_bad)), bad.append_column(REASON, reasons))


def stations_of(
    operations: RowOperations,
) -> tuple[Callable[[pa.RecordBatch], pa.RecordBatch], ...]:
    """Return the station of a task (`archive.task`) for `since` and `until`, none if there is
    neither.
    """
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

    They are those that `operations.frames.in_time` chooses where Spark has the records.

    Args:
        since_ms: milliseconds since the epoch, None for no limit.
        until_ms: the same.
        records: with the columns of `schemas.RECORD`.
        last_ms: of `latest_ms`, for a job that sets later records aside: nobody knows
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
