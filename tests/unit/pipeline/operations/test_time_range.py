"""A range of time in a task: rows with a timestamp in it, and none without a timestamp."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from minibroker.pipeline.operations.moments import Moment
from minibroker.pipeline.operations.rows import NONE
from minibroker.pipeline.operations.time_range import stations_of

TIMES_MS = [-1, 999, 1000, 1001, 2000]
RECORDS = pa.record_batch(
    {
        "offset": pa.array(range(5), pa.int64()),
        "timestamp": pa.array([ms * 1000 for ms in TIMES_MS], pa.timestamp("us", "UTC")),
        "timestampType": pa.array([-1, 0, 0, 1, 0], pa.int32()),
    }
)


@pytest.mark.parametrize(
    ("since_ms", "until_ms", "offsets"),
    [(1000, None, [2, 3, 4]), (None, 2000, [1, 2, 3]), (1000, 1001, [2]), (5000, None, [])],
)
def test_rows_of_a_range(since_ms: int | None, until_ms: int | None, offsets: list[int]) -> None:
    """The beginning belongs to it, the end does not."""
    operations = NONE._replace(
        since=None if since_ms is None else Moment("a", since_ms),
        until=None if until_ms is None else Moment("b", until_ms),
    )
    (station,) = pickle.loads(pickle.dumps(stations_of(operations)))
    assert station(RECORDS)["offset"].to_pylist() == offsets


def test_no_range_is_no_station() -> None:
    assert stations_of(NONE) == ()
