"""From a directory to a log: clean stops, kills, torn tails, damaged files, leftovers."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import log_reads, retention
from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.log_directory import LogDirectory
from minibroker.kafka.errors import HalfChangedError, StorageError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from tests.support.check import broken_things
from tests.support.compaction import end_transaction
from tests.support.faulty_files import FaultyFiles, keep_everything, keep_nothing
from tests.support.logs import (
    DEFAULTS,
    NOW_MS,
    TOPIC_ID,
    abandon,
    append,
    append_records,
    batch,
    config,
    flush,
    log_on_faulty_files,
    open_manager,
    sync,
    values_of,
    wait_for_a_later_time,
)
from tests.support.watched_files import CountingFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.broker.config.topic import TopicConfig
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import PartitionLog
    from minibroker.broker.storage.txn_index import AbortedTransaction


SETTINGS = config(segment_bytes=400)
INDEX = "00000000000000000000.txnindex"


LARGE = config()


def start(path: Path) -> tuple[LogManager, PartitionLog]:
    manager = open_manager(str(path), topic=SETTINGS)
    return manager, manager.create_log("t", 0, TOPIC_ID, SETTINGS)


def start_large(path: Path, files: Files = REAL_FILES) -> tuple[LogManager, PartitionLog]:
    """With one segment that takes everything."""
    manager = open_manager(str(path), topic=LARGE, files=files)
    return manager, manager.create_log("t", 0, TOPIC_ID, LARGE)


def begin(log: PartitionLog, producer_id: int, *, sequence: int = 0) -> int:
    """Append one record of a transaction that stays open; return its offset."""
    records = build_batch(
        [Record(0, NOW_MS, b"k", b"v")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
    return append_records(log, memoryview(records), 0, NOW_MS).first_offset


def transact(log: PartitionLog, producer_id: int, *, is_commit: bool, sequence: int = 0) -> int:
    """One record and its marker; the record's offset."""
    first = begin(log, producer_id, sequence=sequence)
    end_transaction(log, producer_id, is_commit=is_commit)
    return first


def test_an_entry_that_was_lost_is_written_again(tmp_path: Path) -> None:
    manager, log = start(tmp_path)
    transact(log, 1, is_commit=True)
    first = transact(log, 2, is_commit=False)
    abandon(manager)
    index = tmp_path / "t-0" / INDEX
    content = index.read_bytes()
    for remains in (None, b"", content[:20], content + content):
        index.unlink() if remains is None else index.write_bytes(remains)
        manager, log = start(tmp_path)
        (transaction,) = log_reads.aborted_transactions(log, 0, 100)
        assert (transaction.producer_id, transaction.first_offset, transaction.last_offset) == (
            2,
            first,
            first + 1,
        )
        assert index.read_bytes() == content
        abandon(manager)
    assert broken_things(tmp_path) == []


def test_a_truncated_batch_that_is_back_has_its_own_epoch(tmp_path: Path) -> None:
    """A follower cut its log to 2, and took a record of epoch 6, whose epoch alone was synced."""
    manager, log = start(tmp_path)
    for _ in range(3):
        records = build_batch([Record(0, NOW_MS, b"k", b"v")])
        append_records(log, memoryview(records), 5, NOW_MS)
    log.write_staged()
    abandon(manager)
    checkpoint = tmp_path / "t-0" / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n2\n5 0\n6 2\n")
    manager, log = start(tmp_path)
    assert log.epochs.history.entries == [(5, 0)]
    assert log.end_offset_for_epoch(6) == (-1, -1)
    abandon(manager)
    assert broken_things(tmp_path) == []


