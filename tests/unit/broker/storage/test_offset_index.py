"""Offset index: bytes, floors, what is too damaged to use."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.indexes import TAIL_ENTRIES, OffsetIndex, TimeIndex
from minibroker.kafka.errors import CorruptionError

if TYPE_CHECKING:
    from pathlib import Path

MANY = 3 * TAIL_ENTRIES + 7
"""Enough that the search needs memory, a block of the file, and reads of single entries."""


def offset_index(tmp_path: Path, base: int = 0) -> OffsetIndex:
    return OffsetIndex(Disk(), f"{tmp_path}/{base:020d}.index", base)


def time_index(tmp_path: Path, base: int = 0) -> TimeIndex:
    return TimeIndex(Disk(), f"{tmp_path}/{base:020d}.timeindex", base)


def test_the_read_at_203500_starts_at_position_8738(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 203000)
    index.append(203299, 8738)
    index.append(204657, 34953)
    assert index.lookup(203500) == (203299, 8738)
    index.write()
    raw = (tmp_path / "00000000000000203000.index").read_bytes()
    assert raw == struct.pack(">iiii", 299, 8738, 1657, 34953)


def test_a_lookup_gives_the_greatest_entry_not_above_the_target(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 100)
    assert index.lookup(5000) == (100, 0)
    for offset, position in ((110, 50), (120, 90), (130, 130)):
        index.append(offset, position)
    expected = {100: (100, 0), 109: (100, 0), 110: (110, 50), 119: (110, 50), 999: (130, 130)}
    assert {target: index.lookup(target) for target in expected} == expected


def test_an_offset_that_did_not_grow_gets_no_entry(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    index.append(5, 10)
    index.append(5, 20)
    assert index.entry_count == 1


@pytest.mark.parametrize(
    "content",
    [b"\0\0\0\1\0\0", struct.pack(">ii", -5, 10), struct.pack(">ii", 5, 5000)],
    ids=["not a multiple of 8", "below the base offset", "beyond the log"],
)
def test_an_offset_index_that_cannot_be_right_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "00000000000000000000.index").write_bytes(content)
    with pytest.raises(CorruptionError):
        offset_index(tmp_path).check(1000)
