"""Staged entries behind a log: order, room, and a failed write."""

from __future__ import annotations

from minibroker.broker.storage.tail import ALWAYS_ASK, STAGED_BYTES_MAX, AppendInfo, Tail


def stage(tail: Tail, size_bytes: int, count: int = 1) -> AppendInfo:
    """Stage `size_bytes` for `count` records."""
    first = tail.next_offset
    entry = AppendInfo(first, first + count - 1, -1, 0)
    tail.stage(memoryview(bytes(size_bytes)), entry, entry.last_offset, 1000)
    return entry


def test_offsets_follow_each_other_and_sizes_add_up() -> None:
    tail = Tail(7)
    stage(tail, 100, count=3)
    stage(tail, 50)
    assert tail.next_offset == 11
    assert tail.size_bytes == 150
    assert tail.batches == [(9, 1000, 100), (10, 1000, 50)]


def test_a_batch_may_be_counted_in_two_parts() -> None:
    tail = Tail(0)
    tail.stage(memoryview(bytes(100)), AppendInfo(0, 4, -1, 0), 4, -1, (2, 1000, 60))
    assert tail.batches == [(2, 1000, 60), (4, -1, 40)]
    assert tail.size_bytes == 100


def test_so_much_is_written_at_once() -> None:
    tail = Tail(0)
    entry = AppendInfo(0, 0, -1, 0)
    assert not tail.stage(memoryview(bytes(STAGED_BYTES_MAX)), entry, 0, 0)
    assert tail.stage(memoryview(b"x"), entry, 0, 0)


def test_nothing_fits_before_the_segment_was_looked_at() -> None:
    tail = Tail(0)
    assert not tail.fits(0, 0, 1)


def test_staged_batches_take_the_room_of_the_segment() -> None:
    tail = Tail(0)
    tail.set_room(200, 2, roll_after_ms=1000, max_offset=10)
    assert tail.fits(10, 1000, 200)
    assert not tail.fits(11, 1000, 200)
    assert not tail.fits(10, 1001, 200)
    assert not tail.fits(10, 1000, 201)
    stage(tail, 50)
    assert tail.fits(10, 1000, 150)
    assert not tail.fits(10, 1000, 151)
    stage(tail, 50)
    assert not tail.fits(10, 1000, 1)  # both entries of the index may be needed
    tail.note_written(1)
    assert tail.fits(10, 1000, 100)
    stage(tail, 50)
    assert not tail.fits(10, 1000, 1)


def test_a_segment_whose_age_is_not_known_is_looked_at_each_time() -> None:
    tail = Tail(0)
    tail.set_room(200, 2, roll_after_ms=ALWAYS_ASK, max_offset=10)
    assert not tail.fits(0, -1, 1)


def test_dropped_batches_are_not_written_and_their_offsets_are_free() -> None:
    tail = Tail(5)
    entries = [stage(tail, 10), stage(tail, 10)]
    tail.drop(5)
    assert [entry.is_written for entry in entries] == [False, False]
    assert tail.next_offset == 5
    assert tail.buffers == []
    assert tail.size_bytes == 0


def test_written_batches_stay_written() -> None:
    tail = Tail(5)
    entry = stage(tail, 10)
    tail.note_written(0)
    tail.drop(6)
    assert entry.is_written
