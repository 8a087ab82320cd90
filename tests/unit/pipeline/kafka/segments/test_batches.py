"""Rows of batches: what the headers say, sizes unfolded on demand, and a row for a torn tail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.storage import names
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.control import TransactionMarker, build_marker
from minibroker.kafka.records.message_set import build_message_set
from minibroker.kafka.records.record import Record
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.segments.batches import BatchSource
from tests.support.batches import batch

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = [Record(n, 1_000 + n, b"k", b"v" * 100) for n in range(3)]


def rows(directory: Path, *parts: bytes | bytearray, **options: str) -> list[dict[str, Any]]:
    log = directory / "a-3" / names.segment_file(0, names.LOG)
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"".join(parts))
    source = BatchSource({"path": str(directory), **options})
    reader = source.reader(source.schema())
    return [
        row
        for partition in reader.partitions()
        for some in reader.read(partition)
        for row in some.to_pylist()
    ]


def test_a_row_has_what_the_header_says(tmp_path: Path) -> None:
    batch = build_batch(
        RECORDS, producer_id=9, producer_epoch=2, base_sequence=2**31 - 2, leader_epoch=4
    )
    [row] = rows(tmp_path, batch)
    assert (row["topic"], row["partition"], row["position"]) == ("a", 3, 0)
    assert row["segment"] == "00000000000000000000.log"
    assert (row["sizeBytes"], row["recordBytes"]) == (len(batch), len(batch) - 61)
    assert (row["baseOffset"], row["lastOffset"], row["records"]) == (0, 2, 3)
    assert (row["magic"], row["codec"], row["timestampType"]) == (2, "none", 0)
    assert row["maxTimestamp"].timestamp() == 1.002
    assert (row["producerId"], row["producerEpoch"], row["leaderEpoch"]) == (9, 2, 4)
    assert (row["baseSequence"], row["lastSequence"]) == (2**31 - 2, 0)
    assert row["defect"] is None


def test_compressed_batches_are_unfolded_on_demand(tmp_path: Path) -> None:
    plain_bytes = len(build_batch(RECORDS)) - 61
    batch = build_batch(RECORDS, codec="zstd")
    [row] = rows(tmp_path, batch)
    assert (row["codec"], row["recordBytes"]) == ("zstd", None)
    [row] = rows(tmp_path, batch, unfold="true")
    assert (row["sizeBytes"], row["recordBytes"]) == (len(batch), plain_bytes)


@pytest.mark.parametrize("codec", [0, 1])
def test_messages_of_old_formats(tmp_path: Path, codec: int) -> None:
    lines = rows(tmp_path, build_message_set(RECORDS, magic=1, codec=codec), unfold="true")
    assert sum(row["records"] for row in lines) == 3
    assert sum(row["recordBytes"] for row in lines) == 303
    assert (lines[0]["baseOffset"], lines[-1]["lastOffset"]) == (0, 2)
    assert {row["producerId"] for row in lines} == {None}


def test_aborted_data_and_markers_are_told_apart(tmp_path: Path) -> None:
    producer: dict[str, int] = {"producer_id": 5, "producer_epoch": 0}
    data = build_batch(RECORDS, base_sequence=0, is_transactional=True, **producer)
    end = build_marker(TransactionMarker(False, 0), timestamp_ms=1, base_offset=3, **producer)
    again = build_batch(RECORDS, base_offset=4, base_sequence=3, is_transactional=True, **producer)
    lines = rows(tmp_path, data, end, again)
    assert [(row["isAborted"], row["isControl"]) for row in lines] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    assert all(row["isTransactional"] for row in lines)


def test_a_torn_tail_has_a_row(tmp_path: Path) -> None:
    whole = batch(b"v")
    lines = rows(tmp_path, whole, whole[:20])
    assert [row["defect"] is None for row in lines] == [True, False]
    assert (lines[1]["position"], lines[1]["sizeBytes"]) == (len(whole), 20)
    assert lines[1]["records"] is None


def test_an_unreadable_part_is_named(tmp_path: Path) -> None:
    wrong = batch(payload=b"no gzip", attributes=1, count=1, last_offset_delta=0)
    with pytest.raises(PipelineError, match=r"\.log: gzip"):
        rows(tmp_path, wrong, unfold="true")
    with pytest.raises(PipelineError, match="unfold is 'maybe'"):
        rows(tmp_path, wrong, unfold="maybe")
