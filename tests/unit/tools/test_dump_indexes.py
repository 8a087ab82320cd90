"""Indexes, transaction index and snapshot, and what does not fit."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from minibroker.tools.dump_indexes import OFFSET_ENTRY, IndexEntries

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.tools.conftest import Said

NAME = "00000000000000000000"


def test_every_kind_of_file(dump: Callable[..., Said], data: Path) -> None:
    files = sorted(path for path in (data / "t-0").iterdir() if path.suffix in _SUFFIXES)
    said = dump(*files)
    assert (said.errors, said.code) == ("", 0)
    assert "offset: 2 position: 206" in said.output
    assert "timestamp: 1700000000008 offset: 8" in said.output
    assert "version: 0 producerId: 7 firstOffset: 9 lastOffset: 11 lastStableOffset: 12" in (
        said.output
    )
    assert "producerId: 7 producerEpoch: 0 coordinatorEpoch: 0 currentTxnFirstOffset: Opt" in (
        said.output
    )


_SUFFIXES = (".index", ".timeindex", ".txnindex", ".snapshot")


def test_sanity_and_verification_only(dump: Callable[..., Said], data: Path) -> None:
    index = data / "t-0" / f"{NAME}.index"
    assert dump("--index-sanity-check", index).output.endswith("passed sanity check.\n")
    assert dump("--verify-index-only", index).output == f"Dumping {index}\n"
    index.write_bytes(index.read_bytes() + b"odd")
    assert dump("--index-sanity-check", index).code == 1
    empty = data / "t-0" / "00000000000000000022.index"
    assert dump(empty).output.endswith(f"{empty} is empty.\n")


def test_entries_that_do_not_fit(dump: Callable[..., Said], data: Path) -> None:
    index = data / "t-0" / f"{NAME}.index"
    index.write_bytes(struct.pack(">iiii", 2, 206, 5, 206))
    said = dump(index)
    assert said.errors == f"Mismatches in :{index}\n  Index offset: 5, log offset: 2\n"
    times = data / "t-0" / f"{NAME}.timeindex"
    entry = struct.Struct(">qi")
    times.write_bytes(entry.pack(5, 2) + entry.pack(4, 4) + entry.pack(9, 99))
    said = dump(times)
    assert f"Found timestamp mismatch in :{times}" in said.errors
    assert "  Index timestamp: 4, Previously indexed timestamp: 5" in said.errors
    assert "Indexed offset: 99, found log offset: -1" in said.errors
    index.write_bytes(struct.pack(">ii", 2, 999_999))
    assert dump(index).code == 1
    assert "an entry points to position 999999" in dump(index).errors


def test_a_damaged_snapshot_is_said_and_passed_by(dump: Callable[..., Said], data: Path) -> None:
    path = data / "t-0" / "00000000000000000012.snapshot"
    path.write_bytes(path.read_bytes()[:-1])
    said = dump(path)
    assert said.code == 0
    assert "producer snapshot has CRC" in said.errors


@pytest.mark.parametrize("count", [0, 1, 5, 1023, 1024, 1025, 3000])
def test_the_greatest_entry_up_to_a_target(tmp_path: Path, count: int) -> None:
    path = tmp_path / "i"
    path.write_bytes(b"".join(OFFSET_ENTRY.pack(10 * n + 10, n) for n in range(count)))
    index = IndexEntries(str(path), OFFSET_ENTRY)
    assert index.count == count
    for target in {0, 9, 10, 11, 5 * count, 10 * count, 10 * count + 99}:
        expected = max(0, min(target // 10 - 1, count - 1))
        assert index.position_below(target) == expected
