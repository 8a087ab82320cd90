"""The rows of scale: every metric belongs to a row, and the table shows values, marks and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import scale
from benchmarks.metrics import KAFKA_39, SUBJECT
from benchmarks.peers import Minibroker
from benchmarks.results import Results
from benchmarks.rows import scale_killed
from benchmarks.rows.scale_session import QUICK, ScaleSession
from benchmarks.rows.session import RowError
from benchmarks.scale_wire import Batches
from minibroker.kafka.records.batch import crc_is_valid, read_header
from minibroker.kafka.records.record import decode_records

if TYPE_CHECKING:
    from pathlib import Path


def test_every_row_has_its_metrics_and_the_other_way_round() -> None:
    assert {metric.row for metric in scale.METRICS} == {row.name for row in scale.ROWS}


def test_a_mark_depends_on_kafka() -> None:
    results = Results([SUBJECT, KAFKA_39])
    results.add(SUBJECT, "scale_start", 1.0)
    results.add(KAFKA_39, "scale_start", 6.0)
    results.note(KAFKA_39, "partitions", "failed, because")
    table = scale.render(results, ["start", "partitions"])
    [line] = [line for line in table.splitlines() if line.startswith("start: clean start")]
    assert line.split()[-4:] == ["1", "6", "2", "must"]
    assert "kafka-3.9.1, partitions: failed, because" in table
    assert "lookup" not in table


# The batches of the rows of scale are what a producer would send.


def test_a_batch_has_the_time_it_is_asked_for() -> None:
    batches = Batches(3, 10)
    first, second = batches.at(1_000), batches.at(5_000)
    for content, start_ms in ((first, 1_000), (second, 5_000)):
        header = read_header(content, 0)
        assert header.size_bytes == len(content) == batches.size_bytes
        assert crc_is_valid(content, 0, len(content))
        assert (header.last_offset_delta, header.max_timestamp) == (2, start_ms + 2)
        records = decode_records(memoryview(content))
        assert [record.timestamp for record in records] == [start_ms + delta for delta in range(3)]
        assert [record.value for record in records] == [b"0|vvvvvvvv", b"1|vvvvvvvv", b"2|vvvvvvvv"]
        assert {record.key for record in records} == {None}


def test_keys_come_round() -> None:
    records = decode_records(memoryview(Batches(5, 4, key_count=2).at(0)))
    assert [record.key for record in records] == [b"%012d" % (index % 2) for index in range(5)]


# The row runs on a real broker: every acknowledged record is there after kill -9.


RECORDS = 2_000


def test_every_record_is_there_after_a_kill(tmp_path: Path) -> None:
    results = Results([SUBJECT])
    plan = QUICK._replace(killed_records=RECORDS)
    session = ScaleSession(Minibroker(), tmp_path / "broker", plan, results)
    try:
        scale_killed.measure(session)
        connection = session.connect()
        with pytest.raises(RowError, match=f"the log ends at {RECORDS}"):
            scale_killed._look_at_end(connection, RECORDS + 10)
        connection.close()
    finally:
        session.close()
    for metric in scale.METRICS:
        if metric.row == "killed":
            assert results.values(metric.name)[SUBJECT] > 0
