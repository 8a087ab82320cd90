"""Operations from words, in the identity of a job, in a preview, and against a first run."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from minibroker.cli.declaration import InPython, built
from minibroker.cli.moments import Moment, moment_of
from minibroker.pipeline.errors import JobUsageError, PipelineError
from minibroker.pipeline.operations.record_times import stations_of
from minibroker.pipeline.operations.rows import (
    NONE,
    RowOperations,
    check_same,
    describe,
    fingerprint,
    identity_of,
    missed,
    share_of,
    source_options,
    with_first_moments,
)
from minibroker.pipeline.options.row_options import RowOptions

NOW_MS = 1_795_500_000_000
DAY_MS = 86_400_000
ALL = {
    "since": "-2h",
    "until": "now",
    "where": "partition = 0",
    "sample": "1%",
    "sample_by": "key",
    "mask": ["email=hash, card=last4"],
    "select": ["email,id"],
    "on_unmaskable": "skip",
}


def operations(now_ms: int = NOW_MS, **options: Any) -> RowOperations:
    """Return operations as a call in Python gives them, at a moment of the test."""
    moments = {name: options.pop(name) for name in ("since", "until") if name in options}
    row_operations = built(RowOptions, InPython(options)).operations()
    assert isinstance(row_operations, RowOperations)
    return row_operations._replace(
        **{name: moment_of(text, now_ms) for name, text in moments.items()}
    )


@pytest.mark.parametrize(
    ("text", "share"),
    [("1%", 0.01), ("0.5 %", 0.005), ("100%", 1.0), ("0.25", 0.25), (".25", 0.25), ("1", 1.0)],
)
def test_a_part_of_the_records(text: str, share: float) -> None:
    assert share_of(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["0%", "101%", "0", "2", "-1%", "many", "1%%", ""])
def test_no_part_of_the_records(text: str) -> None:
    with pytest.raises(JobUsageError, match=r"is no part: expected for instance 1%, 0\.5% or"):
        share_of(text)


def test_operations_of_old_jobs_are_none() -> None:
    assert identity_of(NONE) == {}
    assert describe(NONE) == []
    assert not NONE.is_used
    check_same("/dir", {"job": "archive", "format": "parquet"}, {})


def test_everything_is_in_the_identity() -> None:
    assert identity_of(operations(**ALL), b"secret") == {
        "since": f"-2h ({NOW_MS - 7_200_000} ms)",
        "until": f"now ({NOW_MS} ms)",
        "where": "partition = 0",
        "sample": "0.01 by key",
        "mask": "email=hash, card=last4",
        "select": "email, id",
        "secret": fingerprint(b"secret"),
    }


def test_a_second_run_has_the_moments_of_the_first() -> None:
    first = operations(**ALL)
    job = {"job": "archive", **identity_of(first)}
    assert with_first_moments(operations(NOW_MS + DAY_MS, **ALL), job) == first
    check_same(
        "/dir", job, identity_of(with_first_moments(operations(NOW_MS + DAY_MS, **ALL), job))
    )
    other = operations(NOW_MS + DAY_MS, **{**ALL, "since": "-3h"})
    with pytest.raises(PipelineError, match=r"/dir belongs to a job with since '-2h .*since '-3h"):
        check_same("/dir", job, identity_of(with_first_moments(other, job)))


@pytest.mark.parametrize("name", ["where", "sample", "mask", "select"])
def test_an_operation_that_is_left_out_or_added_is_refused(name: str) -> None:
    job = {"job": "replay", **identity_of(operations(**ALL))}
    fewer = {key: value for key, value in ALL.items() if not key.startswith(name)}
    with pytest.raises(PipelineError, match=f"job with {name} .*this one has no {name}: rows"):
        check_same("/dir", job, identity_of(operations(**fewer)))
    job = {"job": "replay", **identity_of(operations(**fewer))}
    with pytest.raises(PipelineError, match=f"job with no {name}, and this one has {name} "):
        check_same("/dir", job, identity_of(operations(**ALL)))


def test_a_run_may_leave_out_the_record_that_ended_the_one_before() -> None:
    """As the sentence about that record says."""
    first = operations(**{**ALL, "on_unmaskable": "fail"})
    job = {"job": "archive", **identity_of(first), "unmaskable": "fail"}
    check_same("/dir", job, identity_of(with_first_moments(operations(**ALL), job)))


def test_another_secret_is_refused() -> None:
    first, second = (identity_of(operations(**ALL), secret) for secret in (b"one", b"two"))
    with pytest.raises(PipelineError, match="masked with another secret"):
        check_same("/dir", {"job": "replay", **first}, second)


def test_a_moment_bounds_the_begin_of_a_read_and_never_its_end() -> None:
    """Behind a record of `until` or later there can be any number of earlier ones."""
    assert source_options(operations(**ALL)) == {
        "startingTimestamp": str(NOW_MS - 7_200_000),
        "startingOffsetsByTimestampStrategy": "latest",
    }
    assert source_options(operations(until=ALL["until"])) == {}
    assert source_options(NONE) == {}


def test_a_job_that_an_earlier_version_began_goes_on() -> None:
    """It wrote how far behind `until` it read, which changes no row any more."""
    first = operations(**ALL)
    job = {"job": "archive", **identity_of(first), "late": "600000 ms"}
    check_same("/dir", job, identity_of(with_first_moments(operations(**ALL), job)))


def test_the_order_is_told() -> None:
    lines = describe(operations(**ALL))
    assert [name for name, _ in lines] == [
        "since",
        "until",
        "where",
        "sample",
        "mask",
        "select",
        "unmaskable",
    ]
    texts = dict(lines)
    assert texts["since"] == "2026-11-24 04:00:00 UTC, by the records' timestamps"
    assert texts["sample"] == "1 % of the keys, each with all its records"
    assert texts["mask"] == "email=hash, card=last4; key and headers stay as they are"


def test_rules_that_found_nothing_are_named() -> None:
    assert missed(operations(**ALL), 0b1101) == ("card=last4",)
    assert missed(operations(**ALL), 0b1111) == ()


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