@pytest.mark.parametrize("fault", ["no room", "short, then no room"])
def test_an_abort_without_its_index_entry_takes_the_directory_offline(
    tmp_path: Path, fault: str
) -> None:
    """The marker is in the log, so nobody may read on: the data would count as committed. A start
    makes the index again."""
    files, manager, log = log_on_faulty_files(tmp_path / "d")
    append(log, b"plain")
    begin(log, 2)
    log.write_staged()
    files.fail_errno = errno.ENOSPC
    files.fail_at = files.call_count + (3 if fault == "no room" else 4)
    if fault != "no room":
        files.short_at = files.call_count + 3
    with pytest.raises(HalfChangedError, match="transaction index") as raised:
        end_transaction(log, 2, is_commit=False)
    assert raised.value.is_lasting
    assert raised.value.log_directory == str(tmp_path / "d")
    assert log.log_end_offset == 3
    abandon(manager)
    files.forget_pins()
    manager = open_manager(str(tmp_path / "d"))
    log = manager.create_log("t", 0, TOPIC_ID, config())
    (transaction,) = log_reads.aborted_transactions(log, 0, 100)
    assert (transaction.producer_id, transaction.first_offset, transaction.last_offset) == (2, 1, 2)
    abandon(manager)
    assert broken_things(tmp_path / "d") == []


def test_a_transaction_that_began_in_an_earlier_segment(tmp_path: Path) -> None:
    manager, log = start(tmp_path)
    records = build_batch(
        [Record(0, NOW_MS, b"k", bytes(200))],
        producer_id=5,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    append_records(log, memoryview(records), 0, NOW_MS)
    log.roll()
    flush(log)
    manager.checkpoint_now()
    end_transaction(log, 5, is_commit=False)
    abandon(manager)
    index = tmp_path / "t-0" / "00000000000000000001.txnindex"
    content = index.read_bytes()
    index.unlink()
    manager, log = start(tmp_path)
    assert index.read_bytes() == content
    assert [
        transaction.first_offset for transaction in log_reads.aborted_transactions(log, 0, 100)
    ] == [0]
    abandon(manager)


def test_an_entry_behind_the_end_of_the_log_goes(tmp_path: Path) -> None:
    manager, log = start(tmp_path)
    append_records(log, memoryview(build_batch([Record(0, NOW_MS, None, b"v")])), 0, NOW_MS)
    log.write_staged()
    size = log.size_bytes
    transact(log, 3, is_commit=False)
    abandon(manager)
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:size])
    manager, log = start(tmp_path)
    assert log.log_end_offset == 1
    assert log_reads.aborted_transactions(log, 0, 100) == []
    assert (tmp_path / "t-0" / INDEX).read_bytes() == b""
    abandon(manager)


def test_behind_a_sync_only_new_markers_are_looked_at(tmp_path: Path) -> None:
    """Entries below the recovery point stay; the transaction that was open there is known."""
    manager, log = start_large(tmp_path)
    transact(log, 1, is_commit=False)
    for _ in range(300):
        append(log, b"x" * 1_000)
    first = begin(log, 2)
    sync(manager, log)
    end_transaction(log, 2, is_commit=False)
    index = tmp_path / "t-0" / INDEX
    content = index.read_bytes()
    abandon(manager)
    for remains in (content, content[:34], content + b"torn"):
        index.write_bytes(remains)
        files = CountingFiles()
        manager, log = start_large(tmp_path, files)
        assert index.read_bytes() == content
        aborted = log_reads.aborted_transactions(log, 0, log.log_end_offset)
        assert [transaction.first_offset for transaction in aborted] == [0, first]
        assert files.read_bytes < 60_000
        abandon(manager)


def test_a_transaction_index_of_another_version_is_made_again(tmp_path: Path) -> None:
    manager, log = start_large(tmp_path)
    transact(log, 1, is_commit=False)
    sync(manager, log)
    abandon(manager)
    index = tmp_path / "t-0" / INDEX
    content = index.read_bytes()
    index.write_bytes(b"\0\7" + content[2:])
    manager, log = start_large(tmp_path)
    assert index.read_bytes() == content
    abandon(manager)


