"""Batches under check-log: each rule with a log that breaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.records.batch import compute_crc
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from tests.support import message_sets
from tests.support.check import broken_things

if TYPE_CHECKING:
    from pathlib import Path


def batch(base_offset: int = 0, epoch: int = 0, **fields: int) -> bytearray:
    """Two records; `fields` are bytes of the header to change: `at_23=…`, CRC made right again."""
    records = [Record(0, 5, None, b"a"), Record(1, 6, None, b"b")]
    sent = build_batch(records, base_offset=base_offset, leader_epoch=epoch)
    for name, value in fields.items():
        sent[int(name.removeprefix("at_"))] = value
    sent[17:21] = compute_crc(sent, 0, len(sent)).to_bytes(4, "big")
    return sent


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
