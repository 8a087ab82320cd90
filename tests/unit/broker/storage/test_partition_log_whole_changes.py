"""A change of a log is whole, or the log's directory goes offline, whatever came between.

Each change of many steps is broken by an error of each class: a disk that refuses, a full one, and
a bug of ours.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.storage import log_reads
from minibroker.broker.storage.compaction.cleaning import replace_segments
from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.partition_log import PartitionLog
from minibroker.broker.storage.segment import Segment, Segments
from minibroker.broker.storage.txn_index import TxnIndex
from minibroker.kafka.errors import HalfChangedError, StorageError
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    abandon,
    append,
    append_records,
    batch,
    config,
    fill_segments,
    marker_of,
    open_manager,
    values_of,
)
from tests.unit.broker.storage.moved_log import Move, expected

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ERRORS = [
    OSError(errno.EIO, "Input/output error"),
    OSError(errno.ENOSPC, "No space left on device"),
    AssertionError("what must hold does not"),
    RuntimeError("a bug"),
]


def failing(error: Exception, *, after: int = 0, then: Any = None) -> Callable[..., Any]:
    """Return a function that raises `error`, at first calling `then` so many times."""
    remaining = after

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal remaining
        if remaining == 0:
            raise error
        remaining -= 1
        return then(*args, **kwargs)

    return call


def assert_offline(log: PartitionLog, step: Callable[[], object]) -> None:
    """Assert that the step takes the directory of the log offline."""
    with pytest.raises(HalfChangedError) as caught:
        step()
    assert caught.value.is_lasting
    assert caught.value.log_directory == log.log_directory


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return open_manager(str(tmp_path)).create_log("t", 0, TOPIC_ID, config())


@pytest.mark.pure("replaces Segment.note_append")
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_bytes_without_their_account_take_the_directory_offline(
    log: PartitionLog, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, b"before")
    monkeypatch.setattr(Segment, "note_append", failing(error))
    assert_offline(log, lambda: append(log, b"in the file"))


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_write_that_fails_leaves_no_trace(
    log: PartitionLog, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, b"before")
    with monkeypatch.context() as patched:
        patched.setattr(Files, "pwritev", failing(error))
        with pytest.raises(StorageError) as caught:
            append(log, b"lost")
        assert not isinstance(caught.value, HalfChangedError)
    assert append(log, b"after") == 1
    assert values_of(log) == [b"before", b"after"]


@pytest.mark.pure("replaces Segment.cut")
@pytest.mark.parametrize("error", ERRORS[2:], ids=repr)
def test_an_append_that_cannot_be_taken_back_takes_the_directory_offline(
    log: PartitionLog, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, b"before")
    monkeypatch.setattr(Files, "pwritev", failing(ERRORS[0]))
    monkeypatch.setattr(Segment, "cut", failing(error))
    assert_offline(log, lambda: append(log, b"lost"))


def abort(log: PartitionLog) -> None:
    append_records(log, marker_of(1, is_commit=False), 0, NOW_MS, origin="coordinator")


def begin(log: PartitionLog) -> None:
    marker = build_batch(
        [Record(0, NOW_MS, None, b"aborted")],
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    append_records(log, memoryview(marker), 0, NOW_MS)
    log.write_staged()


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_marker_without_its_entry_takes_the_directory_offline(
    log: PartitionLog, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(log)
    monkeypatch.setattr(TxnIndex, "append", failing(error))
    assert_offline(log, lambda: abort(log))


@pytest.mark.pure("replaces Segment.truncate_to")
@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_truncation_that_is_cut_off_takes_the_directory_offline(
    log: PartitionLog, error: Exception, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_segments(log, 3)
    mark_deleted = Segment.mark_deleted
    monkeypatch.setattr(Segment, "mark_deleted", failing(error, after=after, then=mark_deleted))
    if after == 2:
        monkeypatch.setattr(Segment, "truncate_to", failing(error))
    assert_offline(log, lambda: log.truncate_to(1))


@pytest.mark.pure("replaces Segments.add")
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_log_that_cannot_begin_anew_takes_the_directory_offline(
    log: PartitionLog, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_segments(log, 3)
    monkeypatch.setattr(Segments, "add", failing(error))
    assert_offline(log, lambda: log.truncate_fully_and_start_at(50))


@pytest.mark.parametrize("error", ERRORS[:2], ids=repr)
def test_segments_that_a_disk_does_not_rename_stay_in_service(
    log: PartitionLog, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention comes again: a full disk may have room by then."""
    fill_segments(log, 4)
    log.advance_log_start(3)
    replace = Files.replace

    def refuse_the_second(files: Files, old_path: str, new_path: str) -> None:
        if f"{1:020d}" in old_path:
            raise error
        replace(files, old_path, new_path)

    with monkeypatch.context() as patched:
        patched.setattr(Files, "replace", refuse_the_second)
        with pytest.raises(StorageError) as caught:
            log.remove_segments(list(log.segments)[:3])
        assert not isinstance(caught.value, HalfChangedError)
    assert [segment.base_offset for segment in log.segments] == [1, 2, 3, 4]
    assert values_of(log) == [b"3"]
    log.remove_segments(list(log.segments)[:2])


