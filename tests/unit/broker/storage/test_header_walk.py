"""The walk along batch headers: every batch, in any size, up to where the file ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.batch_walks import walk_headers
from minibroker.broker.storage.disk import Disk
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import assign
from minibroker.kafka.records.message_set import build_message_set
from minibroker.kafka.records.record import Record
from tests.support.logs import batch

if TYPE_CHECKING:
    from pathlib import Path


def walk(path: Path, content: bytes, position: int = 0) -> list[tuple[int, int]]:
    """Return position and last offset of each batch that is found in a file of this content."""
    path.write_bytes(content)
    disk = Disk()
    found = walk_headers(disk, str(path), position, len(content))
    offsets = [(at, header.last_offset) for at, header in found]
    disk.close()
    return offsets


def test_small_and_large_batches_are_found(tmp_path: Path) -> None:
    content, expected = bytearray(), []
    for offset, size in enumerate((10, 70_000, 9_000, 1, 64 << 10, 5)):
        whole = batch(b"v" * size)
        assign(whole, 0, offset, 0)
        expected.append((len(content), offset))
        content += whole
    assert walk(tmp_path / "f", bytes(content)) == expected
    assert walk(tmp_path / "f", bytes(content), expected[2][0]) == expected[2:]
    assert walk(tmp_path / "f", bytes(content[:-1])) == expected[:-1]


def test_a_message_of_an_old_format_may_be_shorter_than_a_header(tmp_path: Path) -> None:
    records = [Record(offset, -1, None, b"") for offset in (3, 4)]
    content = bytes(build_message_set(records, magic=0, codec=0, base_offset=3))
    assert walk(tmp_path / "f", content) == [(0, 3), (len(content) // 2, 4)]


def test_an_unknown_magic_or_length_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorruptionError):
        walk(tmp_path / "f", bytes(100))
