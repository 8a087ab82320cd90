"""The offset index and the time index: entries, lookups, the rule, the rebuild."""

from __future__ import annotations

import struct
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.indexes import (
    INDEX_INTERVAL_BYTES,
    NO_TIMESTAMP,
    TAIL_ENTRIES,
    IndexRule,
    OffsetIndex,
    SegmentIndexes,
    TimeIndex,
    rebuild_indexes,
)
from minibroker.broker.storage.open_files import ColdError
from minibroker.broker.storage.segment import Segment
from minibroker.kafka.errors import CorruptionError
from tests.support.logs import NOW_MS, NewLog, append, flush

if TYPE_CHECKING:
    from minibroker.broker.storage.open_files import ColdTask


MANY = 3 * TAIL_ENTRIES + 7
"""Enough that the search needs memory and several blocks of the file."""


def offset_index(tmp_path: Path, base: int = 0) -> OffsetIndex:
    return OffsetIndex(Disk(), f"{tmp_path}/{base:020d}.index", base)


def time_index(tmp_path: Path, base: int = 0) -> TimeIndex:
    return TimeIndex(Disk(), f"{tmp_path}/{base:020d}.timeindex", base)


@pytest.mark.parametrize("written", ["never", "half", "all", "reopened"])
def test_floors_are_the_same_wherever_the_entries_are(tmp_path: Path, written: str) -> None:
    """Entries in memory, in the file, and across both answer every target alike."""
    index = offset_index(tmp_path)
    for number in range(1, MANY + 1):
        index.append(number * 10, number * 100)
        if written == "half" and number == MANY // 2:
            index.write()
    if written in ("all", "reopened"):
        index.write()
    if written == "reopened":
        index = offset_index(tmp_path)
    assert index.entry_count == MANY
    for target in (0, 9, 10, 11, 5119, 5120, 5121, 10 * MANY - 1, 10 * MANY, 10 * MANY + 50):
        floor = target // 10 if target // 10 <= MANY else MANY
        assert index.lookup(target) == (floor * 10, floor * 100)
        assert index.lookup_above(target * 10) == (
            max(-(-target // 10), 1) * 10 if target <= MANY * 10 else None
        )


@pytest.mark.parametrize("is_reopened", [False, True])
def test_floors_do_not_depend_on_how_evenly_the_offsets_grow(
    tmp_path: Path, is_reopened: bool
) -> None:
    steps = [1] * 2000 + [50_000] * 1500 + [3] * 3000 + [1_000_000] * 2 + [7] * 700
    keys = list(accumulate(steps))
    index = offset_index(tmp_path)
    for number, key in enumerate(keys, 1):
        index.append(key, number * 10)
    index.write()
    if is_reopened:
        index = offset_index(tmp_path)
    for key in (0, *keys[::37], keys[-1]):
        for target in (key - 1, key, key + 1):
            floor = bisect_right(keys, target)
            expected = (keys[floor - 1], floor * 10) if floor else (0, 0)
            assert index.lookup(target) == expected
            assert index.find_floor(target) == floor - 1


def test_a_lookup_reads_one_block_where_the_offsets_grow_evenly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = offset_index(tmp_path)
    for number in range(1, 100_000):
        index.append(number * 10, number * 100)
    index.write()
    index = offset_index(tmp_path)
    index.read_last_key()
    sizes: list[int] = []
    pread = Disk.pread

    def note_size(disk: Disk, path: str, size: int, position: int) -> bytes | bytearray:
        sizes.append(size)
        return pread(disk, path, size, position)

    monkeypatch.setattr(Disk, "pread", note_size)
    for target in range(5, 1_000_000, 7777):
        assert index.lookup(target) == (target // 10 * 10, target // 10 * 100)
        assert len(sizes) <= 1
        assert sum(sizes) <= 4096
        sizes.clear()


def test_entries_are_written_once_and_in_order(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    for number in range(1, MANY + 1):
        index.append(number, number)
        if number % 100 == 0:
            index.write()
    index.release()
    raw = (tmp_path / "00000000000000000000.index").read_bytes()
    assert raw == b"".join(struct.pack(">ii", number, number) for number in range(1, MANY + 1))


@pytest.mark.parametrize("is_written", [True, False])
def test_truncation_drops_the_offset_and_all_later_entries(
    tmp_path: Path, is_written: bool
) -> None:
    offsets, times = offset_index(tmp_path), time_index(tmp_path)
    for number in range(1, MANY + 1):
        offsets.append(number * 10, number)
        times.append(1000 + number, number * 10)
    if is_written:
        offsets.write()
        times.write()
    offsets.truncate_to(500)
    times.truncate_to(500)
    assert offsets.last_entry() == (490, 49)
    assert times.last_entry() == (1049, 490)
    offsets.append(505, 999)
    offsets.write()
    times.write()
    assert offset_index(tmp_path).last_entry() == (505, 999)
    assert time_index(tmp_path).entry_count == 49


def test_a_preallocated_index_of_a_killed_kafka_is_found_out(tmp_path: Path) -> None:
    entries = struct.pack(">iiii", 299, 8738, 1657, 34953)
    (tmp_path / "00000000000000203000.index").write_bytes(entries + bytes(800))
    with pytest.raises(CorruptionError):
        offset_index(tmp_path, 203000).check(100_000)
    (tmp_path / "00000000000000203000.timeindex").write_bytes(struct.pack(">qi", 5, 1) + bytes(120))
    with pytest.raises(CorruptionError):
        time_index(tmp_path, 203000).check()


"""Enough that the search needs memory and several blocks of the file."""


def test_the_read_at_203500_starts_at_position_8738(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 203000)
    index.append(203299, 8738)
    index.append(204657, 34953)
    assert index.lookup(203500) == (203299, 8738)
    index.write()
    raw = (tmp_path / "00000000000000203000.index").read_bytes()
    assert raw == struct.pack(">iiii", 299, 8738, 1657, 34953)


def test_a_lookup_gives_the_greatest_entry_not_above_the_target(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 100)
    assert index.lookup(5000) == (100, 0)
    for offset, position in ((110, 50), (120, 90), (130, 130)):
        index.append(offset, position)
    expected = {100: (100, 0), 109: (100, 0), 110: (110, 50), 119: (110, 50), 999: (130, 130)}
    assert {target: index.lookup(target) for target in expected} == expected


def test_an_offset_that_did_not_grow_gets_no_entry(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    index.append(5, 10)
    index.append(5, 20)
    assert index.entry_count == 1


@pytest.mark.parametrize(
    "content",
    [b"\0\0\0\1\0\0", struct.pack(">ii", -5, 10), struct.pack(">ii", 5, 5000)],
    ids=["not a multiple of 8", "below the base offset", "beyond the log"],
)
def test_an_offset_index_that_cannot_be_right_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "00000000000000000000.index").write_bytes(content)
    with pytest.raises(CorruptionError):
        offset_index(tmp_path).check(1000)


"""Enough that the search needs memory and several blocks of the file."""


def test_a_time_lookup_gives_the_greatest_entry_not_above_the_target(tmp_path: Path) -> None:
    index = time_index(tmp_path, 100)
    assert index.lookup(10**15) == (-1, 100)
    index.append(1000, 110)
    index.append(1500, 120)
    assert index.lookup(999) == (-1, 100)
    assert index.lookup(1000) == (1000, 110)
    assert index.lookup(1499) == (1000, 110)
    assert index.lookup(10**15) == (1500, 120)


def test_a_time_that_did_not_grow_gets_no_entry(tmp_path: Path) -> None:
    index = time_index(tmp_path, 50)
    index.append(1000, 60)
    index.append(1000, 70)
    index.append(900, 80)
    index.append(1001, 90)
    index.write()
    raw = (tmp_path / "00000000000000000050.timeindex").read_bytes()
    assert raw == struct.pack(">qi", 1000, 10) + struct.pack(">qi", 1001, 40)


@pytest.mark.parametrize(
    "content",
    [bytes(13), struct.pack(">qiqi", 100, 1, 99, 2), struct.pack(">qi", 100, -1)],
    ids=["not a multiple of 12", "time goes back", "below the base offset"],
)
def test_a_time_index_that_cannot_be_right_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "00000000000000000000.timeindex").write_bytes(content)
    with pytest.raises(CorruptionError):
        time_index(tmp_path).check()


def indexes(tmp_path: Path) -> tuple[OffsetIndex, TimeIndex]:
    disk = Disk()
    return OffsetIndex(disk, f"{tmp_path}/index", 100), TimeIndex(disk, f"{tmp_path}/times", 100)


def test_an_entry_is_due_when_more_than_the_interval_came_since_the_last_one() -> None:
    rule = IndexRule(100)
    assert [rule.note(offset, 0, 50, 100) for offset in range(100, 109)] == [
        *(False, False, False, True),  # 150 bytes came before the fourth batch
        *(False, False, True),  # and 150 again from that one on
        *(False, False),
    ]


def test_an_entry_has_the_largest_timestamp_so_far(tmp_path: Path) -> None:
    offsets, times = indexes(tmp_path)
    rule = IndexRule(100)
    position = 0
    for offset, timestamp in ((100, 7), (101, 9), (102, 8), (103, 9)):
        if rule.note(offset, timestamp, 50, 0):
            rule.add_entry(offsets, times, offset, position)
        position += 50
    assert [offsets.entry(index) for index in range(offsets.entry_count)] == [
        (101, 50),
        (102, 100),
        (103, 150),
    ]
    assert [times.entry(index) for index in range(times.entry_count)] == [(9, 101)]


def test_the_end_adds_the_largest_timestamp_where_no_entry_has_it(tmp_path: Path) -> None:
    _, times = indexes(tmp_path)
    rule = IndexRule(100)
    rule.finish(times)
    assert times.entry_count == 0
    rule.note(100, 7, 50, 4096)
    rule.finish(times)
    rule.finish(times)
    assert [times.entry(index) for index in range(times.entry_count)] == [(7, 100)]


def fresh_indexes(directory: Path) -> tuple[OffsetIndex, TimeIndex]:
    return (
        OffsetIndex(Disk(), str(directory / "again.index"), 0),
        TimeIndex(Disk(), str(directory / "again.timeindex"), 0),
    )


def test_rebuilt_indexes_are_those_that_the_broker_wrote(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(index_interval_bytes=INDEX_INTERVAL_BYTES)
    for number in range(100):
        append(log, b"x" * 500, timestamp_ms=NOW_MS + number)
    log.roll()
    segment = log.segments.first
    offset_index, time_index = fresh_indexes(tmp_path)
    rebuild_indexes(0, segment.headers(), offset_index, time_index)
    assert offset_index.entry_count == segment.offset_index.entry_count > 5
    assert time_index.entry_count == segment.time_index.entry_count
    for offset in range(100):
        assert offset_index.lookup(offset) == segment.offset_index.lookup(offset)
    assert time_index.last_entry() == (NOW_MS + 99, 99)


def test_an_old_index_is_replaced(tmp_path: Path) -> None:
    offset_index, time_index = fresh_indexes(tmp_path)
    offset_index.append(5, 500)
    time_index.append(NOW_MS, 5)
    rebuild_indexes(0, [], offset_index, time_index)
    assert (offset_index.entry_count, time_index.entry_count) == (0, 0)
    assert time_index.last_entry()[0] == NO_TIMESTAMP
    assert {path.name for path in tmp_path.iterdir()} == {"again.index", "again.timeindex"}


@pytest.fixture
def both_indexes(tmp_path: Path) -> SegmentIndexes:
    """Three entries in memory: offsets 10, 20, 30 at positions of ten times as much."""
    pair = open_indexes(tmp_path)
    for offset in (10, 20, 30):
        pair.offset.append(offset, offset * 10)
        pair.time.append(1000 + offset, offset)
    return pair


def open_indexes(directory: Path) -> SegmentIndexes:
    return SegmentIndexes(Disk(), str(directory / "0.index"), str(directory / "0.timeindex"), 0)


def test_entries_are_in_memory_until_they_are_written(
    both_indexes: SegmentIndexes, tmp_path: Path
) -> None:
    assert both_indexes.unwritten_count == 3
    assert list(tmp_path.iterdir()) == []
    both_indexes.write()
    assert both_indexes.unwritten_count == 0
    reopened = open_indexes(tmp_path)
    assert reopened.offset.last_entry() == (30, 300)
    assert reopened.time.last_entry() == (1030, 30)


def test_a_release_says_whether_it_wrote(both_indexes: SegmentIndexes) -> None:
    assert both_indexes.release()
    assert not both_indexes.release()


def test_a_cut_takes_the_entries_of_both(both_indexes: SegmentIndexes) -> None:
    both_indexes.write()
    both_indexes.truncate_to(20)
    assert (
        both_indexes.offset.entry_count,
        both_indexes.time.entry_count,
    ) == (1, 1)
    both_indexes.clear()
    assert (
        both_indexes.offset.entry_count,
        both_indexes.time.entry_count,
    ) == (0, 0)


def test_indexes_can_be_right_if_both_files_exist_and_fit_the_log(
    both_indexes: SegmentIndexes, tmp_path: Path
) -> None:
    both_indexes.write()
    assert open_indexes(tmp_path).can_be_right(301)
    assert not open_indexes(tmp_path).can_be_right(300)
    (tmp_path / "0.timeindex").unlink()
    assert not open_indexes(tmp_path).can_be_right(301)


def test_the_room_is_that_of_the_index_that_is_full_first(
    both_indexes: SegmentIndexes,
) -> None:
    assert both_indexes.room(120) == 120 // 12 - 1 - 3


@pytest.fixture
def segment(new_log: NewLog) -> Segment:
    """Thirty batches, and two damaged indexes."""
    log = new_log(index_interval_bytes=300)
    for number in range(30):
        append(log, b"x" * 100, timestamp_ms=NOW_MS + number)
    flush(log)
    bare_segment = Segment(Disk(), log.directory, 0, created_ms=NOW_MS)
    for path in bare_segment.paths[1:]:
        Path(path).write_bytes(b"odd")
    return bare_segment


def cold_task(segment: Segment) -> ColdTask:
    disk = segment._disk
    disk.handles.get(segment.log_path)
    with disk.resident_only, pytest.raises(ColdError) as caught:
        segment.find_batch(20)
    return caught.value.task


def test_the_next_reader_finds_them(segment: Segment) -> None:
    task = cold_task(segment)
    task()
    assert Path(segment.paths[1]).read_bytes() == b"odd"  # the loop may be at them
    task.apply()
    assert segment.open_sound_indexes()
    assert segment.offset_index.entry_count == 1  # one for each 4 KiB
    assert segment.time_index.last_entry() == (NOW_MS + 29, 29)
    assert [path for path in Path(segment.directory).iterdir() if path.suffix == ".deleted"] == []


def test_a_damaged_index_that_is_open_gives_way_to_the_new_one(segment: Segment) -> None:
    """Its entries fit, so they are read: the file is open when the new one takes its name."""
    for path, entry_bytes in zip(segment.paths[1:], (8, 12), strict=True):
        Path(path).write_bytes(b"\xee" * entry_bytes * 2)
    subjects = []
    segment._disk.handles.get(segment.log_path)
    for _ in range(8):  # of a Fetch, before it waits for the disk
        try:
            with segment._disk.resident_only:
                assert segment.offset_index.entry_count == 1
        except ColdError as cold:
            subjects.append(str(cold))
            cold.task()
            cold.task.apply()
    assert len([subject for subject in subjects if "the indexes of" in subject]) == 1
    assert segment.time_index.last_entry() == (NOW_MS + 29, 29)


def test_loaded_indexes_are_dropped_if_others_were_opened_meanwhile(segment: Segment) -> None:
    task = cold_task(segment)
    task()
    own_indexes = segment.indexes
    content = Path(segment.paths[1]).read_bytes()
    Path(segment.paths[1] + ".deleted").write_bytes(b"older")
    task.apply()
    assert segment.indexes is own_indexes
    assert Path(segment.paths[1]).read_bytes() == content


def test_loaded_indexes_are_dropped_if_the_segment_left_service(segment: Segment) -> None:
    task = cold_task(segment)
    task()
    marked = segment.mark_deleted()
    task.apply()
    assert not any(Path(path).exists() for path in segment.paths)
    assert all(Path(path).exists() for path in marked)


def test_a_damaged_log_is_walked_once_for_its_indexes(
    segment: Segment, caplog: pytest.LogCaptureFixture
) -> None:
    """Each Fetch would have a worker walk through all of it, and write two lines."""
    task = cold_task(segment)
    content = Path(segment.log_path).read_bytes()
    middle = len(content) // 30 * 15
    Path(segment.log_path).write_bytes(content[:middle] + b"\xff" * 40 + content[middle + 40 :])
    task()
    task.apply()
    assert [line.rpartition(" are ")[2] for line in caplog.messages] == [
        "missing or damaged and made again"
    ]
    for _ in range(3):
        with segment._disk.resident_only, pytest.raises(CorruptionError):
            segment.find_batch(20)
    assert len(caplog.messages) == 1


def test_a_log_that_cannot_be_read_is_left_to_its_reader(segment: Segment) -> None:
    task = cold_task(segment)
    Path(segment.log_path).write_bytes(b"\xff" * segment.size_bytes)
    task()
    task.apply()
    assert Path(segment.paths[1]).read_bytes() == b"odd"
