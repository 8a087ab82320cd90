"""Offset index and time index: bytes, floors, truncation, what is too damaged to use."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from minibroker.errors import CorruptionError
from minibroker.storage.disk import Disk
from minibroker.storage.index_file import TAIL_ENTRIES
from minibroker.storage.offset_index import OffsetIndex
from minibroker.storage.time_index import TimeIndex

if TYPE_CHECKING:
    from pathlib import Path

MANY = 3 * TAIL_ENTRIES + 7
"""Enough that the search needs memory, a block of the file, and reads of single entries."""


def offset_index(tmp_path: Path, base: int = 0) -> OffsetIndex:
    return OffsetIndex(Disk(), f"{tmp_path}/{base:020d}.index", base)


def time_index(tmp_path: Path, base: int = 0) -> TimeIndex:
    return TimeIndex(Disk(), f"{tmp_path}/{base:020d}.timeindex", base)


def test_F3_the_read_at_203500_starts_at_position_8738(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 203000)
    index.append(203299, 8738)
    index.append(204657, 34953)
    assert index.lookup(203500) == (203299, 8738)
    index.write()
    raw = (tmp_path / "00000000000000203000.index").read_bytes()
    assert raw == struct.pack(">iiii", 299, 8738, 1657, 34953)


def test_F4_a_lookup_gives_the_greatest_entry_not_above_the_target(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 100)
    assert index.lookup(5000) == (100, 0)
    for offset, position in ((110, 50), (120, 90), (130, 130)):
        index.append(offset, position)
    expected = {100: (100, 0), 109: (100, 0), 110: (110, 50), 119: (110, 50), 999: (130, 130)}
    assert {target: index.lookup(target) for target in expected} == expected


def test_F4_a_time_lookup_gives_the_greatest_entry_not_above_the_target(tmp_path: Path) -> None:
    index = time_index(tmp_path, 100)
    assert index.lookup(10**15) == (-1, 100)
    index.append(1000, 110)
    index.append(1500, 120)
    assert index.lookup(999) == (-1, 100)
    assert index.lookup(1000) == (1000, 110)
    assert index.lookup(1499) == (1000, 110)
    assert index.lookup(10**15) == (1500, 120)


@pytest.mark.parametrize("written", ["never", "half", "all", "reopened"])
def test_floors_are_the_same_wherever_the_entries_are(tmp_path: Path, written: str) -> None:
    """Entries in memory, in the file, and across both answer every target alike."""
    index = offset_index(tmp_path)
    for number in range(1, MANY + 1):
        index.append(number * 10, number * 100)
        if written == "half" and number == MANY // 2:
            index.write()
    if written in ("all", "reopened"):
        index.write()
    if written == "reopened":
        index = offset_index(tmp_path)
    assert index.entry_count == MANY
    for target in (0, 9, 10, 11, 5119, 5120, 5121, 10 * MANY - 1, 10 * MANY, 10 * MANY + 50):
        floor = target // 10 if target // 10 <= MANY else MANY
        assert index.lookup(target) == (floor * 10, floor * 100)
        assert index.lookup_above(target * 10) == (
            max(-(-target // 10), 1) * 10 if target <= MANY * 10 else None
        )


def test_entries_are_written_once_and_in_order(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    for number in range(1, MANY + 1):
        index.append(number, number)
        if number % 100 == 0:
            index.write()
    index.release()
    raw = (tmp_path / "00000000000000000000.index").read_bytes()
    assert raw == b"".join(struct.pack(">ii", number, number) for number in range(1, MANY + 1))


def test_T6_a_time_that_did_not_grow_gets_no_entry(tmp_path: Path) -> None:
    index = time_index(tmp_path, 50)
    index.append(1000, 60)
    index.append(1000, 70)
    index.append(900, 80)
    index.append(1001, 90)
    index.write()
    raw = (tmp_path / "00000000000000000050.timeindex").read_bytes()
    assert raw == struct.pack(">qi", 1000, 10) + struct.pack(">qi", 1001, 40)


def test_an_offset_that_did_not_grow_gets_no_entry(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    index.append(5, 10)
    index.append(5, 20)
    assert index.entry_count == 1


@pytest.mark.parametrize("is_written", [True, False])
def test_truncation_drops_the_offset_and_what_follows(tmp_path: Path, is_written: bool) -> None:
    offsets, times = offset_index(tmp_path), time_index(tmp_path)
    for number in range(1, MANY + 1):
        offsets.append(number * 10, number)
        times.append(1000 + number, number * 10)
    if is_written:
        offsets.write()
        times.write()
    offsets.truncate_to(500)
    times.truncate_to(500)
    assert offsets.last_entry() == (490, 49)
    assert times.last_entry() == (1049, 490)
    offsets.append(505, 999)
    offsets.write()
    times.write()
    assert offset_index(tmp_path).last_entry() == (505, 999)
    assert time_index(tmp_path).entry_count == 49


def test_a_preallocated_index_of_a_killed_kafka_is_found_out(tmp_path: Path) -> None:
    entries = struct.pack(">iiii", 299, 8738, 1657, 34953)
    (tmp_path / "00000000000000203000.index").write_bytes(entries + bytes(800))
    with pytest.raises(CorruptionError):
        offset_index(tmp_path, 203000).check(100_000)
    (tmp_path / "00000000000000203000.timeindex").write_bytes(struct.pack(">qi", 5, 1) + bytes(120))
    with pytest.raises(CorruptionError):
        time_index(tmp_path, 203000).check()


@pytest.mark.parametrize(
    "content",
    [b"\0\0\0\1\0\0", struct.pack(">ii", -5, 10), struct.pack(">ii", 5, 5000)],
    ids=["not a multiple of 8", "below the base offset", "beyond the log"],
)
def test_an_offset_index_that_cannot_be_right_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "00000000000000000000.index").write_bytes(content)
    with pytest.raises(CorruptionError):
        offset_index(tmp_path).check(1000)


@pytest.mark.parametrize(
    "content",
    [bytes(13), struct.pack(">qiqi", 100, 1, 99, 2), struct.pack(">qi", 100, -1)],
    ids=["not a multiple of 12", "time goes back", "below the base offset"],
)
def test_a_time_index_that_cannot_be_right_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "00000000000000000000.timeindex").write_bytes(content)
    with pytest.raises(CorruptionError):
        time_index(tmp_path).check()