def test_producers_are_as_they_were(tmp_path: Path) -> None:
    """Interleaved ones, a new epoch, a transaction between other batches, more than are kept."""
    manager, log = start_large(tmp_path)
    for number in range(9):
        for producer in (7, 8):
            append(log, b"v", producer_id=producer, producer_epoch=0, sequence=number)
        if number == 3:
            sync(manager, log)
    append(log, b"v", producer_id=8, producer_epoch=2, sequence=0)
    append(log, b"v", producer_id=9, producer_epoch=0, sequence=0)
    transact(log, 9, is_commit=True, sequence=1)
    append(log, b"v", producer_id=9, producer_epoch=0, sequence=2)
    open_since = begin(log, 10)
    log.write_staged()
    old_producers = dict(log.producers.loaded().producers)
    abandon(manager)
    manager, log = start_large(tmp_path)
    assert log.producers.loaded().producers == old_producers
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == open_since
    abandon(manager)


def test_a_torn_batch_right_behind_the_recovery_point_is_cut(tmp_path: Path) -> None:
    """The snapshot is gone too, so the headers up to there are looked at, and no further."""
    manager, log = start_large(tmp_path)
    append(log, b"a", producer_id=7, producer_epoch=0, sequence=0)
    sync(manager, log)
    size = log.size_bytes
    append(log, b"b", producer_id=7, producer_epoch=0, sequence=1)
    abandon(manager)
    for path in (tmp_path / "t-0").glob("*.snapshot"):
        path.unlink()
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[: size + 37])
    manager, log = start_large(tmp_path)
    assert values_of(log) == [b"a"]
    assert log.producers.loaded().producers[7].last_sequence == 0
    abandon(manager)


def test_a_log_that_ends_before_its_recovery_point_knows_its_producers(tmp_path: Path) -> None:
    """A file was cut by hand: a snapshot beyond its end does not count."""
    manager, log = start_large(tmp_path)
    append(log, b"a", producer_id=7, producer_epoch=0, sequence=0)
    size = log.size_bytes
    append(log, b"b", producer_id=7, producer_epoch=0, sequence=1)
    sync(manager, log)
    abandon(manager)
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:size])
    manager, log = start_large(tmp_path)
    assert log.log_end_offset == 1
    assert log.producers.loaded().producers[7].last_sequence == 0
    abandon(manager)


RECOVERY_SETTINGS = config(segment_bytes=2000, index_interval_bytes=200)
VALUES = [b"%03d" % number * 20 for number in range(40)]


def recovery_start(
    path: Path, settings: TopicConfig = RECOVERY_SETTINGS, files: Files | None = None
) -> tuple[LogManager, PartitionLog]:
    manager = open_manager(str(path), topic=settings, files=files or Files())
    return manager, manager.create_log("t", 0, TOPIC_ID, settings)


def write_values(path: Path, *, clean: bool) -> Path:
    """Forty one-record batches, idempotent, in several segments; the partition's directory."""
    manager, log = recovery_start(path)
    for number, value in enumerate(VALUES):
        append(
            log,
            value,
            timestamp_ms=NOW_MS + number,
            producer_id=5,
            producer_epoch=0,
            sequence=number,
        )
    if clean:
        manager.close()
    else:
        abandon(manager)
    return path / "t-0"


def check_whole(log: PartitionLog) -> None:
    assert values_of(log) == VALUES
    assert log.log_end_offset == len(VALUES)
    for segment in log.segments:
        segment.offset_index.check(segment.size_bytes)
        segment.time_index.check()
    match = log_reads.offset_for_timestamp(log, NOW_MS + 17)
    assert match is not None
    assert match.offset == 17
    repeated = append_records(
        log,
        batch(VALUES[-1], timestamp_ms=NOW_MS, producer_id=5, producer_epoch=0, sequence=39),
        0,
        NOW_MS,
    )
    assert (repeated.duplicate, repeated.first_offset) == (True, 39)


def test_after_a_clean_stop_no_segment_is_opened(tmp_path: Path) -> None:
    write_values(tmp_path, clean=True)
    files = CountingFiles()
    manager, log = recovery_start(tmp_path, files=files)
    assert (log.log_end_offset, log.recovery_point) == (40, 40)
    assert [path for path in files.opened_paths if "t-0/" in path] == []
    check_whole(log)
    manager.close()


