"""Batches of an answer: cut ends, wrong bytes, aborted transactions."""

from __future__ import annotations

import pytest

from minibroker.client.fetch import read_batches
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.control import TransactionMarker, build_marker
from tests.unit.client.told_batches import batch


def marker(offset: int, producer: int, *, is_commit: bool) -> bytes:
    """A marker that ends a transaction."""
    ends = TransactionMarker(is_commit, 0)
    return bytes(
        build_marker(
            ends, producer_id=producer, producer_epoch=0, timestamp_ms=1, base_offset=offset
        )
    )


def offsets(records: bytes, *aborted: tuple[int, int]) -> list[int]:
    """The base offsets of the data batches."""
    return [data.header.base_offset for data in read_batches(records, aborted).data]


def test_a_cut_batch_at_the_end_is_left_for_the_next_answer() -> None:
    whole = batch(3, 2) + batch(5, 4)
    for cut in range(len(batch(9))):
        batches = read_batches(whole + batch(9)[:cut], ())
        assert [data.header.base_offset for data in batches.data] == [3, 5]
        assert (batches.next_offset, batches.epoch) == (9, 5)
    assert read_batches(b"", ()) == ([], None, -1)


def test_aborted_records_are_between_their_begin_and_their_marker() -> None:
    records = b"".join(
        [
            batch(0, producer=7),
            batch(1, producer=8),
            marker(2, 7, is_commit=False),
            batch(3, producer=7),
            marker(4, 7, is_commit=True),
            marker(5, 8, is_commit=True),
            batch(6, producer=7),
            marker(7, 7, is_commit=False),
        ]
    )
    assert offsets(records, (7, 0), (7, 6)) == [1, 3]
    assert offsets(records, (7, 6), (7, 0)) == [1, 3]
    assert offsets(records) == [0, 1, 3, 6]
    assert read_batches(records, ()).next_offset == 8


def test_a_begin_before_the_answer_counts() -> None:
    assert offsets(batch(6, producer=7) + batch(7), (7, 2)) == [7]


def test_a_wrong_byte_is_refused() -> None:
    wrong = bytearray(batch(3))
    wrong[-1] ^= 1
    with pytest.raises(CorruptionError, match="the batch of offset 3 has a wrong CRC"):
        read_batches(wrong, ())
