"""The part of a Fetch answer that a follower appends, and refusals."""

from __future__ import annotations

import pytest

from minibroker.broker.storage.follower_records import (
    OffsetsOutOfOrderError,
    ReplicatedBatch,
    UnexpectedOffsetError,
    batches_to_append,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.records.batch import assign
from minibroker.kafka.records.message_set import build_message_set
from minibroker.kafka.records.record import Record
from tests.support.logs import NOW_MS, batch


def stored(offset: int, leader_epoch: int = 0, count: int = 1) -> bytes:
    content = batch(*[b"v"] * count)
    assign(content, 0, offset, leader_epoch)
    return bytes(content)


def select(*batches: bytes, leader_epoch: int = 9, end: int = 0) -> list[ReplicatedBatch]:
    return batches_to_append(
        memoryview(b"".join(batches)),
        leader_epoch=leader_epoch,
        log_end_offset=end,
        segment_bytes=500,
        partition="t-0",
    )


def offsets(batches: list[ReplicatedBatch]) -> list[int]:
    return [batch.header.base_offset for batch in batches]


def test_whole_batches_are_taken_as_they_are() -> None:
    parts = stored(3, count=2), stored(5), stored(9)
    selected_parts = select(*parts, stored(10)[:-1], end=3)
    assert offsets(selected_parts) == [3, 5, 9]
    assert tuple(bytes(part.records) for part in selected_parts) == parts


def test_there_may_be_no_whole_batch() -> None:
    assert select() == []
    assert select(stored(0)[:-1]) == []


def test_a_later_epoch_ends_the_appended_part() -> None:
    selected_parts = select(stored(0, 3), stored(1, 4), stored(2, 3), leader_epoch=3)
    assert offsets(selected_parts) == [0]


@pytest.mark.parametrize(
    "damaged",
    [
        stored(0)[:-1] + b"!",
        stored(0)[:16] + b"\x05" + stored(0)[17:],
        stored(0)[:8] + bytes(4) + stored(0)[12:],
    ],
    ids=["CRC", "magic", "length"],
)
def test_a_damaged_batch_refuses_all(damaged: bytes) -> None:
    with pytest.raises(KafkaError) as caught:
        select(damaged, stored(1))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("second", [0, 1])
def test_offsets_must_ascend(second: int) -> None:
    with pytest.raises(OffsetsOutOfOrderError):
        select(stored(0, count=2), stored(second))


def test_an_append_before_the_log_s_end_says_which_offsets_it_has() -> None:
    with pytest.raises(UnexpectedOffsetError) as caught:
        select(stored(2, count=4), stored(6), end=3)
    assert (caught.value.first_offset, caught.value.last_offset) == (2, 6)


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    with pytest.raises(KafkaError) as caught:
        select(stored(0, count=100))
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats_go_one_by_one(magic: int) -> None:
    records = [Record(offset, NOW_MS, None, b"v") for offset in range(2)]
    content = bytearray(build_message_set(records, magic=magic, codec=0, base_offset=4))
    assert offsets(select(bytes(content), end=4)) == [4, 5]
    content[-1] ^= 1
    with pytest.raises(KafkaError) as caught:
        select(bytes(content), end=4)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
