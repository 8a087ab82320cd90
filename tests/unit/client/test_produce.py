"""A batch that its topic does not take: its parts have the same records and sequence numbers."""

from __future__ import annotations

import pytest

from minibroker.client.produce import OutgoingBatch, parts_of
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.batch import SEQUENCE_MAX, crc_is_valid, read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record, decode_records

PLACE = TopicPartition("t", 3)


def batch_of(count: int, *, codec: str = "none", sequence: int = 0) -> OutgoingBatch:
    records = [
        Record(index, 1000 - index, b"k", b"%0100d" % index, (("h", None),))
        for index in range(count)
    ]
    batch = build_batch(
        records,
        codec=codec,
        producer_id=7,
        producer_epoch=2,
        base_sequence=sequence,
        is_transactional=True,
    )
    return OutgoingBatch(PLACE, batch, count)


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
def test_the_parts_have_the_records_and_their_numbers(codec: str) -> None:
    whole = batch_of(10, codec=codec, sequence=SEQUENCE_MAX - 1)
    parts = parts_of(whole, len(whole.records) // 3)

    assert len(parts) > 2
    records_of_parts = [record for part in parts for record in decode_records(part.records)]
    assert [record._replace(offset=0) for record in records_of_parts] == [
        record._replace(offset=0) for record in decode_records(whole.records)
    ]
    next_sequence = SEQUENCE_MAX - 1
    for place, records, rows in parts:
        header = read_header(records)
        assert place == PLACE
        assert crc_is_valid(records, 0, len(records))
        assert header.codec == read_header(whole.records).codec
        assert header.is_transactional
        assert (header.producer_id, header.producer_epoch) == (7, 2)
        assert (header.base_sequence, header.count) == (next_sequence, rows)
        next_sequence = (next_sequence + rows) % (SEQUENCE_MAX + 1)


@pytest.mark.parametrize("size_bytes_max", [1, 10**9])
def test_a_batch_has_two_parts_at_least_and_one_for_each_record_at_most(
    size_bytes_max: int,
) -> None:
    parts = parts_of(batch_of(4), size_bytes_max)
    assert [part.rows for part in parts] == ([1] * 4 if size_bytes_max == 1 else [2, 2])
