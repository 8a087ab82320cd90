"""Walking one log file: windows smaller than a batch, and every way in which a tail can be torn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.kafka.segments.file import SegmentFile
from tests.support.batches import batch, with_crc
from tests.support.message_sets import plain

if TYPE_CHECKING:
    from pathlib import Path

BATCHES = [
    batch(b"a" * 50, b"b", base_offset=0),
    batch(b"c" * 3000, base_offset=2),
    batch(b"d", base_offset=7),
]


def written(path: Path, *parts: bytes) -> SegmentFile:
    path.write_bytes(b"".join(parts))
    return SegmentFile(str(path), window_bytes=200)


def test_every_batch_is_found_whatever_the_window_cuts(tmp_path: Path) -> None:
    file = written(tmp_path / "a.log", *BATCHES)
    lines = [
        (batch.position, batch.header.base_offset, bytes(batch.content)) for batch in file.batches()
    ]
    assert [content for _, _, content in lines] == BATCHES
    assert [offset for _, offset, _ in lines] == [0, 2, 7]
    assert [position for position, _, _ in lines] == [
        0,
        len(BATCHES[0]),
        len(BATCHES[0] + BATCHES[1]),
    ]
    assert file.defect is None
    assert file.size_bytes == len(b"".join(BATCHES))


def test_messages_of_the_oldest_format_are_found(tmp_path: Path) -> None:
    data = plain(b"x", None, b"", magic=0)
    file = written(tmp_path / "a.log", data)
    assert [batch.header.base_offset for batch in file.batches()] == [0, 1, 2]
    assert file.defect is None


def test_an_empty_file_is_sound(tmp_path: Path) -> None:
    file = written(tmp_path / "a.log")
    assert list(file.batches()) == []
    assert file.defect is None


@pytest.mark.parametrize("length", [1, 8, 12, 16, 17, 60, 61, len(BATCHES[1]) - 1])
def test_a_cut_batch_at_the_end_is_told(tmp_path: Path, length: int) -> None:
    file = written(tmp_path / "a.log", BATCHES[0], BATCHES[1][:length])
    assert len(list(file.batches())) == 1
    assert file.defect is not None
    assert file.defect.position == len(BATCHES[0])
    assert file.defect.size_bytes == length
    assert "is cut" in file.defect.reason


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (bytes(300), "has length 0"),
        (BATCHES[1][:-1] + b"!", "offset 2 has a wrong CRC"),
        (BATCHES[0], "stands behind offset 1"),
        (with_crc(batch(b"x", base_offset=9, last_offset_delta=-3)), "offsets 9 to 6"),
        (BATCHES[2][:16] + b"\x07" + BATCHES[2][17:], "has magic 7"),
        (b"\x00" * 8 + b"\x7f\xff\xff\xff" + b"\x00" * 4 + b"\x02" + b"\x00" * 90, "is cut"),
    ],
)
def test_bytes_that_are_no_batch_end_the_walk_and_are_reported(
    tmp_path: Path, tail: bytes, reason: str
) -> None:
    file = written(tmp_path / "a.log", BATCHES[0], tail, BATCHES[2])
    assert [batch.header.base_offset for batch in file.batches()] == [0]
    assert file.defect is not None
    assert reason in file.defect.reason
    assert file.defect.position == len(BATCHES[0])
    assert file.defect.size_bytes == len(tail + BATCHES[2])
