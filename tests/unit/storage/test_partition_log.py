"""PartitionLog: append, read, roll, failed writes, truncation, lookups."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, StorageError
from minibroker.records.batch import read_header
from tests.support.faulty_files import FaultyFiles
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    abandon,
    append,
    batch,
    config,
    open_manager,
    records_of,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]

ONE = batch(b"x" * 100)
SIZE = len(ONE)


def bases(log: PartitionLog) -> list[int]:
    return log.segments.base_offsets


# --- append -------------------------------------------------------------------------------------


def test_offsets_are_dense_and_bytes_are_the_request_s_with_offset_and_epoch(
    new_log: NewLog,
) -> None:
    log = new_log()
    first = log.append(batch(b"a", b"b"), 7, NOW_MS)
    second = log.append(batch(b"c"), 7, NOW_MS)
    assert (first.first_offset, first.last_offset, first.duplicate) == (0, 1, False)
    assert (second.first_offset, second.last_offset, second.append_time_ms) == (2, 2, -1)
    log.write_staged()
    assert values_of(log) == [b"a", b"b", b"c"]
    assert (
        read_header(log.read(2, 10**6, end_offset=3, min_one_batch=True).records).leader_epoch == 7
    )


def test_staged_batches_are_not_visible_and_not_in_the_file_until_written(new_log: NewLog) -> None:
    log = new_log()
    log.append(batch(b"a"), 0, NOW_MS)
    assert (log.log_end_offset, log.size_bytes) == (0, 0)
    assert os.path.getsize(log.active_segment.log_path) == 0  # noqa: PTH202
    log.write_staged()
    assert (log.log_end_offset, log.size_bytes) == (1, len(batch(b"a")))
    assert os.path.getsize(log.active_segment.log_path) == log.size_bytes  # noqa: PTH202


def test_a_mebibyte_of_staged_bytes_is_written_at_once(new_log: NewLog) -> None:
    log = new_log()
    for _ in range(3):
        log.append(batch(b"x" * 400_000), 0, NOW_MS)
    assert log.log_end_offset == 3


def test_more_buffers_than_one_call_takes_are_all_written(new_log: NewLog) -> None:
    log = new_log()
    for number in range(2500):
        log.append(batch(b"%d" % number), 0, NOW_MS)
    log.write_staged()
    assert values_of(log) == [b"%d" % number for number in range(2500)]


def test_log_append_time_is_answered_and_stored(new_log: NewLog) -> None:
    log = new_log(message_timestamp_type="LogAppendTime")
    info = log.append(batch(b"a", timestamp_ms=5), 0, NOW_MS + 9)
    assert info.append_time_ms == NOW_MS + 9
    log.write_staged()
    assert records_of(log)[0].timestamp == NOW_MS + 9


def test_a_repeated_batch_is_answered_with_its_first_offset(new_log: NewLog) -> None:
    log = new_log()
    for sequence in range(4):
        append(log, b"v", producer_id=9, producer_epoch=0, sequence=sequence)
    again = log.append(batch(b"v", producer_id=9, producer_epoch=0, sequence=1), 0, NOW_MS)
    assert (again.first_offset, again.last_offset, again.duplicate) == (1, 1, True)
    log.write_staged()
    assert log.log_end_offset == 4


def test_a_refused_batch_leaves_no_trace(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"v", producer_id=9, producer_epoch=0, sequence=0)
    with pytest.raises(KafkaError) as caught:
        log.append(batch(b"w", producer_id=9, producer_epoch=0, sequence=5), 0, NOW_MS)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, b"x", producer_id=9, producer_epoch=0, sequence=1) == 1


def test_the_first_batch_of_an_epoch_is_noted_in_the_checkpoint(
    new_log: NewLog, tmp_path: Path
) -> None:
    log = new_log()
    append(log, b"a", b"b", leader_epoch=0)
    append(log, b"c", leader_epoch=3)
    append(log, b"d", leader_epoch=3)
    assert (tmp_path / "t/t-0/leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 2\n"
    assert log.end_offset_for_epoch(0) == (0, 2)
    assert log.end_offset_for_epoch(2) == (0, 2)
    assert log.end_offset_for_epoch(3) == (3, 4)


# --- a write that fails -------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["no room", "short, then no room"])
def test_a_failed_write_is_taken_back_and_a_later_one_succeeds(tmp_path: Path, fault: str) -> None:
    """The disk is full in the middle of three staged batches: nothing of them is there, and the
    same producer sends them again.
    """
    (tmp_path / "d").mkdir()
    files = FaultyFiles(str(tmp_path / "d"))
    manager = open_manager(str(tmp_path / "d"), files=files)
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append(log, b"0", producer_id=4, producer_epoch=0, sequence=0)
    size = log.size_bytes
    for sequence in (1, 2, 3):
        fields = {"producer_id": 4, "producer_epoch": 0, "sequence": sequence}
        log.append(batch(b"%d" % sequence, **fields), 0, NOW_MS)  # type: ignore[arg-type]
    files.fail_errno = errno.ENOSPC
    if fault == "no room":
        files.fail_at = files.call_count + 1
    else:
        files.short_at = files.call_count + 1
        files.fail_at = files.call_count + 2
    with pytest.raises(StorageError, match="No space left"):
        log.write_staged()
    assert (log.log_end_offset, log.size_bytes) == (1, size)
    assert os.path.getsize(log.active_segment.log_path) == size  # noqa: PTH202
    assert values_of(log) == [b"0"]
    for sequence in (1, 2, 3):
        assert (
            append(log, b"%d" % sequence, producer_id=4, producer_epoch=0, sequence=sequence)
            == sequence
        )
    assert values_of(log) == [b"0", b"1", b"2", b"3"]
    abandon(manager)
    files.forget_pins()


def test_an_index_that_cannot_be_written_does_not_fail_the_append(tmp_path: Path) -> None:
    """Index entries wait in memory while the disk refuses them; nothing is lost, roll included."""
    (tmp_path / "d").mkdir()
    files = FaultyFiles(str(tmp_path / "d"))
    settings = config(index_interval_bytes=0)
    manager = open_manager(str(tmp_path / "d"), files=files, topic=settings)
    log = manager.create_log("t", 0, TOPIC_ID, settings)
    index = log.active_segment.offset_index
    while log.active_segment.unwritten_entry_count < 511:
        append(log, b"v")
    files.fail_at = files.call_count + 2  # the call after the data's
    append(log, b"v")
    assert log.active_segment.unwritten_entry_count == 512
    append(log, b"v")
    assert log.active_segment.unwritten_entry_count == 0
    assert index.entry_count == log.log_end_offset - 1
    abandon(manager)
    files.forget_pins()


# --- roll ---------------------------------------------------------------------------------------


def test_F2_a_segment_is_rolled_when_the_next_batch_would_pass_segment_bytes(
    new_log: NewLog,
) -> None:
    log = new_log(segment_bytes=3 * SIZE)
    for _ in range(7):
        append(log, b"x" * 100)
    assert bases(log) == [0, 3, 6]
    assert [segment.size_bytes for segment in log.segments] == [3 * SIZE, 3 * SIZE, SIZE]


def test_F2_staged_batches_count_as_part_of_the_segment(new_log: NewLog) -> None:
    log = new_log(segment_bytes=3 * SIZE)
    for _ in range(7):
        log.append(batch(b"x" * 100), 0, NOW_MS)
    log.write_staged()
    assert bases(log) == [0, 3, 6]


def test_F2_a_segment_is_rolled_by_the_age_of_its_first_batch(new_log: NewLog) -> None:
    """Record time decides, as in Kafka: later than the first batch's by more than segment.ms."""
    log = new_log(segment_ms=1000)
    for age_ms in (0, 500, 1000, 1001, 1500, 2001, 2002):
        append(log, b"v", timestamp_ms=NOW_MS + age_ms)
    assert bases(log) == [0, 3, 6]


