"""One segment, read: finding batches, walking headers, slices, age."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from minibroker.errors import CorruptionError
from minibroker.storage.disk import Disk
from minibroker.storage.readable_segment import ReadableSegment
from tests.support.logs import NOW_MS, append, batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]

SIZE = len(batch(b"x" * 100))


@pytest.fixture
def segment(new_log: NewLog) -> ReadableSegment:
    """Thirty batches of one record, an index entry for every third."""
    log = new_log(index_interval_bytes=2 * SIZE)
    for number in range(30):
        append(log, b"x" * 100, timestamp_ms=NOW_MS + number)
    log.flush()
    return ReadableSegment(Disk(), log.directory, 0, created_ms=NOW_MS)


def test_a_batch_is_found_from_the_index_or_from_a_position(segment: ReadableSegment) -> None:
    for offset in range(30):
        assert segment.find_batch(offset) == (offset * SIZE, SIZE, offset)
        assert segment.find_batch(offset, 0) == (offset * SIZE, SIZE, offset)
    assert segment.find_batch(30) is None


def test_headers_end_where_a_batch_would_be_cut(segment: ReadableSegment) -> None:
    found = [
        (position, header.base_offset) for position, header in segment.headers(SIZE, 3 * SIZE + 1)
    ]
    assert found == [(SIZE, 1), (2 * SIZE, 2)]
    assert len(list(segment.headers())) == 30
    assert segment.read_next_offset() == 30


def test_a_length_no_batch_has_is_corrupt(segment: ReadableSegment) -> None:
    with open(segment.log_path, "r+b") as file:  # noqa: PTH123
        file.seek(SIZE + 8)
        file.write(bytes(4))
    with pytest.raises(CorruptionError, match="length 0"):
        segment.find_batch(2, 0)


@pytest.mark.parametrize("kept_bytes", range(1, 27))
def test_a_batch_that_ends_before_its_offsets_is_corrupt(
    segment: ReadableSegment, kept_bytes: int
) -> None:
    """A power cut may leave any part of it; recovery makes sense of CorruptionError only."""
    os.truncate(segment.log_path, 29 * SIZE + kept_bytes)
    with pytest.raises(CorruptionError, match=f"ends inside the batch at {29 * SIZE}"):
        segment.find_batch(29, 28 * SIZE)


def test_age_counts_from_the_first_batch(segment: ReadableSegment) -> None:
    assert segment.first_timestamp == NOW_MS
    assert segment.age_ms(0, NOW_MS + 500) == 500
    assert segment.max_timestamp >= NOW_MS + 27  # the last index entry; `close` adds the very last


def test_small_slices_are_copies_and_large_ones_maps(segment: ReadableSegment) -> None:
    assert isinstance(segment.read(0, 100).obj, bytes)
    raw = bytes(segment.read(0, segment.size_bytes))
    assert len(raw) == 30 * SIZE
