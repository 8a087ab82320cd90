"""The transaction index: bytes, ranges, truncation."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from minibroker.errors import CorruptionError
from minibroker.storage.disk import Disk
from minibroker.storage.producer_state import CompletedTransaction
from minibroker.storage.txn_index import AbortedTransaction, TxnIndex, aborted_transaction

if TYPE_CHECKING:
    from pathlib import Path

FIRST = AbortedTransaction(7, 10, 20, 11)
SECOND = AbortedTransaction(8, 15, 40, 41)


@pytest.fixture
def index(tmp_path: Path) -> TxnIndex:
    made = TxnIndex(Disk(), f"{tmp_path}/00000000000000000000.txnindex")
    assert made.read() == []
    made.append(FIRST)
    made.append(SECOND)
    return made


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


def test_truncation_drops_markers_from_the_offset_on(index: TxnIndex) -> None:
    index.truncate_to(40)
    assert index.read() == [FIRST]
    index.truncate_to(0)
    assert index.read() == []


def test_another_version_is_corrupt(index: TxnIndex, tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.txnindex").write_bytes(struct.pack(">hqqqq", 1, 0, 0, 0, 0))
    with pytest.raises(CorruptionError, match="version 1"):
        index.read()


def test_an_entry_is_made_of_a_completed_transaction() -> None:
    assert aborted_transaction(CompletedTransaction(7, 10, 20, True, 11)) == FIRST
