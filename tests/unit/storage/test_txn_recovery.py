"""Transaction indexes after a crash: what the markers say, whatever the file said."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from minibroker.errors import HalfChangedError
from minibroker.records.builder import build_batch
from minibroker.records.record import Record
from tests.support.check import broken_things
from tests.support.compaction import end_transaction
from tests.support.faulty_files import FaultyFiles
from tests.support.logs import NOW_MS, TOPIC_ID, abandon, append, config, open_manager

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.storage.log_manager import LogManager
    from minibroker.storage.partition_log import PartitionLog

SETTINGS = config(segment_bytes=400)
INDEX = "00000000000000000000.txnindex"


def start(path: Path) -> tuple[LogManager, PartitionLog]:
    manager = open_manager(str(path), topic=SETTINGS)
    return manager, manager.create_log("t", 0, TOPIC_ID, SETTINGS)


def begin(log: PartitionLog, producer_id: int, *, sequence: int = 0) -> int:
    """Append one record of a transaction that stays open; return its offset."""
    sent = build_batch(
        [Record(0, NOW_MS, b"k", b"v")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
    return log.append(memoryview(sent), 0, NOW_MS).first_offset


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
        (found,) = log.aborted_transactions(0, 100)
        assert (found.producer_id, found.first_offset, found.last_offset) == (2, first, first + 1)
        assert index.read_bytes() == written
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
    (found,) = log.aborted_transactions(0, 100)
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
    log.append(memoryview(sent), 0, NOW_MS)
    log.roll()
    log.flush()
    manager.checkpoint_now()
    end_transaction(log, 5, is_commit=False)
    abandon(manager)
    index = tmp_path / "t-0" / "00000000000000000001.txnindex"
    written = index.read_bytes()
    index.unlink()
    manager, log = start(tmp_path)
    assert index.read_bytes() == written
    assert [one.first_offset for one in log.aborted_transactions(0, 100)] == [0]
    abandon(manager)


def test_an_entry_behind_the_end_of_the_log_goes(tmp_path: Path) -> None:
    manager, log = start(tmp_path)
    log.append(memoryview(build_batch([Record(0, NOW_MS, None, b"v")])), 0, NOW_MS)
    log.write_staged()
    kept = log.size_bytes
    transact(log, 3, is_commit=False)
    abandon(manager)
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:kept])
    manager, log = start(tmp_path)
    assert log.log_end_offset == 1
    assert log.aborted_transactions(0, 100) == []
    assert (tmp_path / "t-0" / INDEX).read_bytes() == b""
    abandon(manager)
