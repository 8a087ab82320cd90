"""Reads of a log: bytes by offset, offsets by time and by segment."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import log_reads
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.indexes import OffsetIndex
from minibroker.broker.storage.log_reads import SurveyTask
from minibroker.broker.storage.segment import Segment
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError, StorageError
from minibroker.kafka.records.batch import read_header
from tests.support.evidence import MARKED
from tests.support.faulty_files import FaultyFiles
from tests.support.logs import (
    DEFAULTS,
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    NewLog,
    abandon,
    append,
    append_records,
    batch,
    flush,
    open_manager,
    records_of,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.partition_log import PartitionLog


def test_segments_are_told_up_to_the_first_that_reaches_the_time(new_log: NewLog) -> None:
    log = new_log()
    for number in range(3):
        append(log, b"v", timestamp_ms=NOW_MS + number)
        log.roll()
    disk = Disk()
    segments = [
        Segment(disk, log.directory, base_offset, created_ms=0)
        for base_offset in log.segments.base_offsets[:3]
    ]
    task = SurveyTask(REAL_FILES, segments, NOW_MS + 1)
    task()
    assert not any(segment.has_size for segment in segments)
    task.apply()
    assert all(segment.has_size for segment in segments)
    assert [segment.is_surveyed for segment in segments] == [True, True, False]
    assert [segment.max_timestamp for segment in segments[:2]] == [NOW_MS, NOW_MS + 1]


ONE = batch(b"x" * 100)
SIZE = len(ONE)


def bases(log: PartitionLog) -> list[int]:
    return log.segments.base_offsets


def test_every_offset_is_found_in_every_segment(new_log: NewLog) -> None:
    log = new_log(segment_bytes=2000, index_interval_bytes=300)
    expected = []
    for number in range(60):
        values = [b"%d-%d" % (number, part) for part in range(number % 3 + 1)]
        append(log, *values)
        expected += values
    for start in range(len(expected)):
        assert values_of(log, start) == expected[start:]


def test_a_read_is_cut_at_max_bytes_but_for_the_first_batch(new_log: NewLog) -> None:
    log = new_log()
    for _ in range(5):
        append(log, b"x" * 100)

    def size(max_bytes: int, *, min_one_batch: bool) -> tuple[int, bool]:
        fetched = log_reads.read(log, 1, max_bytes, end_offset=5, min_one_batch=min_one_batch)
        return len(fetched.records), fetched.is_first_batch_cut

    assert size(2 * SIZE + 7, min_one_batch=False) == (2 * SIZE + 7, False)
    assert size(10, min_one_batch=True) == (SIZE, False)
    assert size(10, min_one_batch=False) == (10, True)
    assert size(10**6, min_one_batch=True) == (4 * SIZE, False)


@pytest.mark.parametrize("max_bytes", [100, 1 << 20])
def test_a_batch_that_is_cut_in_a_closed_segment_is_an_error_not_a_part_for_ever(
    new_log: NewLog, max_bytes: int
) -> None:
    log = new_log()
    append(log, b"a" * 100)
    append(log, b"b" * 100_000)
    first = log.active_segment
    log.roll()
    append(log, b"c")
    flush(log)
    os.truncate(first.log_path, first.size_bytes - 1)
    log.segments.add(Segment(log.disk, log.directory, 0, created_ms=NOW_MS))
    with pytest.raises(StorageError, match="ends inside the batch at") as caught:
        log_reads.read(log, 1, max_bytes, end_offset=3, min_one_batch=True)
    assert isinstance(caught.value.__cause__, CorruptionError)
    assert not caught.value.is_lasting


def test_a_read_never_reaches_the_end_offset(new_log: NewLog) -> None:
    log = new_log(segment_bytes=3 * SIZE)
    for _ in range(8):
        append(log, b"x" * 100)
    fetched = log_reads.read(log, 4, 10**6, end_offset=5, min_one_batch=True)
    assert len(fetched.records) == SIZE
    assert len(log_reads.read(log, 4, 10**6, end_offset=6, min_one_batch=True).records) == 2 * SIZE
    assert len(log_reads.read(log, 5, 10**6, end_offset=5, min_one_batch=True).records) == 0
    assert len(log_reads.read(log, 8, 10**6, end_offset=8, min_one_batch=True).records) == 0


@pytest.mark.parametrize("offset", [-1, 3, 1000])
def test_an_offset_outside_the_log_is_out_of_range(new_log: NewLog, offset: int) -> None:
    log = new_log()
    append(log, b"a", b"b")
    with pytest.raises(KafkaError) as caught:
        log_reads.read(log, offset, 100, end_offset=2, min_one_batch=True)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_large_read_is_a_map_that_outlives_its_window(new_log: NewLog) -> None:
    """Slices stay valid while others push their windows out, and more is mapped than may be."""
    log = new_log()
    value = bytes(range(256)) * 400
    for _ in range(60):
        append(log, value)
    log.disk.windows.limit_bytes = 1 << 20
    reads = [
        log_reads.read(log, n, 300_000, end_offset=60, min_one_batch=True).records
        for n in range(58)
    ]
    for fetched in reads:
        assert bytes(fetched[-1000:]) != b""
        assert read_header(fetched).count == 1
    assert log.disk.windows.mapped_bytes <= 9 << 20
    del reads, fetched
    log.disk.windows.close_unused()
    assert log.disk.windows.unclosed_count == 0


def test_a_mapped_window_grows_with_the_active_segment(new_log: NewLog) -> None:
    log = new_log()
    for number in range(4):
        append(log, b"%d" % number * 100_000)
        fetched = log_reads.read(log, 0, 10**7, end_offset=number + 1, min_one_batch=True)
        assert len(fetched.records) == log.size_bytes


def test_a_slice_wider_than_a_window_is_whole(new_log: NewLog) -> None:
    log = new_log(max_message_bytes=20_000_000)
    append(log, b"a")
    append(log, b"b" * 10_000_000)
    fetched = log_reads.read(log, 1, 100, end_offset=2, min_one_batch=True)
    assert bytes(fetched.records[-1000:-1]) == b"b" * 999


def test_aborted_transactions_are_kept_per_segment(new_log: NewLog) -> None:
    """A marker ends an open transaction; the index names it to readers whose range it touches."""
    from minibroker.kafka.records.builder import build_batch  # noqa: PLC0415
    from minibroker.kafka.records.control import TransactionMarker, build_marker  # noqa: PLC0415
    from minibroker.kafka.records.record import Record  # noqa: PLC0415

    log = new_log()
    append(log, b"plain")
    data = build_batch(
        [Record(0, NOW_MS, None, b"t")],
        producer_id=7,
        producer_epoch=1,
        base_sequence=0,
        is_transactional=True,
    )
    append_records(log, memoryview(data), 0, NOW_MS)
    assert log.last_stable_offset == 1
    marker = build_marker(
        TransactionMarker(False, 3), producer_id=7, producer_epoch=1, timestamp_ms=NOW_MS
    )
    info = append_records(log, memoryview(marker), 0, NOW_MS, origin="coordinator")
    assert info.first_offset == 2
    log.producers.loaded().on_high_watermark(3)
    assert log.last_stable_offset == 3
    aborted = log_reads.aborted_transactions(log, 0, 3)
    assert [
        (transaction.producer_id, transaction.first_offset, transaction.last_offset)
        for transaction in aborted
    ] == [(7, 1, 2)]
    assert log_reads.aborted_transactions(log, 0, 1) == []


def test_a_topic_id_that_cannot_be_written_is_the_disks_failure(tmp_path: Path) -> None:
    """The caller of the worker's tasks gets the error, unless the topic was deleted meanwhile."""
    (tmp_path / "d").mkdir()
    files = FaultyFiles(str(tmp_path / "d"))
    tasks: list[Callable[[], None]] = []
    manager = open_manager(str(tmp_path / "d"), files=files, run_later=tasks.append)
    manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    (write,) = tasks
    files.fail_at, files.fail_errno = files.call_count + 1, errno.EIO
    with pytest.raises(StorageError, match=r"write partition\.metadata of t-0") as caught:
        write()
    assert caught.value.is_lasting
    manager.delete("t", 0, MARKED)
    write()
    abandon(manager)
    files.forget_pins()


