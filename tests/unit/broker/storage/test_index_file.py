"""Common code of both indexes: entries in memory and in the file, truncation, leftovers."""

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


@pytest.mark.parametrize("is_written", [True, False])
def test_truncation_drops_the_offset_and_all_later_entries(
    tmp_path: Path, is_written: bool
) -> None:
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
