"""The walk of recovery: producers and transaction indexes say what the batches say."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import log_reads
from minibroker.broker.storage.files import REAL_FILES
from minibroker.kafka.errors import HalfChangedError
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from tests.support.check import broken_things
from tests.support.compaction import end_transaction
from tests.support.faulty_files import FaultyFiles
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    abandon,
    append,
    append_records,
    config,
    flush,
    open_manager,
    sync,
    values_of,
)
from tests.support.watched_files import CountingFiles

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.storage.files import Files
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import PartitionLog

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
    sent = build_batch(
        [Record(0, NOW_MS, b"k", b"v")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
    return append_records(log, memoryview(sent), 0, NOW_MS).first_offset


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
    written = index.read_bytes()
    for left in (None, b"", written[:20], written + written):
        index.unlink() if left is None else index.write_bytes(left)
        manager, log = start(tmp_path)
        (found,) = log_reads.aborted_transactions(log, 0, 100)
        assert (found.producer_id, found.first_offset, found.last_offset) == (2, first, first + 1)
        assert index.read_bytes() == written
        abandon(manager)
    assert broken_things(tmp_path) == []


def test_a_truncated_batch_that_is_back_has_its_own_epoch(tmp_path: Path) -> None:
    """A follower cut its log to 2, and took a record of epoch 6, whose epoch alone was synced."""
    manager, log = start(tmp_path)
    for _ in range(3):
        sent = build_batch([Record(0, NOW_MS, b"k", b"v")])
        append_records(log, memoryview(sent), 5, NOW_MS)
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
    (tmp_path / "d").mkdir()
    files = FaultyFiles(str(tmp_path / "d"))
    manager = open_manager(str(tmp_path / "d"), files=files)
    log = manager.create_log("t", 0, TOPIC_ID, config())
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
    (found,) = log_reads.aborted_transactions(log, 0, 100)
    assert (found.producer_id, found.first_offset, found.last_offset) == (2, 1, 2)
    abandon(manager)
    assert broken_things(tmp_path / "d") == []


def test_a_transaction_that_began_in_an_earlier_segment(tmp_path: Path) -> None:
    manager, log = start(tmp_path)
    sent = build_batch(
        [Record(0, NOW_MS, b"k", bytes(200))],
        producer_id=5,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    append_records(log, memoryview(sent), 0, NOW_MS)
    log.roll()
    flush(log)
    manager.checkpoint_now()
    end_transaction(log, 5, is_commit=False)
    abandon(manager)
    index = tmp_path / "t-0" / "00000000000000000001.txnindex"
    written = index.read_bytes()
    index.unlink()
    manager, log = start(tmp_path)
    assert index.read_bytes() == written
    assert [
        transaction.first_offset for transaction in log_reads.aborted_transactions(log, 0, 100)
    ] == [0]
    abandon(manager)


def test_an_entry_behind_the_end_of_the_log_goes(tmp_path: Path) -> None:
    manager, log = start(tmp_path)
    append_records(log, memoryview(build_batch([Record(0, NOW_MS, None, b"v")])), 0, NOW_MS)
    log.write_staged()
    kept = log.size_bytes
    transact(log, 3, is_commit=False)
    abandon(manager)
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:kept])
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
    written = index.read_bytes()
    abandon(manager)
    for left in (written, written[:34], written + b"torn"):
        index.write_bytes(left)
        files = CountingFiles()
        manager, log = start_large(tmp_path, files)
        assert index.read_bytes() == written
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
    written = index.read_bytes()
    index.write_bytes(b"\0\7" + written[2:])
    manager, log = start_large(tmp_path)
    assert index.read_bytes() == written
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
    before = dict(log.producers.loaded().producers)
    abandon(manager)
    manager, log = start_large(tmp_path)
    assert log.producers.loaded().producers == before
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == open_since
    abandon(manager)


def test_a_torn_batch_right_behind_the_recovery_point_is_cut(tmp_path: Path) -> None:
    """The snapshot is gone too, so the headers up to there are looked at, and no further."""
    manager, log = start_large(tmp_path)
    append(log, b"a", producer_id=7, producer_epoch=0, sequence=0)
    sync(manager, log)
    kept = log.size_bytes
    append(log, b"b", producer_id=7, producer_epoch=0, sequence=1)
    abandon(manager)
    for path in (tmp_path / "t-0").glob("*.snapshot"):
        path.unlink()
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[: kept + 37])
    manager, log = start_large(tmp_path)
    assert values_of(log) == [b"a"]
    assert log.producers.loaded().producers[7].last_sequence == 0
    abandon(manager)


def test_a_log_that_ends_before_its_recovery_point_knows_its_producers(tmp_path: Path) -> None:
    """A file was cut by hand: a snapshot beyond its end does not count."""
    manager, log = start_large(tmp_path)
    append(log, b"a", producer_id=7, producer_epoch=0, sequence=0)
    kept = log.size_bytes
    append(log, b"b", producer_id=7, producer_epoch=0, sequence=1)
    sync(manager, log)
    abandon(manager)
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:kept])
    manager, log = start_large(tmp_path)
    assert log.log_end_offset == 1
    assert log.producers.loaded().producers[7].last_sequence == 0
    abandon(manager)
