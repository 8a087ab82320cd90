"""The files of a new segment: found sound by the segment that opens them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.compaction.segment_writer import SegmentWriter
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.segment import Segment
from minibroker.broker.storage.txn_index import AbortedTransaction
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import read_header
from tests.support.logs import NOW_MS, batch

if TYPE_CHECKING:
    from pathlib import Path


def put_into_service(path: Path) -> None:
    for file in path.glob("*.cleaned"):
        file.rename(str(file).removesuffix(".cleaned"))


def add(writer: SegmentWriter, offset: int, timestamp_ms: int) -> bytes:
    content = batch(b"v" * 50, timestamp_ms=timestamp_ms)
    content[0:8] = offset.to_bytes(8, "big")
    header = read_header(content)
    writer.add(content, header.last_offset, header.max_timestamp)
    return bytes(content)


def test_a_segment_with_its_indexes(tmp_path: Path) -> None:
    writer = SegmentWriter(REAL_FILES, str(tmp_path), 100, 200)
    content = b""
    for number in range(40):
        content += add(writer, 100 + 3 * number, NOW_MS + number % 17)
        if number % 7 == 0:
            assert writer.write() > 0
    assert writer.write() > 0
    assert writer.write() == 0
    aborted = [AbortedTransaction(1, 100, 120, 121)]
    writer.finish(aborted, 1_600_000_000_123)
    assert writer.size_bytes == len(content)
    put_into_service(tmp_path)
    disk = Disk()
    segment = Segment(disk, str(tmp_path), 100, created_ms=0)
    assert segment.size_bytes == len(content)
    assert segment.open_sound_indexes()
    assert segment.offset_index.entry_count > 8
    assert segment.max_timestamp == NOW_MS + 16
    assert segment.offset_of_max_timestamp == 100 + 3 * 16
    assert segment.modified_ms == 1_600_000_000_123
    assert segment.txn_index.read() == aborted
    for number in range(40):
        place = segment.find_batch(100 + 3 * number)
        assert place is not None
        assert place[2] == 100 + 3 * number
    disk.close()


def test_an_empty_segment_has_its_files(tmp_path: Path) -> None:
    SegmentWriter(REAL_FILES, str(tmp_path), 0, 4096).finish([], NOW_MS)
    assert sorted(file.name[20:] for file in tmp_path.iterdir()) == [
        ".index.cleaned",
        ".log.cleaned",
        ".timeindex.cleaned",
    ]


def test_files_of_an_earlier_try_are_removed(tmp_path: Path) -> None:
    for suffix in ("log", "index", "timeindex", "txnindex"):
        (tmp_path / f"{0:020d}.{suffix}.cleaned").write_bytes(b"old" * 100)
    writer = SegmentWriter(REAL_FILES, str(tmp_path), 0, 4096)
    content = add(writer, 5, NOW_MS)
    writer.finish([], NOW_MS)
    assert (tmp_path / f"{0:020d}.log.cleaned").read_bytes() == content
    assert (tmp_path / f"{0:020d}.index.cleaned").read_bytes() == b""
    assert not (tmp_path / f"{0:020d}.txnindex.cleaned").exists()


def test_a_discarded_one_leaves_nothing(tmp_path: Path) -> None:
    writer = SegmentWriter(REAL_FILES, str(tmp_path), 0, 4096)
    add(writer, 5, NOW_MS)
    writer.write()
    writer.discard()
    assert list(tmp_path.iterdir()) == []


def test_an_offset_out_of_reach_is_refused(tmp_path: Path) -> None:
    writer = SegmentWriter(REAL_FILES, str(tmp_path), 0, 4096)
    with pytest.raises(CorruptionError, match=str(1 << 31)):
        writer.add(b"", 1 << 31, NOW_MS)
    writer.discard()
