"""A log: append as leader and as follower, failed writes, roll, truncation."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.storage import log_reads
from minibroker.broker.storage.closing import close_logs
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.partition_log import clamped
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError
from minibroker.kafka.records.batch import assign, read_header
from tests.support.faulty_files import FaultyFiles
from tests.support.generated_logs import fetch, fill
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    NewLog,
    abandon,
    append,
    append_records,
    batch,
    config,
    flush,
    log_on_faulty_files,
    open_manager,
    records_of,
    values_of,
)

if TYPE_CHECKING:
    from minibroker.broker.storage.partition_log import AppendInfo, PartitionLog


OFFSETS = st.integers(-1, 40)


@given(start=OFFSETS, length=st.integers(0, 20), recovery=OFFSETS, watermark=OFFSETS, clean=OFFSETS)
def test_offsets_in_the_middle_are_between_start_and_end(
    start: int, length: int, recovery: int, watermark: int, clean: int
) -> None:
    extent = clamped(
        log_start_offset=start,
        recovery_point=recovery,
        high_watermark=watermark,
        log_end_offset=start + length,
        clean_offset=clean,
    )
    assert extent.log_start_offset == start
    assert extent.log_end_offset == start + length
    assert start <= extent.recovery_point <= start + length
    assert start <= extent.high_watermark <= start + length
    assert extent.clean_offset is not None
    assert extent.clean_offset <= start + length
    if start <= recovery <= start + length:
        assert extent.recovery_point == recovery


def test_a_log_that_was_never_compacted_has_no_clean_offset() -> None:
    extent = clamped(
        log_start_offset=0, recovery_point=0, high_watermark=0, log_end_offset=0, clean_offset=None
    )
    assert extent.clean_offset is None


def test_a_log_cannot_end_before_it_starts() -> None:
    with pytest.raises(ValueError, match="a log from 5 cannot end at 4"):
        clamped(
            log_start_offset=5,
            recovery_point=0,
            high_watermark=0,
            log_end_offset=4,
            clean_offset=None,
        )


ONE = batch(b"x" * 100)
SIZE = len(ONE)


def bases(log: PartitionLog) -> list[int]:
    return log.segments.base_offsets


def test_offsets_are_dense_and_bytes_are_the_request_s_with_offset_and_epoch(
    new_log: NewLog,
) -> None:
    log = new_log()
    first = append_records(log, batch(b"a", b"b"), 7, NOW_MS)
    second = append_records(log, batch(b"c"), 7, NOW_MS)
    assert (first.first_offset, first.last_offset, first.duplicate) == (0, 1, False)
    assert (second.first_offset, second.last_offset, second.append_time_ms) == (2, 2, -1)
    log.write_staged()
    assert values_of(log) == [b"a", b"b", b"c"]
    assert (
        read_header(
            log_reads.read(log, 2, 10**6, end_offset=3, min_one_batch=True).records
        ).leader_epoch
        == 7
    )


def test_staged_batches_are_not_visible_and_not_in_the_file_until_written(new_log: NewLog) -> None:
    log = new_log()
    append_records(log, batch(b"a"), 0, NOW_MS)
    assert (log.log_end_offset, log.size_bytes) == (0, 0)
    assert os.path.getsize(log.active_segment.log_path) == 0  # noqa: PTH202
    log.write_staged()
    assert (log.log_end_offset, log.size_bytes) == (1, len(batch(b"a")))
    assert os.path.getsize(log.active_segment.log_path) == log.size_bytes  # noqa: PTH202


def test_a_mebibyte_of_staged_bytes_is_written_at_once(new_log: NewLog) -> None:
    log = new_log()
    for _ in range(3):
        append_records(log, batch(b"x" * 400_000), 0, NOW_MS)
    assert log.log_end_offset == 3


def test_more_buffers_than_one_call_takes_are_all_written(new_log: NewLog) -> None:
    log = new_log()
    for number in range(2500):
        append_records(log, batch(b"%d" % number), 0, NOW_MS)
    log.write_staged()
    assert values_of(log) == [b"%d" % number for number in range(2500)]


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


@pytest.mark.parametrize("fault", ["no room", "short, then no room"])
def test_a_failed_write_is_taken_back_and_a_later_one_succeeds(tmp_path: Path, fault: str) -> None:
    """The disk is full in the middle of three staged batches: nothing of them is there, and the
    same producer sends them again.
    """
    files, manager, log = log_on_faulty_files(tmp_path / "d")
    append(log, b"0", producer_id=4, producer_epoch=0, sequence=0)
    size = log.size_bytes
    for sequence in (1, 2, 3):
        fields = {"producer_id": 4, "producer_epoch": 0, "sequence": sequence}
        append_records(log, batch(b"%d" % sequence, **fields), 0, NOW_MS)  # type: ignore[arg-type]
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


def test_an_index_that_cannot_be_read_fails_the_append_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without handles the last index entry cannot be read: no offset may be used twice for it."""
    (tmp_path / "d").mkdir()
    settings = config(index_interval_bytes=0)
    manager = open_manager(str(tmp_path / "d"), topic=settings)
    log = manager.create_log("t", 0, TOPIC_ID, settings)
    for _ in range(3):
        append(log, b"v")
    manager.close()
    manager = open_manager(str(tmp_path / "d"), topic=settings)
    log = manager.create_log("t", 0, TOPIC_ID, settings)

    def refuse(*_: object) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "pread", refuse)
        with pytest.raises(StorageError, match="Too many open files"):
            append_records(log, batch(b"lost"), 0, NOW_MS)
    log.write_staged()
    assert log.log_end_offset == 3
    assert [append(log, b"w"), append(log, b"x")] == [3, 4]
    assert values_of(log) == [b"v"] * 3 + [b"w", b"x"]
    abandon(manager)


