"""Batches out of a file: where the walk ends, large ones, what is damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.tools import log_file
from minibroker.tools.log_file import LogFile
from tests.support import message_sets

if TYPE_CHECKING:
    from pathlib import Path


def written(path: Path, *parts: bytes) -> str:
    file = path / "0.log"
    file.write_bytes(b"".join(parts))
    return str(file)


def batch(value: bytes = b"v", base_offset: int = 0) -> bytes:
    return bytes(build_batch([Record(0, 1, None, value)], base_offset=base_offset))


def test_all_formats_one_behind_the_other(tmp_path: Path) -> None:
    old = message_sets.message(b"a", magic=0) + message_sets.message(b"b", magic=1, offset=1)
    with LogFile(written(tmp_path, old, batch(base_offset=2))) as file:
        batches = list(file.batches())
        assert [batch.header.magic for batch in batches] == [0, 1, 2]
        assert [batch.header.last_offset for batch in batches] == [0, 1, 2]
        assert all(batch.crc_is_valid() for batch in batches)
        assert b"".join(batch.content() for batch in batches) == file.read(0, file.size_bytes)


@pytest.mark.parametrize("length", [1, 12, 17, 18, 61])
def test_a_cut_batch_ends_the_walk(tmp_path: Path, length: int) -> None:
    with LogFile(written(tmp_path, batch(), batch()[:length])) as file:
        assert [batch.position for batch in file.batches()] == [0]


def test_only_up_to_an_end(tmp_path: Path) -> None:
    content = batch()
    with LogFile(written(tmp_path, content, content, content)) as file:
        assert len(list(file.batches(len(content), 2 * len(content)))) == 1
        assert len(list(file.batches(0, 3 * len(content) - 1))) == 2


def test_a_batch_larger_than_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "WINDOW_BYTES", 100)
    large = batch(bytes(range(256)) * 20)
    wrong = bytearray(large)
    wrong[-1] ^= 1
    with LogFile(written(tmp_path, large, bytes(wrong), batch())) as file:
        assert [batch.crc_is_valid() for batch in file.batches()] == [True, False, True]


def test_lengths_and_magics_that_no_format_has(tmp_path: Path) -> None:
    with (
        LogFile(written(tmp_path, batch(), bytes(100))) as file,
        pytest.raises(CorruptionError, match="length 0 in the batch at position"),
    ):
        list(file.batches())
    odd = bytearray(batch())
    odd[16] = 66
    with LogFile(written(tmp_path, bytes(odd))) as file:
        (one_batch,) = file.batches()
        assert one_batch.header.magic == 66
    odd[16] = 0xFF
    with LogFile(written(tmp_path, bytes(odd))) as file, pytest.raises(CorruptionError):
        list(file.batches())


def test_a_file_that_got_shorter(tmp_path: Path) -> None:
    path = written(tmp_path, batch())
    with LogFile(path) as file:
        file.size_bytes += 100
        with pytest.raises(CorruptionError, match="expected 20"):
            file.read(file.size_bytes - 100, 20)
