"""Parsing of the load tools' output."""

import pytest

from benchmarks.rows.latency import percentile
from benchmarks.rows.load import parse_assigned, parse_consumer, parse_producer
from benchmarks.rows.session import RowError


def test_producer_total_is_the_line_with_percentiles() -> None:
    output = (
        "901 records sent, 180.2 records/sec (17.19 MB/sec), 9.9 ms avg latency, 44.0 ms max\n"
        "5000 records sent, 1234.5 records/sec (11.77 MB/sec), 9.0 ms avg latency, "
        "70.00 ms max latency, 3 ms 50th, 9 ms 95th, 10 ms 99th, 12 ms 99.9th.\n"
    )
    assert parse_producer(output) == 1234.5


def test_consumer_rate_is_the_column_of_that_name() -> None:
    output = (
        "some warning, with a comma\n"
        "start.time, end.time, MB.sec, fetch.time.ms, fetch.MB.sec\n"
        "2026-11-21 01:00:00:000, 2026-11-21 01:00:01:000, 1.5, 900, 2.25\n"
    )
    assert parse_consumer(output) == 2.25


def test_assigned_rate_is_in_mebibytes() -> None:
    assert parse_assigned("read 2097152 bytes in 500000000 ns\n") == 4.0


@pytest.mark.parametrize("parse", [parse_producer, parse_consumer, parse_assigned])
def test_output_without_a_result_is_an_error_with_its_end(parse: object) -> None:
    assert callable(parse)
    with pytest.raises(RowError, match="no broker there"):
        parse("Exception: no broker there")


def test_percentile() -> None:
    times = [float(value) for value in range(100, 0, -1)]
    assert percentile(times, 0.50) == 51.0
    assert percentile(times, 0.99) == 100.0
    assert percentile([7.0], 0.99) == 7.0