def test_an_entry_says_whether_it_is_written(tmp_path: Path) -> None:
    """A repetition of a staged batch, too; one of a written batch is not."""
    files, manager, log = log_on_faulty_files(tmp_path / "d")

    def stage(sequence: int) -> AppendInfo:
        records = batch(b"v", producer_id=4, producer_epoch=0, sequence=sequence)
        return append_records(log, records, 0, NOW_MS)

    first_entry = stage(0)
    log.write_staged()
    entries = [stage(0), stage(1), stage(1)]
    assert [entry.duplicate for entry in entries] == [True, False, True]
    files.fail_at = files.call_count + 1
    with pytest.raises(StorageError):
        log.write_staged()
    assert [entry.is_written for entry in (first_entry, *entries)] == [True, True, False, False]
    again = [stage(1), stage(1)]
    assert not any(entry.is_written for entry in again)
    log.write_staged()
    assert [entry.is_written for entry in again] == [True, True]
    assert not entries[-1].is_written  # another append has its offset now
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


def test_a_segment_is_rolled_when_the_next_batch_would_pass_segment_bytes(
    new_log: NewLog,
) -> None:
    log = new_log(segment_bytes=3 * SIZE)
    for _ in range(7):
        append(log, b"x" * 100)
    assert bases(log) == [0, 3, 6]
    assert [segment.size_bytes for segment in log.segments] == [3 * SIZE, 3 * SIZE, SIZE]


def test_staged_batches_count_as_part_of_the_segment(new_log: NewLog) -> None:
    log = new_log(segment_bytes=3 * SIZE)
    for _ in range(7):
        append_records(log, batch(b"x" * 100), 0, NOW_MS)
    log.write_staged()
    assert bases(log) == [0, 3, 6]


def test_a_segment_is_rolled_by_the_age_of_its_first_batch(new_log: NewLog) -> None:
    """Record time decides, as in Kafka: later than the first batch's by more than segment.ms."""
    log = new_log(segment_ms=1000)
    for age_ms in (0, 500, 1000, 1001, 1500, 2001, 2002):
        append(log, b"v", timestamp_ms=NOW_MS + age_ms)
    assert bases(log) == [0, 3, 6]