def test_of_large_batches_below_the_recovery_point_only_headers_are_read(tmp_path: Path) -> None:
    settings = config()
    manager, log = recovery_start(tmp_path, settings)
    for number in range(5):
        append(log, b"x" * 1_000_000, timestamp_ms=NOW_MS + number)
    flush(log)
    manager.checkpoint_now()
    append(log, b"tail", timestamp_ms=NOW_MS - 1)
    abandon(manager)
    files = CountingFiles()
    manager, log = recovery_start(tmp_path, settings, files)
    assert log.log_end_offset == 6
    assert files.read_bytes < 150_000
    match = log_reads.offset_for_timestamp(log, NOW_MS + 4)
    assert match is not None
    assert match.offset == 4
    manager.close()


def test_where_an_index_points_elsewhere_everything_is_checked(tmp_path: Path) -> None:
    """A bit of a record below the recovery point has turned, and the index is away."""
    manager, log = recovery_start(tmp_path, config(index_interval_bytes=0))
    for _ in range(5):
        append(log, b"x" * 1000)
    flush(log)
    manager.checkpoint_now()
    abandon(manager)
    (tmp_path / "t-0" / f"{0:020d}.index").unlink()
    path = tmp_path / "t-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    manager, log = recovery_start(tmp_path, config(index_interval_bytes=0))
    assert log.log_end_offset == 4
    manager.close()


def test_only_records_behind_the_recovery_point_are_read(tmp_path: Path) -> None:
    """One large segment, flushed up to its last batches, then a kill: a sixteenth of 2 MB is read,
    headers for the producers and the batches behind the recovery point."""
    settings = config()
    manager, log = recovery_start(tmp_path, settings)
    for _ in range(200):
        append(log, b"x" * 10_000)
    flush(log)
    manager.checkpoint_now()
    append(log, b"tail")
    abandon(manager)
    files = CountingFiles()
    manager, log = recovery_start(tmp_path, settings, files)
    assert log.log_end_offset == 201
    assert files.read_bytes < 130_000
    assert values_of(log, 200) == [b"tail"]
    assert log.active_segment.offset_index.entry_count == 100 - 1 or log.size_bytes > 2_000_000
    manager.close()


@pytest.mark.parametrize("lost_bytes", [1, 30, 61, 100, 150, 400])
def test_a_torn_tail_is_cut_at_a_batch(tmp_path: Path, lost_bytes: int) -> None:
    directory = write_values(tmp_path, clean=False)
    last = max(directory.glob("*.log"))
    os.truncate(last, last.stat().st_size - lost_bytes)
    manager, log = recovery_start(tmp_path)
    count = log.log_end_offset
    assert count < 40
    assert values_of(log) == VALUES[:count]
    assert append(log, b"again") == count
    assert values_of(log)[-1] == b"again"
    manager.close()


def test_garbage_behind_the_end_is_cut(tmp_path: Path) -> None:
    directory = write_values(tmp_path, clean=False)
    last = max(directory.glob("*.log"))
    size = last.stat().st_size
    with last.open("ab") as file:
        file.write(bytes(5000))
    manager, log = recovery_start(tmp_path)
    assert last.stat().st_size == size
    check_whole(log)
    manager.close()


