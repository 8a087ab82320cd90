"""One segment, from its first byte to the end of its service."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.segment import Segment, Segments, roll_jitter_ms
from minibroker.kafka.errors import CorruptionError
from tests.support.logs import NOW_MS, NewLog, append, batch, config, flush

if TYPE_CHECKING:
    pass


ROOT = Path(__file__).resolve().parents[4]
SIZE = len(batch(b"x" * 100))


def test_an_empty_segment_ages_by_the_clock(tmp_path: Path) -> None:
    fresh = Segment(Disk(), str(tmp_path), 5, created_ms=1000)
    fresh.begin_empty()
    assert [path.rpartition("/")[2] for path in fresh.paths] == [
        "00000000000000000005.log",
        "00000000000000000005.index",
        "00000000000000000005.timeindex",
    ]
    assert list(tmp_path.iterdir()) == []
    assert (fresh.size_bytes, fresh.max_timestamp, fresh.first_timestamp) == (0, -1, -1)
    assert fresh.age_ms(1700, 5) == 700
    assert fresh.modified_ms == 1000
    assert fresh.read_next_offset() == 5


def test_marking_deleted_renames_the_existing_files(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log()
    append(log, b"a")
    flush(log)
    marked = Segment(Disk(), log.directory, 0, created_ms=NOW_MS).mark_deleted()
    assert len(marked) == 3
    assert all(path.endswith(".deleted") for path in marked)
    assert not list((tmp_path / "t/t-0").glob("*.log"))


def test_jitter_stays_below_its_limits() -> None:
    assert roll_jitter_ms(config()) == 0
    settings = config(segment_jitter_ms=1000, segment_ms=10)
    assert {roll_jitter_ms(settings) for _ in range(300)} <= set(range(10))
    assert len({roll_jitter_ms(settings) for _ in range(300)}) > 1


HOLD_VIEW_AND_TRUNCATE = """
import sys
from minibroker.broker.storage import log_reads
from tests.support.logs import TOPIC_ID, append, config, open_manager

manager = open_manager(sys.argv[1])
log = manager.create_log("t", 0, TOPIC_ID, config())
for number in range(8):
    append(log, bytes([number]) * int(sys.argv[2]))
reads = [log_reads.read(log, at, 10**7, end_offset=8, min_one_batch=True) for at in (0, 3, 6)]
views = [read.records for read in reads]
before = [bytes(view) for view in views]
log.truncate_to(2)
for _ in range(9):
    append(log, b"new" * 40_000)
assert [bytes(view) for view in views] == before
log.truncate_to(1)
assert [bytes(view) for view in views] == before
del views, reads
log.disk.windows.close_unused()
assert log.disk.windows.unclosed_count == 0
print("alive", log.log_end_offset)
"""


@pytest.mark.parametrize(
    "batch_bytes",
    [pytest.param(100_000, id="one window"), pytest.param(900_000, id="wider than a window")],
)
def test_an_answer_in_flight_outlives_a_truncation(tmp_path: Path, batch_bytes: int) -> None:
    """In a process of its own: a touch of what was cut would end it (SIGBUS)."""
    done = subprocess.run(
        [sys.executable, "-c", HOLD_VIEW_AND_TRUNCATE, str(tmp_path), str(batch_bytes)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "alive 1\n"), done.stderr


@pytest.fixture
def segment(new_log: NewLog) -> Segment:
    """Thirty batches of one record, an index entry for every third."""
    log = new_log(index_interval_bytes=2 * SIZE)
    for number in range(30):
        append(log, b"x" * 100, timestamp_ms=NOW_MS + number)
    flush(log)
    return Segment(Disk(), log.directory, 0, created_ms=NOW_MS)


def test_a_batch_is_found_from_the_index_or_from_a_position(segment: Segment) -> None:
    for offset in range(30):
        assert segment.find_batch(offset) == (offset * SIZE, SIZE, offset)
        assert segment.find_batch(offset, 0) == (offset * SIZE, SIZE, offset)
    assert segment.find_batch(30) is None


def test_headers_begin_at_a_position(segment: Segment) -> None:
    places = [(position, header.base_offset) for position, header in segment.headers(28 * SIZE)]
    assert places == [(28 * SIZE, 28), (29 * SIZE, 29)]
    assert len(list(segment.headers())) == 30
    assert segment.read_next_offset() == 30


def test_a_length_no_batch_has_is_corrupt(segment: Segment) -> None:
    with open(segment.log_path, "r+b") as file:  # noqa: PTH123
        file.seek(SIZE + 8)
        file.write(bytes(4))
    with pytest.raises(CorruptionError, match="length 0"):
        segment.find_batch(2, 0)


@pytest.mark.parametrize("kept_bytes", range(1, 27))
def test_a_batch_that_ends_before_its_offsets_is_corrupt(segment: Segment, kept_bytes: int) -> None:
    """A power cut may leave any part of it; recovery makes sense of CorruptionError only."""
    os.truncate(segment.log_path, 29 * SIZE + kept_bytes)
    with pytest.raises(CorruptionError, match=f"ends inside the batch at {29 * SIZE}"):
        segment.find_batch(29, 28 * SIZE)


def test_age_counts_from_the_first_batch(segment: Segment) -> None:
    assert segment.first_timestamp == NOW_MS
    assert segment.age_ms(0, NOW_MS + 500) == 500
    assert segment.max_timestamp >= NOW_MS + 27  # the last index entry; `close` adds the very last


def test_small_slices_are_copies_and_large_ones_maps(segment: Segment) -> None:
    assert isinstance(segment.read(0, 100).obj, bytes)
    raw = bytes(segment.read(0, segment.size_bytes))
    assert len(raw) == 30 * SIZE


def segments(*bases: int) -> Segments:
    new_segments = Segments()
    for base in bases:
        new_segments.add(Segment(Disk(), "/nowhere", base, created_ms=0))
    return new_segments


def test_the_floor_is_the_greatest_base_offset_not_above() -> None:
    sorted_segments = segments(200, 0, 100)
    assert sorted_segments.base_offsets == [0, 100, 200]
    bases = {
        target: (segment := sorted_segments.floor(target)) and segment.base_offset
        for target in (0, 99, 100, 999)
    }
    assert bases == {0: 0, 99: 0, 100: 100, 999: 200}
    assert segments(5).floor(4) is None


def test_neighbours() -> None:
    three = segments(0, 100, 200)
    assert (three.first.base_offset, three.last.base_offset, len(three)) == (0, 200, 3)
    higher = three.higher(100)
    assert higher is not None
    assert higher.base_offset == 200
    assert three.higher(200) is None
    assert [segment.base_offset for segment in three.since(150)] == [100, 200]
    assert [segment.base_offset for segment in segments(50, 60).since(10)] == [50, 60]


def test_one_per_base_offset() -> None:
    two = segments(0, 100)
    fresh = Segment(Disk(), "/nowhere", 100, created_ms=0)
    two.add(fresh)
    assert two.last is fresh
    assert len(two) == 2
    two.remove(0)
    assert [segment.base_offset for segment in two] == [100]
    assert [segment.base_offset for segment in reversed(two)] == [100]
