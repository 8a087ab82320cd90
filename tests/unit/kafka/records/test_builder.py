"""Batches built by us, compared with a builder that shares no code with ours."""

from __future__ import annotations

import pytest

from minibroker.kafka.records.batch import crc_is_valid, read_header
from minibroker.kafka.records.builder import build_batch, write_varint
from minibroker.kafka.records.record import Record, decode_records, read_varint
from tests.support.batches import Item, batch

RECORDS = [Record(5, 1000, b"k", b"v", (("h", None),)), Record(9, 999, None, b"w")]


def test_a_batch_is_what_the_format_says() -> None:
    """Compared with a builder that shares no code with ours."""
    expected = batch(
        Item(b"v", b"k", 1000, ((b"h", None),)),
        Item(b"w", None, 999),
        producer_id=3,
        producer_epoch=2,
        sequence=1,
        base_offset=50,
        leader_epoch=4,
    )
    built = build_batch(
        RECORDS, base_offset=50, producer_id=3, producer_epoch=2, base_sequence=1, leader_epoch=4
    )
    assert built == expected


def test_records_are_numbered_or_keep_their_offsets() -> None:
    numbered = build_batch(RECORDS, base_offset=4)
    assert [record.offset for record in decode_records(numbered)] == [4, 5]
    kept = build_batch(RECORDS, base_offset=4, keep_offsets=True)
    assert decode_records(kept) == RECORDS
    assert read_header(kept).last_offset == 9


@pytest.mark.parametrize("offsets", [(3, 9), (5, 5), (9, 5), (5, 2**31 + 4)])
def test_offsets_that_cannot_be_kept(offsets: tuple[int, int]) -> None:
    records = [Record(offset, 0, None, b"") for offset in offsets]
    with pytest.raises(ValueError, match="does not follow"):
        build_batch(records, base_offset=4, keep_offsets=True)


def test_flags_and_append_time() -> None:
    header = read_header(
        build_batch(RECORDS, codec="lz4", append_time_ms=77, is_transactional=True, is_control=True)
    )
    assert header.codec == 3
    assert header.is_append_time
    assert header.is_transactional
    assert header.is_control
    assert (header.base_timestamp, header.max_timestamp) == (1000, 77)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_crc_and_size_with_every_codec(codec: str) -> None:
    built = build_batch(RECORDS, codec=codec)
    assert read_header(built).size_bytes == len(built)
    assert crc_is_valid(built, 0, len(built))


def test_records_that_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        build_batch([])
    with pytest.raises(ValueError, match="'brotli' is unknown, expected one of none, gzip"):
        build_batch(RECORDS, codec="brotli")


@pytest.mark.parametrize("value", [0, -1, 1, 63, -64, 64, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])
def test_varints_read_back(value: int) -> None:
    out = bytearray()
    write_varint(out, value)
    assert read_varint(bytes(out), 0, 10) == (value, len(out))
