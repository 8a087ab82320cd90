"""Time index: bytes, floors, what is too damaged to use."""

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


def test_a_time_lookup_gives_the_greatest_entry_not_above_the_target(tmp_path: Path) -> None:
    index = time_index(tmp_path, 100)
    assert index.lookup(10**15) == (-1, 100)
    index.append(1000, 110)
    index.append(1500, 120)
    assert index.lookup(999) == (-1, 100)
    assert index.lookup(1000) == (1000, 110)
    assert index.lookup(1499) == (1000, 110)
    assert index.lookup(10**15) == (1500, 120)


def test_a_time_that_did_not_grow_gets_no_entry(tmp_path: Path) -> None:
    index = time_index(tmp_path, 50)
    index.append(1000, 60)
    index.append(1000, 70)
    index.append(900, 80)
    index.append(1001, 90)
    index.write()
    raw = (tmp_path / "00000000000000000050.timeindex").read_bytes()
    assert raw == struct.pack(">qi", 1000, 10) + struct.pack(">qi", 1001, 40)


@pytest.mark.parametrize(
    "content",
    [bytes(13), struct.pack(">qiqi", 100, 1, 99, 2), struct.pack(">qi", 100, -1)],
    ids=["not a multiple of 12", "time goes back", "below the base offset"],
)
def test_a_time_index_that_cannot_be_right_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "00000000000000000000.timeindex").write_bytes(content)
    with pytest.raises(CorruptionError):
        time_index(tmp_path).check()
