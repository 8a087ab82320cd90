"""The batches of the rows of scale are what a producer would send."""

from __future__ import annotations

from benchmarks.scale_wire import Batches
from minibroker.kafka.records.batch import crc_is_valid, read_header
from minibroker.kafka.records.record import decode_records


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