@pytest.mark.pure("replaces OffsetIndex.lookup_above")
def test_an_index_that_cannot_be_read_is_an_error_of_the_storage(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log()
    append(log, b"a")
    fetched = log_reads.read(log, 0, 100, end_offset=1, min_one_batch=True)

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "gone")

    monkeypatch.setattr(OffsetIndex, "lookup_above", failing)
    with pytest.raises(StorageError, match="cannot read the index of t-0"):
        log_reads.aborted_in(log, 0, fetched)


def test_a_lookup_by_time_finds_the_first_record_not_earlier(new_log: NewLog) -> None:
    """Out-of-order timestamps, compressed or not, over segments: compared with a plain search."""
    log = new_log(segment_bytes=700, index_interval_bytes=150)
    times = [NOW_MS + 37 * (number * 29 % 50) for number in range(60)]
    for start in range(0, 60, 3):
        codec = ("none", "gzip", "lz4")[start // 3 % 3]
        append(log, b"v" * 40, b"w" * 40, b"x", timestamps=times[start : start + 3], codec=codec)
    records = records_of(log)
    assert len(log.segments) > 3
    for target in [NOW_MS - 1, NOW_MS, *times, *(time + 1 for time in times)]:
        expected = next((r for r in records if r.timestamp >= target), None)
        match = log_reads.offset_for_timestamp(log, target)
        assert (match and (match.timestamp, match.offset)) == (
            expected and (expected.timestamp, expected.offset)
        )
    biggest = max(times)
    match = log_reads.max_timestamp_offset(log)
    assert match is not None
    assert (match.timestamp, match.offset) == (biggest, times.index(biggest))


def test_no_record_is_late_enough(new_log: NewLog) -> None:
    log = new_log()
    assert log_reads.offset_for_timestamp(log, 0) is None or log.log_end_offset == 0
    append(log, b"v")
    assert log_reads.offset_for_timestamp(log, NOW_MS + 1) is None


def test_version_0_answers_from_segments(new_log: NewLog, clock: ManualClock) -> None:
    """Three segments last written at seconds 10, 20 and 30 of the epoch; the log's end counts as
    now.
    """
    log = new_log(segment_bytes=2 * SIZE)
    for _ in range(5):
        append(log, b"x" * 100)
    for segment, second in zip(log.segments, (10, 20, 30), strict=True):
        os.utime(segment.log_path, (second, second))
    clock.now = 40_000
    assert log_reads.offsets_before(log, -1, 10) == [5, 4, 2, 0]
    assert log_reads.offsets_before(log, -1, 2) == [5, 4]
    assert log_reads.offsets_before(log, -2, 10) == [0]
    assert log_reads.offsets_before(log, 25_000, 10) == [2, 0]
    assert log_reads.offsets_before(log, 40_000, 1) == [5]
    assert log_reads.offsets_before(log, 9_999, 10) == []


def test_size_is_the_sum_of_the_log_files(new_log: NewLog) -> None:
    log = new_log(segment_bytes=2 * SIZE)
    for _ in range(5):
        append(log, b"x" * 100)
    assert log.size_bytes == 5 * SIZE


def test_the_first_record_with_the_largest_time_is_found(new_log: NewLog) -> None:
    """Also of a batch with LogAppendTime, and where no record has a time at all."""
    assert log_reads.max_timestamp_offset(new_log("empty")) is None
    timeless = new_log("timeless")
    for _ in range(3):
        append(timeless, b"a", b"b", timestamp_ms=-1)
    assert log_reads.max_timestamp_offset(timeless) == (-1, 0, 0)
    append(timeless, b"c", timestamp_ms=5)
    assert log_reads.max_timestamp_offset(timeless) == (5, 6, 0)
    stamped = new_log("stamped", message_timestamp_type="LogAppendTime")
    append(stamped, b"a", b"b", b"c", codec="gzip")
    assert log_reads.max_timestamp_offset(stamped) == (NOW_MS, 0, 0)


@pytest.mark.parametrize("value_bytes", [100, 2_000, 7_000, 15_000, 50_000])
def test_a_large_read_begins_with_the_batch_of_its_offset(
    new_log: NewLog, value_bytes: int
) -> None:
    """Small batches lie behind the entry of the index, large ones behind what is searched."""
    log = new_log(segment_bytes=2_000_000)
    for number in range(40):
        append(log, *[b"%d" % number * (value_bytes // 2)] * 3)
    for offset in range(0, 120, 7):
        fetched = log_reads.read(log, offset, 70_000, end_offset=120, min_one_batch=True)
        header = read_header(fetched.records)
        assert header.base_offset == offset // 3 * 3
        assert (
            fetched.records
            == segment_bytes(log, offset)[fetched.position :][: len(fetched.records)]
        )
        assert len(fetched.records) >= 70_000 or offset + 70_000 // value_bytes > 110


def segment_bytes(log: PartitionLog, offset: int) -> bytes:
    """Return the whole `.log` that has an offset."""
    segment = log.segments.floor(offset)
    assert segment is not None
    return Path(segment.log_path).read_bytes()