@pytest.mark.pure("replaces Segments.remove")
@pytest.mark.parametrize("error", ERRORS[2:], ids=repr)
def test_a_removal_that_is_cut_off_takes_the_directory_offline(
    log: PartitionLog, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_segments(log, 4)
    monkeypatch.setattr(Segments, "remove", failing(error))
    assert_offline(log, lambda: log.remove_segments(list(log.segments)[:2]))


def test_a_segment_with_half_of_its_names_takes_the_directory_offline(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rename of its index is refused, and so is the way back."""
    fill_segments(log, 2)
    replace = Files.replace
    monkeypatch.setattr(Files, "replace", failing(ERRORS[0], after=2, then=replace))
    assert_offline(log, lambda: log.remove_segments(list(log.segments)[:1]))


@pytest.mark.pure("replaces Segments.replace")
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_compacted_segments_that_are_exchanged_in_part_take_the_directory_offline(
    log: PartitionLog, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_segments(log, 3)
    old = list(log.segments)[:2]
    for suffix in ("log", "index", "timeindex"):
        path = f"{log.directory}/{0:020d}.{suffix}.cleaned"
        REAL_FILES.write_atomically(path, b"")
    monkeypatch.setattr(Segments, "replace", failing(error))
    assert_offline(log, lambda: replace_segments(log, [0], old))


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_start_that_moves_in_part_takes_the_directory_offline(
    log: PartitionLog, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, b"a")
    monkeypatch.setattr(type(log.epochs), "truncate_from_start", failing(error))
    assert_offline(log, lambda: log.advance_log_start(1))


# --- a write behind a gap -------------------------------------------------------------------------


@pytest.fixture
def behind(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> memoryview:
    """A batch at offset 10 for the log that ends at 1, whose write the disk has refused."""
    monkeypatch.setattr(log.rules, "segment_bytes", 250)
    append(log, b"before")
    records = batch(b"behind the gap" * 10)
    records[0:8] = (10).to_bytes(8, "big")
    pwritev = Files.pwritev

    def refuse(handle: int, buffers: Any, position: int) -> int:
        if any(b"behind the gap" in bytes(buffer) for buffer in buffers):
            raise ERRORS[0]
        return pwritev(handle, buffers, position)

    with monkeypatch.context() as patched:
        patched.setattr(Files, "pwritev", staticmethod(refuse))
        with pytest.raises(StorageError) as caught:
            log.append_as_follower(records, 0)
    assert caught.value.is_lasting
    assert not isinstance(caught.value, HalfChangedError)
    assert log.log_end_offset == 1
    assert log.active_segment.base_offset == 10
    return records


def test_a_failed_write_behind_a_gap_can_be_done_again(
    log: PartitionLog, behind: memoryview
) -> None:
    log.append_as_follower(behind, 0)
    assert log.log_end_offset == 11
    assert values_of(log) == [b"before", b"behind the gap" * 10]


def test_a_leader_goes_on_behind_the_gap_of_a_failed_write(
    log: PartitionLog, behind: memoryview
) -> None:
    """The segment behind the gap is there: no record comes before its first offset."""
    assert behind
    assert append(log, b"leader") == 10
    assert values_of(log) == [b"before", b"leader"]


# --- a move's exchange ----------------------------------------------------------------------------


def test_a_log_that_moves_after_records_were_deleted_is_written_and_read(tmp_path: Path) -> None:
    """Its recovery point is not below its start: what was synced is older than what was deleted."""
    moving = Move(tmp_path)
    moving.log.advance_log_start(10)
    moving.rounds()
    log = moving.finish()
    assert log.recovery_point >= log.log_start_offset == 10
    begin(log)
    abort(log)
    assert append(log, b"after") == 12
    abandon(moving.manager)
    (log,) = open_manager(str(tmp_path / "a"), str(tmp_path / "b")).logs.values()
    fetched = log_reads.read(log, 10, 1 << 20, end_offset=log.log_end_offset, min_one_batch=True)
    aborted = log_reads.aborted_in(log, 10, fetched)
    assert [(transaction.producer_id, transaction.first_offset) for transaction in aborted] == [
        (1, 10)
    ]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_copy_that_cannot_be_opened_leaves_the_log_where_it_is(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving = Move(tmp_path)
    moving.rounds()
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    with monkeypatch.context() as patched:
        patched.setattr("minibroker.broker.storage.recovery.load_log", failing(error))
        with pytest.raises(type(error)):
            moving.manager.complete_move(moving.move, recovery_point)
    log = moving.manager.logs[moving.log.name]
    assert log is moving.log
    assert append(log, b"v10") == 10
    log.roll()
    append(log, b"v11")
    assert values_of(log) == expected(12)
    moving.manager.close()


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_exchange_that_is_cut_off_takes_the_new_directory_offline(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving = Move(tmp_path)
    moving.rounds()
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    monkeypatch.setattr(
        "minibroker.broker.storage.partition_directory.PartitionDirectory.assign_topic_id",
        failing(error),
    )
    with pytest.raises(HalfChangedError) as caught:
        moving.manager.complete_move(moving.move, recovery_point)
    assert caught.value.log_directory == str(tmp_path / "b")


def test_a_moved_log_knows_the_five_last_batches_of_each_producer(tmp_path: Path) -> None:
    """Also those that are no more in the log: the producers go along as they are in memory."""
    moving = Move(tmp_path)
    for sequence in range(6):
        append(moving.log, b"p", producer_id=3, producer_epoch=0, sequence=sequence)
        moving.log.roll()
    moving.log.advance_log_start(15)
    moving.log.remove_segments(
        [segment for segment in moving.log.segments if segment.base_offset < 15]
    )
    moving.rounds()
    log = moving.finish()
    for sequence in range(1, 6):
        records = batch(b"p", producer_id=3, producer_epoch=0, sequence=sequence)
        info = append_records(log, records, 0, NOW_MS)
        assert (info.duplicate, info.first_offset) == (True, 10 + sequence)
    moving.manager.close()
