"""The transaction index: bytes, ranges, truncation."""

from __future__ import annotations

import os
import struct
from random import Random
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.producer_state import CompletedTransaction
from minibroker.broker.storage.txn_index import AbortedTransaction, TxnIndex, aborted_transaction
from minibroker.kafka.errors import CorruptionError

if TYPE_CHECKING:
    from pathlib import Path

FIRST = AbortedTransaction(7, 10, 20, 11)
SECOND = AbortedTransaction(8, 15, 40, 41)


@pytest.fixture
def index(tmp_path: Path) -> TxnIndex:
    new_index = TxnIndex(Disk(), f"{tmp_path}/00000000000000000000.txnindex")
    assert new_index.read() == []
    new_index.append(FIRST)
    new_index.append(SECOND)
    return new_index


def test_the_bytes_are_kafka_s(index: TxnIndex, tmp_path: Path) -> None:
    raw = (tmp_path / "00000000000000000000.txnindex").read_bytes()
    assert raw == struct.pack(">hqqqq", 0, *FIRST) + struct.pack(">hqqqq", 0, *SECOND)
    assert index.read() == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("start", "end", "expected", "is_complete"),
    [
        (0, 10, [], True),
        (0, 11, [FIRST], True),
        (0, 30, [FIRST, SECOND], True),
        (21, 30, [SECOND], True),
        (0, 50, [FIRST, SECOND], False),
        (41, 50, [], False),
    ],
)
def test_a_range_meets_the_transactions_with_data_in_it(
    index: TxnIndex, start: int, end: int, expected: list[AbortedTransaction], is_complete: bool
) -> None:
    assert index.overlapping(start, end) == (expected, is_complete)


class CountingFiles(Files):
    """The real files; `bytes_read` by whoever reads a part."""

    def __init__(self) -> None:
        self.bytes_read = 0

    def pread(self, fd: int, size: int, position: int) -> bytes:  # type: ignore[override]
        self.bytes_read += size
        return os.pread(fd, size, position)


def slowly(
    entries: list[AbortedTransaction], start: int, end: int
) -> tuple[list[AbortedTransaction], bool]:
    """Return the result of `overlapping`, from a look at every entry."""
    overlapping = []
    for entry in entries:
        if entry.last_offset >= start and entry.first_offset < end:
            overlapping.append(entry)
        if entry.last_stable_offset >= end:
            return overlapping, True
    return overlapping, False


@pytest.fixture
def long_index(tmp_path: Path) -> tuple[TxnIndex, list[AbortedTransaction], CountingFiles]:
    """10,000 aborted transactions of three producers side by side, one of them slow."""
    chance = Random(5)
    entries = []
    began: dict[int, int] = {}
    offset = 0
    while len(entries) < 10_000:
        offset += chance.randrange(1, 4)
        producer_id = chance.choice([1, 1, 1, 2, 2, 3])
        if producer_id not in began:
            began[producer_id] = offset
        elif producer_id != 3 or chance.random() < 0.01:
            first = began.pop(producer_id)
            stable = min((first, offset, *began.values()))
            entries.append(AbortedTransaction(producer_id, first, offset, stable))
    files = CountingFiles()
    index = TxnIndex(Disk(files), f"{tmp_path}/00000000000000000000.txnindex")
    index.replace(entries)
    return index, entries, files


def test_a_range_in_a_long_index_is_found_as_by_a_look_at_every_entry(
    long_index: tuple[TxnIndex, list[AbortedTransaction], CountingFiles],
) -> None:
    index, entries, _ = long_index
    end_offset = entries[-1].last_offset
    chance = Random(6)
    for _ in range(300):
        start = chance.randrange(-5, end_offset + 20)
        end = start + chance.choice([1, 10, 500, end_offset])
        assert index.overlapping(start, end) == slowly(entries, start, end)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_fetch_reads_a_small_part_of_a_long_index(
    long_index: tuple[TxnIndex, list[AbortedTransaction], CountingFiles], share: float
) -> None:
    index, entries, files = long_index
    files.bytes_read = 0
    start = int(entries[-1].last_offset * share)
    transactions, _ = index.overlapping(start, start + 100)
    assert transactions
    assert files.bytes_read < 34 * len(entries) / 10


def test_a_file_that_ends_within_an_entry_ends_before_it(index: TxnIndex, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.txnindex"
    path.write_bytes(path.read_bytes()[:-1])
    assert index.overlapping(0, 50) == ([FIRST], False)


def test_truncation_drops_markers_from_the_offset_on(index: TxnIndex) -> None:
    index.truncate_to(40)
    assert index.read() == [FIRST]
    index.truncate_to(0)
    assert index.read() == []


def test_another_version_is_corrupt(index: TxnIndex, tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.txnindex").write_bytes(struct.pack(">hqqqq", 1, 0, 0, 0, 0))
    with pytest.raises(CorruptionError, match="version 1"):
        index.read()
    with pytest.raises(CorruptionError, match="version 1"):
        index.overlapping(0, 50)


def test_an_entry_is_made_of_a_completed_transaction() -> None:
    assert aborted_transaction(CompletedTransaction(7, 10, 20, True, 11)) == FIRST
