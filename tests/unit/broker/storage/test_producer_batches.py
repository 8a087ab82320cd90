"""The batches of a producer before those in memory: some count, and some have to be read first."""

from __future__ import annotations

from minibroker.broker.storage.producer_state import EarlierBatches, EpochBatches, RecentBatch


def batches(first: int, last: int) -> tuple[RecentBatch, ...]:
    """Return batches of one record; each has its offset as its sequence."""
    return tuple(RecentBatch(number, number, 0, 0) for number in range(first, last + 1))


def test_batches_in_memory_come_last_and_five_count() -> None:
    earlier = EarlierBatches(20)
    earlier.note_read(10, 10, {1: EpochBatches(0, batches(15, 19))})
    assert earlier.of(1, 0, batches(19, 20)) == batches(16, 20)
    assert earlier.of(1, 0, batches(16, 20)) == batches(16, 20)


def test_batches_of_another_epoch_or_producer_do_not_count() -> None:
    earlier = EarlierBatches(20)
    earlier.note_read(10, 10, {1: EpochBatches(0, batches(15, 19))})
    assert earlier.of(1, 1, batches(20, 20)) == batches(20, 20)
    assert earlier.of(2, 0, batches(20, 20)) == batches(20, 20)


def test_earlier_batches_are_put_in_front() -> None:
    late = EpochBatches(1, batches(7, 8))
    assert late.behind(EpochBatches(1, batches(1, 5))) == EpochBatches(1, batches(3, 5) + late[1])
    assert late.behind(EpochBatches(0, batches(1, 5))) == late


def test_a_producer_is_read_once() -> None:
    earlier = EarlierBatches(20)
    assert earlier.may_hold_more(1, 0, batches(19, 19))
    earlier.note_read(15, 5, {1: EpochBatches(0, batches(18, 19))})
    assert earlier.may_hold_more(1, 0, batches(19, 19))
    earlier.note_read(10, 5, {1: EpochBatches(0, batches(15, 19))})
    assert not earlier.may_hold_more(1, 0, batches(19, 19))


def test_nothing_is_read_where_nothing_can_be() -> None:
    earlier = EarlierBatches(20)
    assert not earlier.may_hold_more(1, 0, batches(16, 20))  # five are there
    assert not earlier.may_hold_more(1, 0, batches(21, 22))  # it came after the snapshot
    assert not earlier.may_hold_more(1, 0, batches(0, 1))  # an epoch begins with 0
    earlier.note_read(0, 20, {})
    assert not earlier.may_hold_more(1, 0, batches(19, 19))  # the log has no more
