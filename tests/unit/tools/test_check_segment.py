"""Batches under check-log: each rule with a log that breaks it."""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.records.batch import compute_crc
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.crc import crc32c
from minibroker.kafka.records.record import Record
from minibroker.tools.dump_indexes import TXN_ENTRY
from tests.support import message_sets
from tests.support.check import broken_things
from tests.support.logs import NOW_MS

if TYPE_CHECKING:
    from pathlib import Path


def batch(base_offset: int = 0, epoch: int = 0, **fields: int) -> bytearray:
    """Two records; `fields` are bytes of the header to change: `at_23=…`, CRC made right again."""
    records = [Record(0, 5, None, b"a"), Record(1, 6, None, b"b")]
    one_batch = build_batch(records, base_offset=base_offset, leader_epoch=epoch)
    for name, value in fields.items():
        one_batch[int(name.removeprefix("at_"))] = value
    one_batch[17:21] = compute_crc(one_batch, 0, len(one_batch)).to_bytes(4, "big")
    return one_batch


def found_in(path: Path, *batches: bytes | bytearray, following: int | None = None) -> str:
    directory = path / "t-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
    if following is not None:
        (directory / f"{following:020d}.log").write_bytes(b"")
    return "\n".join(broken_things(directory))


def test_gaps_and_all_formats_are_sound(tmp_path: Path) -> None:
    old = message_sets.message(b"x", magic=0) + message_sets.message(b"y", magic=1, offset=1)
    assert found_in(tmp_path, old, batch(2), batch(10, 3), following=12) == ""


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ([batch(), batch(1)], "offset 1 where 2 or more was expected"),
        ([batch(11)], "the next segment begins at 12"),
        ([batch(at_16=5)], "magic 5, expected 0, 1 or 2"),
        ([batch(at_22=6)], "codec 6, expected 0 to 4"),
        ([batch(at_26=0)], "2 records up to 0 [count]"),
        ([batch(at_60=1)], "bytes are left behind the 1 records"),
        ([batch(at_42=5)], "largest timestamp 5 in the header, 6 in a record [timestamp]"),
        ([batch(epoch=4), batch(2, 3)], "leader epoch 3 after 4 [epoch]"),
        ([batch()[:-1] + b"x"], "the CRC is not"),
        ([batch(), bytes(30)], "length 0 in the batch at position"),
    ],
)
def test_damage_is_found(tmp_path: Path, batches: list[bytearray], words: str) -> None:
    assert words in found_in(tmp_path, *batches, following=12)


def test_compressed_records_are_looked_at_deeply(tmp_path: Path) -> None:
    inner = message_sets.message(b"x", offset=0) + message_sets.message(
        b"y", offset=1, wrong_crc=True
    )
    wrapper = message_sets.wrapper(message_sets.GZIP, inner, offset=1)
    assert "the CRC of message 1 is wrong" in found_in(tmp_path, wrapper)


# Both indexes under check-log: each rule with an index that breaks it.


FIRST, LAST = "00000000000000000000", "00000000000000000022"


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        (pack(">ii", 2, 207), "index-position"),
        (pack(">ii", 2, 90_000), "index-position"),
        (pack(">ii", 1, 206), "index-offset"),
        (pack(">iiii", 2, 206, 2, 309), "index-order"),
        (pack(">iiii", 4, 206, 5, 103), "index-order"),
        (pack(">ii", 500, 206), "index-offset"),
        (pack(">ii", 2, 206) + b"odd", "index-size"),
        (pack(">ii", 2, 206) + bytes(16), "index-order"),
    ],
)
def test_offset_index(data: Path, entries: bytes, rule: str) -> None:
    (data / "t-0" / f"{FIRST}.index").write_bytes(entries)
    assert f"[{rule}]" in "\n".join(broken_things(data))


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        (pack(">qi", NOW_MS + 1, 2), "timeindex-timestamp"),
        (pack(">qi", NOW_MS + 2, 500), "timeindex-offset"),
        (pack(">qiqi", NOW_MS + 2, 2, NOW_MS + 2, 3), "timeindex-order"),
        (pack(">qi", NOW_MS + 2, 2), "timeindex-largest"),
        (b"", "timeindex-largest"),
        (pack(">qi", NOW_MS + 8, 8) + b"odd", "timeindex-size"),
    ],
)
def test_time_index(data: Path, entries: bytes, rule: str) -> None:
    (data / "t-0" / f"{FIRST}.timeindex").write_bytes(entries)
    assert f"[{rule}]" in "\n".join(broken_things(data))


def test_zeros_behind_the_newest_index_are_what_a_killed_kafka_leaves(data: Path) -> None:
    for suffix in ("index", "timeindex"):
        path = data / "t-0" / f"{LAST}.{suffix}"
        path.write_bytes(path.read_bytes() + bytes(24 * 100))
    assert broken_things(data) == []


def test_an_index_that_is_not_there_is_made_again(data: Path) -> None:
    (data / "t-0" / f"{FIRST}.index").unlink()
    (data / "t-0" / f"{FIRST}.timeindex").unlink()
    assert broken_things(data) == []


# Transaction index and snapshots under check-log, against what the batches say.


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
    findings = "\n".join(broken_things(data))
    assert "[snapshot]" in findings
    assert "the log ends at offset 23 [snapshot-offset]" in findings
