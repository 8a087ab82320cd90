"""Transaction index and snapshots under check-log, against what the batches say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.records.crc import crc32c
from minibroker.tools.dump_indexes import TXN_ENTRY
from tests.support.check import broken_things

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "was aborted at offset 11 has no entry"),
        ([(0, 8, 9, 11, 12)], "no abort of producer 8 at offset 11"),
        ([(0, 7, 9, 10, 12)], "no abort of producer 7 at offset 10"),
        ([(0, 7, 10, 11, 12)], "is said to begin at offset 10, its first batch is at 9"),
        ([(0, 7, 9, 11, 12)] * 2, "offset 11 follows offset 11"),
        ([(3, 7, 9, 11, 12)], "version 3, expected 0"),
    ],
)
def test_transaction_index(data: Path, entries: list[tuple[int, ...]], words: str) -> None:
    path = data / "t-0" / "00000000000000000000.txnindex"
    path.write_bytes(b"".join(TXN_ENTRY.pack(*entry) for entry in entries))
    assert words in "\n".join(broken_things(data))


def test_a_transaction_index_with_odd_bytes(data: Path) -> None:
    path = data / "t-0" / "00000000000000000000.txnindex"
    path.write_bytes(path.read_bytes() + b"odd")
    assert "[txnindex-size]" in "\n".join(broken_things(data))


@pytest.mark.parametrize(
    ("position", "size", "value", "words"),
    [
        (20, 4, 0, "last sequence 0, the log has 1 at offset 10"),
        (24, 8, 8, "last offset 8, the log has epoch 0 and offset 10"),
        (24, 8, 99, "last offset 99, beyond the file's name"),
    ],
)
def test_snapshot(data: Path, position: int, size: int, value: int, words: str) -> None:
    """Behind 10 bytes of header: producer id, epoch, sequence, last offset, delta, …"""
    path = data / "t-0" / "00000000000000000012.snapshot"
    content = bytearray(path.read_bytes())
    content[position : position + size] = value.to_bytes(size, "big")
    content[2:6] = crc32c(content[6:]).to_bytes(4, "big")
    path.write_bytes(content)
    assert words in "\n".join(broken_things(data))


def test_a_snapshot_that_cannot_be_read_or_is_beyond_the_log(data: Path) -> None:
    path = data / "t-0" / "00000000000000000012.snapshot"
    content = path.read_bytes()
    (data / "t-0" / "00000000000000000099.snapshot").write_bytes(content)
    path.write_bytes(content[:-1])
    found = "\n".join(broken_things(data))
    assert "[snapshot]" in found
    assert "the log ends at offset 23 [snapshot-offset]" in found
