"""The one bound for dates: a day ahead of the batch, and the year 1."""

from __future__ import annotations

import pyarrow as pa

from minibroker.pipeline.operations.record_times import FIRST_MS, judged, latest_ms

NOW_MS = 1_795_500_000_000
DAY_MS = 86_400_000
IN_MICROSECONDS = NOW_MS * 1000


def records(*times_ms: int, kind: int = 0) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "offset": pa.array(range(len(times_ms)), pa.int64()),
            "timestamp": pa.array([ms * 1000 for ms in times_ms], pa.timestamp("us", "UTC")),
            "timestampType": pa.array([kind] * len(times_ms), pa.int32()),
        }
    )


def test_a_record_of_the_year_58879_is_bad_and_those_around_it_are_good() -> None:
    verdicts = judged(records(NOW_MS, IN_MICROSECONDS, NOW_MS + 1), latest_ms(NOW_MS))
    assert verdicts.good["offset"].to_pylist() == [0, 2]
    assert verdicts.bad is not None
    assert verdicts.bad["offset"].to_pylist() == [1]
    (reason,) = verdicts.bad["reason"].to_pylist()
    assert reason.startswith("it is dated 1795500000000000 ms since 1970, which is more than a day")


def test_the_bound_is_a_day_and_the_first_year() -> None:
    on_the_bound = (NOW_MS + DAY_MS, FIRST_MS, 0)
    assert judged(records(*on_the_bound), latest_ms(NOW_MS)).bad is None
    verdicts = judged(records(NOW_MS + DAY_MS + 1, FIRST_MS - 1), latest_ms(NOW_MS))
    assert verdicts.good.num_rows == 0
    assert verdicts.bad is not None
    assert verdicts.bad["offset"].to_pylist() == [0, 1]


def test_a_record_without_a_time_claims_none() -> None:
    assert judged(records(IN_MICROSECONDS, kind=-1), latest_ms(NOW_MS)).bad is None


def test_a_batch_without_bad_records_is_not_copied() -> None:
    whole = records(NOW_MS)
    assert judged(whole, latest_ms(NOW_MS)).good is whole
