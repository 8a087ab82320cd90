"""A filled template is the batch that the general encoder builds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.groups.offset_batches import OFFSETS_MAX, template_of
from minibroker.broker.groups.offsets import CommittedOffset
from minibroker.broker.groups.records import encode_offset_key, encode_offset_value
from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=80)


def general(
    group_id: str, topic: str, topic_id: bytes, offsets: list[tuple[int, int, int]], now_ms: int
) -> bytes:
    """Return the bytes that `GroupShard.commit_offsets` writes for the same offsets."""
    records = [
        Record(
            0,
            now_ms,
            encode_offset_key(group_id, topic, partition),
            encode_offset_value(CommittedOffset(offset, epoch, "", now_ms, topic_id=topic_id)),
        )
        for partition, offset, epoch in offsets
    ]
    return bytes(build_batch(records, base_sequence=0))


@given(
    TEXT,
    TEXT,
    st.sampled_from([ZERO_TOPIC_ID, bytes(range(16))]),
    st.lists(st.tuples(INT32, INT64, INT32), min_size=1, max_size=OFFSETS_MAX),
    st.integers(0, 2**62),
)
def test_a_filled_template_is_what_the_general_encoder_builds(
    group_id: str, topic: str, topic_id: bytes, offsets: list[tuple[int, int, int]], now_ms: int
) -> None:
    filled = template_of(group_id, topic, topic_id, len(offsets)).fill(offsets, now_ms)
    assert bytes(filled) == general(group_id, topic, topic_id, offsets, now_ms)


@pytest.mark.parametrize("count", [1, OFFSETS_MAX])
def test_a_template_is_not_changed_by_being_filled(count: int) -> None:
    first = [(index, index * 10, 3) for index in range(count)]
    second = [(index, index * 7, -1) for index in range(count)]
    template = template_of("g" * 200, "t" * 249, ZERO_TOPIC_ID, count)
    once = template.fill(first, 1_000)
    template.fill(second, 2_000)
    assert template.fill(first, 1_000) == once
    assert bytes(once) == general("g" * 200, "t" * 249, ZERO_TOPIC_ID, first, 1_000)


def test_a_template_of_a_long_group_id_is_not_kept() -> None:
    long = "g" * 32_000
    assert template_of("g", "t", ZERO_TOPIC_ID, 1) is template_of("g", "t", ZERO_TOPIC_ID, 1)
    assert template_of(long, "t", ZERO_TOPIC_ID, 1) is not template_of(long, "t", ZERO_TOPIC_ID, 1)