def test_records_without_a_time_age_by_the_broker_s_clock(
    new_log: NewLog, clock: ManualClock
) -> None:
    log = new_log(segment_ms=1000)
    for _ in range(3):
        append_records(log, batch(b"v", timestamp_ms=-1), 0, clock.now)
        log.write_staged()
    clock.now += 1001
    append_records(log, batch(b"v", timestamp_ms=-1), 0, clock.now)
    log.write_staged()
    assert bases(log) == [0, 3]


def test_a_full_index_rolls_the_segment(new_log: NewLog) -> None:
    """Eight offset entries fit in 64 bytes, but the time index is full with four (12 bytes each,
    one place kept for the roll), so the batch behind the fourth entry begins a new segment.
    """
    log = new_log(segment_index_bytes=64, index_interval_bytes=0)
    for number in range(12):
        append_records(log, batch(b"x" * 50, timestamp_ms=NOW_MS + number), 0, NOW_MS)
    log.write_staged()
    assert bases(log) == [0, 5, 10]
    assert log.segments.first.time_index.entry_count <= 5


def test_an_offset_beyond_32_bits_rolls_the_segment(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a")
    log._tail.next_offset = 2**31 + 5  # what a compacted log or a replica may look like
    append_records(log, batch(b"b"), 0, NOW_MS)
    log.write_staged()
    assert bases(log) == [0, 2**31 + 5]


def test_a_roll_finishes_the_indexes_and_writes_a_snapshot(new_log: NewLog, tmp_path: Path) -> None:
    """The segment's largest timestamp is in the time index even if it came last."""
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


# preallocate


def _length(log: PartitionLog, base_offset: int = 0) -> int:
    return Path(log.directory, f"{base_offset:020d}.log").stat().st_size


def test_a_preallocated_segment_has_its_length_until_it_is_closed(tmp_path: Path) -> None:
    settings = config(preallocate="true", segment_bytes=5000)
    manager = open_manager(str(tmp_path), topic=settings)
    log = manager.create_log("t", 0, TOPIC_ID, settings)
    assert (_length(log), log.size_bytes) == (5000, 0)
    append(log, b"a")
    assert (_length(log), log.size_bytes) == (5000, len(batch(b"a")))
    assert values_of(log) == [b"a"]
    log.roll()
    assert (_length(log), _length(log, 1)) == (len(batch(b"a")), 5000)
    append(log, b"b")
    log.truncate_fully_and_start_at(7)
    assert _length(log, 7) == 5000
    manager.close()
    # The next start reads lengths from the files.
    assert _length(log, 7) == 0
    again = open_manager(str(tmp_path), topic=settings)
    log = again.logs["t", 0]  # type: ignore[index]
    assert append(log, b"c") == 7
    assert _length(log, 7) == len(batch(b"c"))  # as in Kafka: only new segments are preallocated
    again.close()


def test_recovery_knows_what_preallocation_leaves(tmp_path: Path) -> None:
    settings = config(preallocate="true", segment_bytes=5000)
    manager = open_manager(str(tmp_path), topic=settings)
    log = manager.create_log("t", 0, TOPIC_ID, settings)
    append(log, b"a")
    log.roll()
    append(log, b"b")
    manager.checkpoint_now()
    abandon(manager)
    # The power took the trimming of the first segment; its records were synced.
    with Path(log.segments.first.log_path).open("r+b") as file:
        file.truncate(5000)
    again = open_manager(str(tmp_path), topic=settings)
    log = again.logs["t", 0]  # type: ignore[index]
    assert values_of(log) == [b"a", b"b"]
    assert (_length(log), _length(log, 1)) == (len(batch(b"a")), len(batch(b"b")))
    again.close()


def test_a_roll_syncs_finished_indexes_of_records_that_were_synced_before(
    tmp_path: Path,
) -> None:
    files, manager, log = log_on_faulty_files(tmp_path)
    append(log, b"a")
    flush(log)
    log.roll()
    files.power_cut()
    assert (Path(log.directory) / f"{0:020d}.timeindex").stat().st_size == 12
    abandon(manager)
    files.forget_pins()


@pytest.mark.parametrize("offset", range(8))
def test_truncation_keeps_records_below(new_log: NewLog, offset: int) -> None:
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
    append(log, b"a", leader_epoch=3, producer_id=9, producer_epoch=0, sequence=0)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert log.epochs.history.entries == []
    assert log.producers.loaded().producers == {}
    assert append(log, b"a") == 100
    assert log.truncate_to(50)
    assert bases(log) == [50]
    assert append(log, b"b") == 50


def test_truncation_at_the_end_does_nothing(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a")
    assert not log.truncate_to(1)
    log.begin_leader_epoch(5)  # and another broker was elected before anything was appended
    assert not log.truncate_to(1)
    assert log.epochs.history.latest_epoch == 0


def test_truncation_forgets_the_offsets_of_the_end(new_log: NewLog) -> None:
    log = new_log()
    for sequence in range(4):
        append(log, b"v", producer_id=9, producer_epoch=0, sequence=sequence)
    flush(log)
    log.update_high_watermark(4)
    snapshot = log.durability.sync_task()
    append(log, b"w", producer_id=9, producer_epoch=0, sequence=4)
    rest = log.durability.flush_task()
    assert log.truncate_to(2)
    assert (log.recovery_point, log.high_watermark) == (2, 2)
    assert log.producers.loaded().producers[9].last_sequence == 1
    rest()
    rest.apply()
    assert snapshot is not None
    snapshot()
    assert snapshot.apply() is None
    assert log.recovery_point == 2
    assert list(Path(log.directory).glob("*.snapshot")) == []


def test_a_negative_offset_is_no_place_to_truncate_to(new_log: NewLog) -> None:
    with pytest.raises(ValueError, match="-1"):
        new_log().truncate_to(-1)


# --- high watermark -------------------------------------------------------------------------------


def test_a_leader_s_high_watermark_moves_forward_only(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a", b"b", b"c")
    assert log.high_watermark == 0
    assert log.advance_high_watermark(2)
    assert not log.advance_high_watermark(1)
    assert log.high_watermark == 2
    with pytest.raises(ValueError, match="beyond its end 3"):
        log.advance_high_watermark(4)


def test_a_follower_s_high_watermark_stays_in_the_log(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a", b"b", b"c")
    log.advance_log_start(1)
    assert log.high_watermark == 1
    assert [log.update_high_watermark(offset) for offset in (9, 2, 0)] == [3, 2, 1]


@pytest.mark.parametrize(("high_watermark", "expected"), [(2, 2), (9, 3)])
def test_a_start_restores_the_high_watermark(
    tmp_path: Path, high_watermark: int, expected: int
) -> None:
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append(log, b"a", b"b", b"c")
    manager.report_high_watermarks({log.name: high_watermark}.get)
    manager.close()
    manager = open_manager(str(tmp_path))
    assert manager.logs[log.name].high_watermark == expected
    abandon(manager)


# --- append as follower ---------------------------------------------------------------------------


def files_of(log: PartitionLog) -> dict[str, bytes]:
    """Name and content of every file of the log, but for the topic's id."""
    return {
        path.name: path.read_bytes()
        for path in Path(log.directory).iterdir()
        if path.name != "partition.metadata"
    }


@pytest.mark.parametrize("seed", range(8))
def test_a_follower_s_files_are_the_leader_s(new_log: NewLog, seed: int) -> None:
    """All of them: segments, indexes, transactions, epochs, snapshots."""
    chance = random.Random(seed)
    settings = {"index_interval_bytes": 100, "segment_bytes": chance.choice([900, 2500])}
    leader, follower = new_log("leader", **settings), new_log("follower", **settings)
    fill(leader, chance, magic=2)
    fetch(leader, follower, chance.choice([1, 300, 1000, 1 << 20]))
    assert values_of(follower) == values_of(leader)
    assert close_logs([leader, follower]) == {}
    assert files_of(follower) == files_of(leader)


def test_a_follower_keeps_messages_of_an_old_format(new_log: NewLog) -> None:
    settings = {"message_format_version": "0.10.2", "segment_bytes": 900}
    leader, follower = new_log("leader", **settings), new_log("follower", **settings)
    append(follower, b"of an epoch", leader_epoch=1)
    follower.truncate_to(0)
    fill(leader, random.Random(1), magic=1)
    fetch(leader, follower, 400)
    logs = [
        b"".join(part for name, part in sorted(files_of(log).items()) if name.endswith(".log"))
        for log in (leader, follower)
    ]
    assert logs[0] == logs[1] != b""
    assert follower.epochs.history.entries == []


def replicated(*sizes: int, first_offset: int = 0, leader_epoch: int = 0) -> memoryview:
    """Return batches as a leader stores them, of so many records each."""
    content = bytearray()
    for size in sizes:
        whole = batch(*[b"v"] * size)
        assign(whole, 0, first_offset, leader_epoch)
        content += whole
        first_offset += size
    return memoryview(content)


def test_a_follower_keeps_gaps_that_compaction_left(new_log: NewLog) -> None:
    log = new_log()
    log.append_as_follower(replicated(2), 0)
    appended = log.append_as_follower(replicated(1, 2, first_offset=7), 0)
    assert appended is not None
    assert (appended.first_offset, appended.last_offset) == (7, 9)
    assert log.log_end_offset == 10
    assert [record.offset for record in records_of(log)] == [0, 1, 7, 8, 9]


def test_a_follower_s_segment_begins_behind_a_gap_too_wide_for_an_index(new_log: NewLog) -> None:
    log = new_log()
    log.append_as_follower(replicated(2), 0)
    log.append_as_follower(replicated(1, first_offset=2**31 + 5), 0)
    assert bases(log) == [0, 2**31 + 5]
    assert [record.offset for record in records_of(log)] == [0, 1, 2**31 + 5]


def test_a_follower_notes_where_each_epoch_begins(new_log: NewLog) -> None:
    log = new_log()
    log.append_as_follower(replicated(2, leader_epoch=3), 4)
    log.append_as_follower(replicated(1, 1, first_offset=2, leader_epoch=4), 4)
    assert log.epochs.history.entries == [(3, 0), (4, 2)]
    assert log.end_offset_for_epoch(3) == (3, 2)


def test_a_batch_of_an_epoch_that_the_follower_does_not_know_is_left(new_log: NewLog) -> None:
    """KAFKA-18723: the leader may have changed since the fetch was sent."""
    log = new_log()
    content = bytes(replicated(1, leader_epoch=3)) + bytes(
        replicated(1, first_offset=1, leader_epoch=4)
    )
    assert log.append_as_follower(memoryview(content), 3) is not None
    assert log.log_end_offset == 1
    assert log.append_as_follower(memoryview(content)[len(content) // 2 :], 3) is None


def test_a_refused_append_of_a_follower_leaves_no_trace(new_log: NewLog) -> None:
    log = new_log()
    damaged = bytearray(replicated(1, 1))
    damaged[-1] ^= 1
    with pytest.raises(KafkaError) as caught:
        log.append_as_follower(memoryview(damaged), 0)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 0
    assert log.append_as_follower(replicated(1, 1), 0) is not None


def test_a_follower_s_failed_write_is_taken_back(tmp_path: Path) -> None:
    files, manager, log = log_on_faulty_files(tmp_path)
    log.append_as_follower(replicated(1), 0)
    files.fail_errno = errno.ENOSPC
    files.fail_at = files.call_count + 1
    with pytest.raises(StorageError):
        log.append_as_follower(replicated(1, first_offset=1), 0)
    assert log.log_end_offset == 1
    log.append_as_follower(replicated(1, first_offset=1), 0)
    assert [record.offset for record in records_of(log)] == [0, 1]
    abandon(manager)
    files.forget_pins()
