"""The last offset of every key, in bounded memory."""

from __future__ import annotations

import sys

import pytest

from minibroker.broker.storage.compaction.survivors import ENTRY_BYTES, OffsetMap


def test_the_last_offset_of_a_key_counts() -> None:
    offsets = OffsetMap(1 << 20, 0.9)
    offsets.put(b"a", 1)
    offsets.put(b"b", 2)
    offsets.put(b"a", 3)
    assert (offsets.get(b"a"), offsets.get(b"b"), offsets.get(b"c")) == (3, 2, -1)
    assert len(offsets) == 2


def test_long_keys_are_told_apart_from_each_other_and_from_their_digests() -> None:
    offsets = OffsetMap(1 << 20, 0.9)
    long_keys = [b"x" * length for length in range(20, 40)]
    for offset, key in enumerate(long_keys):
        offsets.put(key, offset)
    assert [offsets.get(key) for key in long_keys] == list(range(20))
    for digest in list(offsets._offsets):
        if digest not in long_keys:
            assert offsets.get(digest) == -1


def test_it_is_full_at_its_share_of_the_memory() -> None:
    offsets = OffsetMap(10 * ENTRY_BYTES, 0.5)
    for number in range(4):
        offsets.put(b"%d" % number, number)
        assert not offsets.is_full
    offsets.put(b"4", 4)
    assert offsets.is_full
    assert offsets.utilization == 1.0
    offsets.clear()
    assert not offsets.is_full
    assert (len(offsets), offsets.latest_offset) == (0, -1)


def test_a_buffer_that_holds_no_key_is_refused() -> None:
    with pytest.raises(ValueError, match=r"log\.cleaner\.dedupe\.buffer\.size=100"):
        OffsetMap(100, 0.9)


def test_a_full_one_stays_within_its_memory() -> None:
    memory_bytes = 4 << 20
    offsets = OffsetMap(memory_bytes, 1.0)
    number = 0
    while not offsets.is_full:
        offsets.put(b"%030d" % number, 1 << 40 | number)
        number += 1
    table = offsets._offsets
    used = sys.getsizeof(table) + sum(
        sys.getsizeof(key) + sys.getsizeof(offset) for key, offset in table.items()
    )
    assert used <= memory_bytes