def test_a_flipped_bit_ends_the_log_and_removes_later_segments(tmp_path: Path) -> None:
    """Without a checkpoint every segment is checked; the bad batch and all behind it go."""
    directory = write_values(tmp_path, clean=False)
    second = sorted(directory.glob("*.log"))[1]
    content = bytearray(second.read_bytes())
    content[-10] ^= 1
    second.write_bytes(content)
    (tmp_path / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    manager, log = recovery_start(tmp_path)
    assert log.segments.last.log_path == str(second)
    assert values_of(log) == VALUES[: log.log_end_offset]
    assert log.log_end_offset < 40
    assert not list(directory.glob("*.deleted"))
    manager.close()


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("damage", ["missing", "empty", "odd", "zeros", "beyond"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_or_damaged_index_is_made_again(
    tmp_path: Path, suffix: str, damage: str, clean: bool
) -> None:
    directory = write_values(tmp_path, clean=clean)
    contents = {path.name: path.read_bytes() for path in directory.glob(f"*.{suffix}")}
    for path in sorted(directory.glob(f"*.{suffix}")):
        content = path.read_bytes()
        if damage == "missing":
            path.unlink()
        elif damage == "empty":
            path.write_bytes(b"")
        elif damage == "odd":
            path.write_bytes(content + b"\0\0\0")
        elif damage == "zeros":
            path.write_bytes(content + bytes(240))
        else:
            path.write_bytes(content + b"\x7f" * 24)
    manager, log = recovery_start(tmp_path)
    check_whole(log)
    manager.close()
    if damage != "empty":
        rebuilt = {path.name: path.read_bytes() for path in directory.glob(f"*.{suffix}")}
        assert rebuilt.keys() == contents.keys()
        assert all(
            len(content) % (8 if suffix == "index" else 12) == 0 for content in rebuilt.values()
        )


def test_a_damaged_snapshot_is_replaced_by_the_one_before_and_a_replay(tmp_path: Path) -> None:
    directory = write_values(tmp_path, clean=True)
    newest = max(directory.glob("*.snapshot"))
    newest.write_bytes(newest.read_bytes()[:-1])
    manager, log = recovery_start(tmp_path)
    check_whole(log)
    manager.close()


def test_without_any_snapshot_the_log_is_replayed(tmp_path: Path) -> None:
    directory = write_values(tmp_path, clean=False)
    for path in directory.glob("*.snapshot"):
        path.unlink()
    manager, log = recovery_start(tmp_path)
    check_whole(log)
    manager.close()


def test_lost_leader_epochs_come_back_from_the_batches(tmp_path: Path) -> None:
    manager, log = recovery_start(tmp_path)
    append(log, b"a", leader_epoch=2)
    append(log, b"b", leader_epoch=6)
    abandon(manager)
    (tmp_path / "t-0/leader-epoch-checkpoint").write_text("rubbish")
    manager, log = recovery_start(tmp_path)
    assert log.epochs.history.entries == [(2, 0), (6, 1)]
    manager.close()


@pytest.mark.parametrize("torn", ["", "0\n", "0\n2\n2 0\n"])
def test_torn_leader_epochs_come_back_from_synced_batches_too(tmp_path: Path, torn: str) -> None:
    manager, log = recovery_start(tmp_path)
    append(log, b"a", leader_epoch=2)
    append(log, b"b", leader_epoch=6)
    manager.close()
    (tmp_path / "t-0/leader-epoch-checkpoint").write_text(torn)
    manager, log = recovery_start(tmp_path)
    assert log.epochs.history.entries == [(2, 0), (6, 1)]
    assert values_of(log) == [b"a", b"b"]
    manager.close()


def test_an_empty_epoch_file_of_a_log_without_records_is_no_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka makes one with every partition."""
    recovery_start(tmp_path)[0].close()
    (tmp_path / "t-0/leader-epoch-checkpoint").write_text("")
    manager, log = recovery_start(tmp_path)
    assert log.epochs.history.entries == []
    assert "leader-epoch-checkpoint" not in caplog.text
    manager.close()


def test_leader_epochs_that_a_start_changes_survive_a_power_cut(tmp_path: Path) -> None:
    """The last epoch has no record and is forgotten; a roll makes the file's new name durable."""
    files = FaultyFiles(str(tmp_path))
    manager = open_manager(str(tmp_path), files=files)
    log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    append(log, b"a", leader_epoch=2)
    log.begin_leader_epoch(3)
    manager.close()
    manager = open_manager(str(tmp_path), files=files)
    log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    assert log.epochs.history.entries == [(2, 0)]
    log.roll()
    abandon(manager)
    files.power_cut()
    assert (tmp_path / "t-0/leader-epoch-checkpoint").read_text() == "0\n1\n2 0\n"


def test_deleted_segments_that_a_power_cut_brings_back_have_their_epochs(tmp_path: Path) -> None:
    """The epochs are stored at once, and the names of the deleted segments are not synced yet."""
    files = FaultyFiles(str(tmp_path))
    settings = config(segment_bytes=2000, retention_bytes=1, retention_ms=-1)
    manager, log = recovery_start(tmp_path, settings, files)
    for epoch in (2, 4):
        append(log, b"x", leader_epoch=epoch)
        log.roll()
    append(log, b"x", leader_epoch=7)
    flush(log)
    manager.checkpoint_now()
    assert retention.delete_old_segments(log, log.log_end_offset, NOW_MS) == 2
    assert log.epochs.history.entries == [(7, 2)]
    abandon(manager)
    files.power_cut()
    manager, log = recovery_start(tmp_path, settings)
    assert len(log.segments) == 3
    assert log.epochs.history.entries == [(2, 0), (4, 1), (7, 2)]
    manager.close()
    assert (tmp_path / "t-0/leader-epoch-checkpoint").read_text() == "0\n3\n2 0\n4 1\n7 2\n"


def test_producers_that_a_stop_wrote_survive_a_power_cut(tmp_path: Path) -> None:
    """All records were synced before, only the snapshot is new."""
    files = FaultyFiles(str(tmp_path))
    manager, log = recovery_start(tmp_path, files=files)
    append(log, b"a", producer_id=5, producer_epoch=0, sequence=0)
    flush(log)
    manager.close()
    (snapshot,) = (tmp_path / "t-0").glob("*.snapshot")
    content = snapshot.read_bytes()
    files.sync_directory(f"{tmp_path}/t-0")  # its name is durable sooner or later
    files.power_cut()
    assert snapshot.read_bytes() == content


def test_a_closed_segment_has_its_last_time_after_a_power_cut(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.mkdir()
    files = FaultyFiles(str(path))
    waiting: list[Callable[[], None]] = []
    manager = open_manager(
        str(path), files=files, topic=RECOVERY_SETTINGS, run_later=waiting.append
    )
    log = manager.create_log("t", 0, TOPIC_ID, RECOVERY_SETTINGS)
    for number, value in enumerate(VALUES[:4]):
        append(log, value, timestamp_ms=NOW_MS + number)
    sync(manager, log)
    waiting.clear()
    log.roll()
    waiting[0]()  # the files of the new segment; the sync of the old one comes too late
    abandon(manager)
    LogDirectory.locked_paths.discard(str(path))
    files.power_cut(keep_nothing, keep_everything)
    files.forget_pins()
    assert broken_things(path, is_strict=False) == []
    manager, log = recovery_start(path)
    assert [segment.base_offset for segment in log.segments] == [0, 4]
    assert log.segments.first.max_timestamp == NOW_MS + 3
    assert log.segments.first.time_index.last_entry() == (NOW_MS + 3, 3)
    match = log_reads.offset_for_timestamp(log, NOW_MS + 3)
    assert match is not None
    assert match.offset == 3
    abandon(manager)


def test_lost_checkpoints_lose_nothing(tmp_path: Path) -> None:
    write_values(tmp_path, clean=True)
    for path in tmp_path.glob("*checkpoint"):
        path.write_text("0\n1\nnonsense\n")
    manager, log = recovery_start(tmp_path)
    check_whole(log)
    manager.close()


def test_leftovers_of_deletion_and_compaction_go(tmp_path: Path) -> None:
    """A finished `.swap` replaces the segment it covers; `.cleaned` and `.deleted` files go; an
    index without its log goes.
    """
    directory = write_values(tmp_path, clean=True)
    first, second = sorted(path.stem for path in directory.glob("*.log"))[:2]
    for suffix in ("log", "index", "timeindex"):
        shutil.copy(directory / f"{first}.{suffix}", directory / f"{first}.{suffix}.swap")
        shutil.copy(directory / f"{first}.{suffix}", directory / f"{second}.{suffix}.deleted")
    (directory / f"{'9' * 20}.log.cleaned").write_bytes(b"half")
    (directory / f"{'7' * 20}.index").write_bytes(b"")
    manager, log = recovery_start(tmp_path)
    check_whole(log)
    names = {path.name for path in directory.iterdir()}
    assert not any(name.endswith((".swap", ".cleaned", ".deleted")) for name in names)
    assert f"{'7' * 20}.index" not in names
    manager.close()


def test_a_swap_that_was_still_being_cleaned_goes_with_its_source(tmp_path: Path) -> None:
    directory = write_values(tmp_path, clean=True)
    first = min(path.stem for path in directory.glob("*.log"))
    (directory / f"{first}.log.swap").write_bytes(b"half")
    (directory / f"{first}.log.cleaned").write_bytes(b"half")
    manager, log = recovery_start(tmp_path)
    check_whole(log)
    manager.close()


def test_a_log_that_ends_before_its_start_begins_empty_there(tmp_path: Path) -> None:
    write_values(tmp_path, clean=True)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 100\n")
    manager, log = recovery_start(tmp_path)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    checkpoint = tmp_path / "t-0" / "leader-epoch-checkpoint"
    assert checkpoint.read_text() == "0\n0\n"  # the epochs of the removed segments are gone, too
    assert append(log, b"a") == 100
    manager.close()


def test_the_log_start_offset_survives(tmp_path: Path) -> None:
    write_values(tmp_path, clean=True)
    manager, log = recovery_start(tmp_path)
    log.advance_log_start(7)
    manager.close()
    manager, log = recovery_start(tmp_path)
    assert log.log_start_offset == 7
    manager.close()


class UnreadableFiles(Files):
    """Partition directories cannot be listed."""

    __slots__ = ()

    def list_files(self, path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)


def test_a_directory_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    write_values(tmp_path, clean=True)
    with pytest.raises(StorageError, match=r"cannot load t-0 from .*Permission denied"):
        recovery_start(tmp_path, files=UnreadableFiles())


def test_asking_for_producers_does_not_read_this_runs_records(tmp_path: Path) -> None:
    """A log without producer ids grows large before somebody asks for the last stable offset."""
    files = CountingFiles()
    manager, log = recovery_start(tmp_path, config(), files)
    for _ in range(50):
        append(log, b"x" * 10_000)
    old_bytes = files.read_bytes
    assert log.last_stable_offset == 50
    assert log.producers.loaded().producers == {}
    assert files.read_bytes == old_bytes
    manager.close()


TRANSACTIONS = config(segment_bytes=500, index_interval_bytes=100)


def abort_transactions(root: Path, *, is_clean: bool) -> list[AbortedTransaction]:
    """Leave a log with an aborted transaction in each of several segments; return all of them."""
    manager = open_manager(str(root), topic=TRANSACTIONS)
    log = manager.create_log("t", 0, TOPIC_ID, TRANSACTIONS)
    for number in range(12):
        transact(log, 7, is_commit=number % 2 > 0, sequence=number)
    sync(manager, log)
    aborted = log_reads.aborted_transactions(log, 0, log.log_end_offset)
    assert len(aborted) == 6
    assert len(list((root / "t-0").glob("*.txnindex"))) > 2
    if is_clean:
        manager.close()
        wait_for_a_later_time(root)
    abandon(manager)
    return aborted


@pytest.mark.parametrize("number", [0, -1], ids=["first", "last"])
def test_a_transaction_index_that_is_removed_after_a_clean_stop_is_made_again(
    tmp_path: Path, number: int
) -> None:
    """Nothing else would tell a reader of committed records which ones are not. Kafka 3.9 does not
    notice it: LogSegment.sanityCheck takes a missing transaction index for an empty one.
    """
    aborted = abort_transactions(tmp_path, is_clean=True)
    sorted((tmp_path / "t-0").glob("*.txnindex"))[number].unlink()
    log = open_manager(str(tmp_path), topic=TRANSACTIONS).logs[TopicPartition("t", 0)]
    assert log_reads.aborted_transactions(log, 0, log.log_end_offset) == aborted


def test_a_transaction_index_that_is_removed_after_a_kill_is_made_again_where_kafka_does(
    tmp_path: Path,
) -> None:
    """Kafka makes those of the segments anew that it recovers."""
    aborted = abort_transactions(tmp_path, is_clean=False)
    sorted((tmp_path / "t-0").glob("*.txnindex"))[-1].unlink()
    log = open_manager(str(tmp_path), topic=TRANSACTIONS).logs[TopicPartition("t", 0)]
    assert log_reads.aborted_transactions(log, 0, log.log_end_offset) == aborted