def test_F2_records_without_a_time_age_by_the_broker_s_clock(
    new_log: NewLog, clock: ManualClock
) -> None:
    log = new_log(segment_ms=1000)
    for _ in range(3):
        log.append(batch(b"v", timestamp_ms=-1), 0, clock.now)
        log.write_staged()
    clock.now += 1001
    log.append(batch(b"v", timestamp_ms=-1), 0, clock.now)
    log.write_staged()
    assert bases(log) == [0, 3]


def test_F2_a_full_index_rolls_the_segment(new_log: NewLog) -> None:
    """Eight offset entries fit in 64 bytes, but the time index is full with four (12 bytes each,
    one place kept for the roll), so the batch behind the fourth entry begins a new segment.
    """
    log = new_log(segment_index_bytes=64, index_interval_bytes=0)
    for number in range(12):
        log.append(batch(b"x" * 50, timestamp_ms=NOW_MS + number), 0, NOW_MS)
    log.write_staged()
    assert bases(log) == [0, 5, 10]
    assert log.segments.first.time_index.entry_count <= 5


def test_F2_an_offset_beyond_32_bits_rolls_the_segment(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a")
    log._next_offset = 2**31 + 5  # what a compacted log or a replica may look like
    log.append(batch(b"b"), 0, NOW_MS)
    log.write_staged()
    assert bases(log) == [0, 2**31 + 5]


def test_a_roll_finishes_the_indexes_and_writes_a_snapshot(new_log: NewLog, tmp_path: Path) -> None:
    """T6: the segment's largest timestamp is in the time index even if it came last."""
    log = new_log(index_interval_bytes=SIZE)
    for number in range(6):
        append(log, b"x" * 100, timestamp_ms=NOW_MS + number)
    log.roll()
    directory = tmp_path / "t" / "t-0"
    index = (directory / "00000000000000000000.timeindex").read_bytes()
    assert len(index) % 12 == 0
    assert int.from_bytes(index[-12:-4], "big") == NOW_MS + 5
    assert int.from_bytes(index[-4:], "big") == 5
    assert (directory / "00000000000000000006.snapshot").exists()
    assert log.recovery_point == 6


def test_rolling_an_empty_segment_changes_nothing(new_log: NewLog) -> None:
    log = new_log()
    assert log.roll() is log.active_segment
    assert bases(log) == [0]


# --- read ---------------------------------------------------------------------------------------


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
        read = log.read(1, max_bytes, end_offset=5, min_one_batch=min_one_batch)
        return len(read.records), read.is_first_batch_cut

    assert size(2 * SIZE + 7, min_one_batch=False) == (2 * SIZE + 7, False)
    assert size(10, min_one_batch=True) == (SIZE, False)
    assert size(10, min_one_batch=False) == (10, True)
    assert size(10**6, min_one_batch=True) == (4 * SIZE, False)


def test_a_read_never_reaches_the_end_offset(new_log: NewLog) -> None:
    log = new_log(segment_bytes=3 * SIZE)
    for _ in range(8):
        append(log, b"x" * 100)
    read = log.read(4, 10**6, end_offset=5, min_one_batch=True)
    assert len(read.records) == SIZE
    assert len(log.read(4, 10**6, end_offset=6, min_one_batch=True).records) == 2 * SIZE
    assert len(log.read(5, 10**6, end_offset=5, min_one_batch=True).records) == 0
    assert len(log.read(8, 10**6, end_offset=8, min_one_batch=True).records) == 0


@pytest.mark.parametrize("offset", [-1, 3, 1000])
def test_an_offset_outside_the_log_is_out_of_range(new_log: NewLog, offset: int) -> None:
    log = new_log()
    append(log, b"a", b"b")
    with pytest.raises(KafkaError) as caught:
        log.read(offset, 100, end_offset=2, min_one_batch=True)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_large_read_is_a_map_that_outlives_its_window(new_log: NewLog) -> None:
    """Slices stay valid while others push their windows out, and more is mapped than may be."""
    log = new_log()
    value = bytes(range(256)) * 400
    for _ in range(60):
        append(log, value)
    log._disk.windows.limit_bytes = 1 << 20
    reads = [log.read(n, 300_000, end_offset=60, min_one_batch=True).records for n in range(58)]
    for read in reads:
        assert bytes(read[-1000:]) != b""
        assert read_header(read).count == 1
    assert log._disk.windows.mapped_bytes <= 9 << 20
    del reads, read
    log._disk.windows.close_unused()
    assert log._disk.windows.unclosed_count == 0


def test_a_mapped_window_grows_with_the_active_segment(new_log: NewLog) -> None:
    log = new_log()
    for number in range(4):
        append(log, b"%d" % number * 100_000)
        read = log.read(0, 10**7, end_offset=number + 1, min_one_batch=True)
        assert len(read.records) == log.size_bytes


def test_a_slice_wider_than_a_window_is_whole(new_log: NewLog) -> None:
    log = new_log(max_message_bytes=20_000_000)
    append(log, b"a")
    append(log, b"b" * 10_000_000)
    read = log.read(1, 100, end_offset=2, min_one_batch=True)
    assert bytes(read.records[-1000:-1]) == b"b" * 999


# --- lookups ------------------------------------------------------------------------------------


def test_T7_a_lookup_by_time_finds_the_first_record_not_earlier(new_log: NewLog) -> None:
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
        found = log.offset_for_timestamp(target)
        assert (found and (found.timestamp, found.offset)) == (
            expected and (expected.timestamp, expected.offset)
        )
    biggest = max(times)
    found = log.max_timestamp_offset()
    assert found is not None
    assert (found.timestamp, found.offset) == (biggest, times.index(biggest))


def test_T7_no_record_is_late_enough(new_log: NewLog) -> None:
    log = new_log()
    assert log.offset_for_timestamp(0) is None or log.log_end_offset == 0
    append(log, b"v")
    assert log.offset_for_timestamp(NOW_MS + 1) is None


def test_T8_version_0_answers_from_segments(new_log: NewLog, clock: ManualClock) -> None:
    """Three segments last written at seconds 10, 20 and 30 of the epoch; the log's end counts as
    now.
    """
    log = new_log(segment_bytes=2 * SIZE)
    for _ in range(5):
        append(log, b"x" * 100)
    for segment, second in zip(log.segments, (10, 20, 30), strict=True):
        os.utime(segment.log_path, (second, second))
    clock.now = 40_000
    assert log.offsets_before(-1, 10) == [5, 4, 2, 0]
    assert log.offsets_before(-1, 2) == [5, 4]
    assert log.offsets_before(-2, 10) == [0]
    assert log.offsets_before(25_000, 10) == [2, 0]
    assert log.offsets_before(40_000, 1) == [5]
    assert log.offsets_before(9_999, 10) == []


def test_R6_size_is_the_sum_of_the_log_files(new_log: NewLog) -> None:
    log = new_log(segment_bytes=2 * SIZE)
    for _ in range(5):
        append(log, b"x" * 100)
    assert log.size_bytes == 5 * SIZE


# --- truncate, close ----------------------------------------------------------------------------


@pytest.mark.parametrize("offset", range(8))
def test_truncation_keeps_what_is_below(new_log: NewLog, offset: int) -> None:
    log = new_log(segment_bytes=3 * SIZE, index_interval_bytes=0)
    for number in range(8):
        append(log, b"%d" % number * 100, leader_epoch=number // 4, timestamp_ms=NOW_MS + number)
    assert log.truncate_to(offset)
    assert values_of(log) == [b"%d" % number * 100 for number in range(offset)]
    assert log.end_offset_for_epoch(9) == (-1, -1)
    assert append(log, b"new", leader_epoch=5) == offset
    assert values_of(log)[-1] == b"new"
    assert log.active_segment.max_timestamp >= NOW_MS


def test_truncation_below_the_first_segment_begins_again(new_log: NewLog) -> None:
    log = new_log()
    log.truncate_fully(100)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert append(log, b"a") == 100
    assert log.truncate_to(50)
    assert bases(log) == [50]
    assert append(log, b"b") == 50


def test_truncation_at_the_end_does_nothing(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a")
    assert not log.truncate_to(1)


def test_aborted_transactions_are_kept_per_segment(new_log: NewLog) -> None:
    """A marker ends an open transaction; the index names it to readers whose range it touches."""
    from minibroker.records.builder import build_batch  # noqa: PLC0415
    from minibroker.records.control import TransactionMarker, build_marker  # noqa: PLC0415
    from minibroker.records.record import Record  # noqa: PLC0415

    log = new_log()
    append(log, b"plain")
    data = build_batch(
        [Record(0, NOW_MS, None, b"t")],
        producer_id=7,
        producer_epoch=1,
        base_sequence=0,
        is_transactional=True,
    )
    log.append(memoryview(data), 0, NOW_MS)
    assert log.last_stable_offset == 1
    marker = build_marker(
        TransactionMarker(False, 3), producer_id=7, producer_epoch=1, timestamp_ms=NOW_MS
    )
    info = log.append(memoryview(marker), 0, NOW_MS, origin="coordinator")
    assert info.first_offset == 2
    log.producer_state.on_high_watermark(3)
    assert log.last_stable_offset == 3
    found = log.aborted_transactions(0, 3)
    assert [(one.producer_id, one.first_offset, one.last_offset) for one in found] == [(7, 1, 2)]
    assert log.aborted_transactions(0, 1) == []
