"""Batches of committed offsets read in one pass say what their records say, or are left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.groups.classic.group import ClassicGroup
from minibroker.broker.groups.offset_runs import decode_runs
from minibroker.broker.groups.offsets import CommittedOffset
from minibroker.broker.groups.records import (
    OFFSET_RUN,
    decode_records,
    encode_offset_key,
    encode_offset_value,
)
from minibroker.broker.groups.shard import GroupShard
from minibroker.broker.partitions.journal_partition import decode_batches
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from tests.support.in_process import ManualClock

RUNTIME: Any = SimpleNamespace(journal=None)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
PLAIN = st.builds(
    lambda offset, epoch, time_ms: encode_offset_value(CommittedOffset(offset, epoch, "", time_ms)),
    INT64,
    INT32,
    INT64,
)
KEYS = st.builds(
    encode_offset_key,
    st.sampled_from(["", "g", "h" * 60, "ü"]),
    st.sampled_from(["t", "u" * 70, "w" * 249]),
    st.integers(0, 5) | INT32,
)
OTHERS = st.sampled_from(
    [
        None,
        encode_offset_value(CommittedOffset(5, -1, "metadata", 7)),
        encode_offset_value(CommittedOffset(5, -1, "", 7, expire_timestamp_ms=9)),
        encode_offset_value(CommittedOffset(5, -1, "", 7, topic_id=bytes(range(16)))),
        encode_offset_value(CommittedOffset(5, -1, "", 7), 1),
    ]
)


def plain(count: int, *, group_id: str = "g", topic: str = "t") -> list[Record]:
    return [
        Record(
            0,
            1_000,
            encode_offset_key(group_id, topic, partition),
            encode_offset_value(CommittedOffset(partition * 3, partition, "", 1_000 + partition)),
        )
        for partition in range(count)
    ]


def runs_of(batch: bytes | bytearray) -> Any:
    view = memoryview(bytes(batch))
    return decode_runs(view, 0, read_header(view, 0))


def state_after(batches: list[bytearray], *, at_once: bool) -> Any:
    """(groups in order, offsets, how many) of a shard that loaded them."""
    data = memoryview(b"".join(batches))
    decode_batch = decode_runs if at_once else None
    shard = GroupShard(0, RUNTIME, ManualClock(), make_simple_group=ClassicGroup, offset_version=3)
    for _, entries in decode_batches(data, 0, decode_records, decode_batch).batches:
        for entry in entries:
            shard.replay(entry)
    store = shard.offsets
    offsets = [
        (group_id, topic, list(partitions.items()))
        for group_id in shard.groups
        for topic, partitions in store.of_group(group_id).items()
    ]
    return list(shard.groups), offsets, store.committed_count


@given(
    st.lists(
        st.lists(st.tuples(KEYS, PLAIN | PLAIN | PLAIN | OTHERS), min_size=1, max_size=12),
        min_size=1,
        max_size=4,
    )
)
def test_reading_at_once_leaves_what_reading_records_leaves(
    content: list[list[tuple[bytes, bytes | None]]],
) -> None:
    batches = []
    base_offset = 100
    for pairs in content:
        records = [Record(0, 1_000, key, value) for key, value in pairs]
        batches.append(build_batch(records, base_offset=base_offset))
        base_offset += len(records) + 3
    assert state_after(batches, at_once=True) == state_after(batches, at_once=False)


@pytest.mark.parametrize("count", [1, 64, 65, 200])
def test_offsets_of_one_topic_are_one_run(count: int) -> None:
    """Also where an offset delta takes two bytes."""
    (run,) = runs_of(build_batch(plain(count), base_offset=10))
    assert (run.kind, run.key) == (OFFSET_RUN, ("g", "t"))
    assert run.value == {
        partition: CommittedOffset(
            partition * 3, partition, "", 1_000 + partition, record_offset=10 + partition
        )
        for partition in range(count)
    }


def test_every_topic_is_a_run() -> None:
    batch = build_batch([*plain(3), *plain(2, topic="u" * 100), *plain(3), *plain(1, group_id="h")])
    assert [(run.key, len(run.value)) for run in runs_of(batch)] == [
        (("g", "t"), 3),
        (("g", "u" * 100), 2),
        (("g", "t"), 3),
        (("h", "t"), 1),
    ]


def test_records_after_compaction_keep_their_offsets() -> None:
    records = plain(6)
    records_behind = [records[index]._replace(offset=50 + index) for index in (1, 4)]
    (run,) = runs_of(build_batch(records_behind, base_offset=50, keep_offsets=True))
    assert [offset.record_offset for offset in run.value.values()] == [51, 54]


@pytest.mark.parametrize(
    "batch",
    [
        build_batch(plain(2), codec="gzip"),
        build_batch(plain(2), is_transactional=True, producer_id=1, producer_epoch=0),
        build_batch([*plain(2), Record(0, 1_001, *plain(1)[0][2:4])]),
        build_batch([plain(1)[0]._replace(headers=(("h", b"x"),))]),
        build_batch([Record(0, 1, b"\0\2\0\1g", b"x")]),
        build_batch([Record(0, 1, b"\0\1", plain(1)[0].value)]),
        build_batch([Record(0, 1, None, plain(1)[0].value)]),
        build_batch([Record(0, 1, plain(1)[0].key, None)]),
    ],
    ids=["codec", "transaction", "times", "headers", "group", "cut key", "no key", "tombstone"],
)
def test_anything_else_is_left_alone(batch: bytearray) -> None:
    assert runs_of(batch) is None


def test_a_damaged_batch_is_for_the_others_to_refuse() -> None:
    """Every byte of the records changed: nothing is raised, and nothing is made of another
    length."""
    whole = bytes(build_batch(plain(3)))
    expected = runs_of(whole)
    for position in range(61, len(whole)):
        for change in (0x01, 0x80, 0xFF):
            broken = bytearray(whole)
            broken[position] ^= change
            runs = runs_of(broken)
            assert runs is None or sum(len(run.value) for run in runs) <= 3
    assert runs_of(whole) == expected
    header = read_header(memoryview(whole), 0)
    for size in range(61, len(whole)):
        header.size_bytes = size
        assert decode_runs(memoryview(whole), 0, header) is None


def test_a_key_with_wrong_lengths_ends_the_load() -> None:
    key = bytearray(plain(1)[0].key or b"")
    key[3] += 1
    batch = build_batch([Record(0, 1, bytes(key), plain(1)[0].value)])
    assert runs_of(batch) is None
    with pytest.raises(CorruptionError, match="lengths do not fit"):
        decode_batches(memoryview(batch), 0, decode_records, decode_runs)
