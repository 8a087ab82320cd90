"""Committed records, found from files: indexes, snapshots, and the batches behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from minibroker.broker.storage import names
from minibroker.broker.storage.producer_state import ProducerState
from minibroker.broker.storage.txn_index import AbortedTransaction, encode_entry
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.control import TransactionMarker, build_marker
from minibroker.kafka.records.record import Record
from minibroker.pipeline.kafka.segments.transactions import (
    Aborted,
    AbortedBatches,
    Newest,
    Transactions,
    overlapping,
    read_transactions,
    read_txn_index,
)


def data(producer_id: int, offset: int) -> bytearray:
    return build_batch(
        [Record(0, 1, None, b"v")],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


def marker(producer_id: int, offset: int, *, is_commit: bool) -> bytearray:
    return build_marker(
        TransactionMarker(is_commit, 0),
        producer_id=producer_id,
        producer_epoch=0,
        timestamp_ms=1,
        base_offset=offset,
    )


def segment(directory: Path, base_offset: int, *batches: bytearray) -> tuple[int, str]:
    path = directory / names.segment_file(base_offset, names.LOG)
    path.write_bytes(b"".join(batches))
    return base_offset, str(path)


def snapshot(directory: Path, offset: int, *batches: bytearray) -> Path:
    state = ProducerState("a-0")
    for batch in batches:
        state.append(read_header(batch), "replication")
    path = directory / names.segment_file(offset, names.SNAPSHOT)
    path.write_bytes(state.to_snapshot())
    return path


def read(
    directory: Path, *segments: tuple[int, str], since: int = 0, end: int | None = None
) -> Transactions:
    base_offset, path = segments[-1]
    newest = Newest(base_offset, path, Path(path).stat().st_size)
    return read_transactions(str(directory), segments, newest, since=since, end_offset=end)


def test_everything_is_found_by_walking_where_nothing_else_is(tmp_path: Path) -> None:
    first = segment(tmp_path, 0, data(1, 0), data(2, 1), marker(1, 2, is_commit=False))
    newest = segment(tmp_path, 3, data(1, 3), marker(1, 4, is_commit=True), data(1, 5))
    rows = read(tmp_path, first, newest)
    assert rows.aborted == (Aborted(1, 0, 2),)
    assert rows.last_stable_offset == 1
    assert rows.sound_bytes == Path(newest[1]).stat().st_size


def test_the_snapshot_says_what_was_open_before_it(tmp_path: Path) -> None:
    first = segment(tmp_path, 0, data(1, 0), data(2, 1))
    newest = segment(tmp_path, 2, marker(2, 2, is_commit=False), data(3, 3))
    snapshot(tmp_path, 2, data(1, 0), data(2, 1))
    (tmp_path / names.segment_file(0, names.LOG)).write_bytes(b"not looked at")
    rows = read(tmp_path, first, newest)
    assert rows.aborted == (Aborted(2, 1, 2),)
    assert rows.last_stable_offset == 0


def test_a_damaged_snapshot_and_one_beyond_the_newest_segment_are_passed_by(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = segment(tmp_path, 0, data(1, 0))
    newest = segment(tmp_path, 1, marker(1, 1, is_commit=True))
    snapshot(tmp_path, 9, data(7, 5))
    damaged = snapshot(tmp_path, 1, data(7, 0))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    rows = read(tmp_path, first, newest)
    assert rows == ((), None, Path(newest[1]).stat().st_size)
    assert "is ignored" in caplog.text


def test_the_index_tells_of_segments_that_are_not_walked(tmp_path: Path) -> None:
    first = segment(tmp_path, 0)
    newest = segment(tmp_path, 9, data(1, 9))
    snapshot(tmp_path, 9)
    index = tmp_path / names.segment_file(0, names.TXN_INDEX)
    index.write_bytes(encode_entry(AbortedTransaction(4, 2, 6, 7)) + b"\x00" * 5)
    rows = read(tmp_path, first, newest)
    assert rows.aborted == (Aborted(4, 2, 6),)
    index.write_bytes(b"\x00\x01" + encode_entry(AbortedTransaction(4, 2, 6, 7))[2:])
    with pytest.raises(CorruptionError, match="version 1"):
        read_txn_index(str(index))


def test_a_batch_is_aborted_by_its_producer_and_offset(tmp_path: Path) -> None:
    aborted = AbortedBatches([Aborted(1, 20, 30), Aborted(1, 5, 8)])
    facts = [
        aborted.has(read_header(data(producer_id, offset)))
        for producer_id, offset in [(1, 4), (1, 5), (1, 8), (1, 9), (1, 25), (1, 31), (2, 25)]
    ]
    assert facts == [False, True, True, False, True, False, False]
    plain = build_batch([Record(0, 1, None, b"v")], base_offset=6, producer_id=1)
    assert not aborted.has(read_header(plain))


def test_a_segment_is_told_of_the_transactions_that_touch_it() -> None:
    all_of_them = (Aborted(1, 0, 4), Aborted(2, 3, 10), Aborted(3, 12, 13))
    assert overlapping(all_of_them, 5, 12) == (Aborted(2, 3, 10),)
    assert overlapping(all_of_them, 5, None) == (Aborted(2, 3, 10), Aborted(3, 12, 13))


def test_a_segment_before_the_snapshot_needs_no_walk(tmp_path: Path) -> None:
    first = segment(tmp_path, 0, data(1, 0), marker(1, 1, is_commit=True))
    newest = segment(tmp_path, 2, data(1, 2))
    snapshot(tmp_path, 2)
    assert read(tmp_path, first, newest, end=2) == ((), None, None)
    assert read(tmp_path, first, newest, since=2).last_stable_offset == 2


def test_a_transaction_open_at_the_snapshot_is_followed(tmp_path: Path) -> None:
    first = segment(tmp_path, 0, data(1, 0))
    newest = segment(tmp_path, 1, marker(1, 1, is_commit=False), data(2, 2))
    snapshot(tmp_path, 1, data(1, 0))
    rows = read(tmp_path, first, newest, end=1)
    assert rows.aborted == (Aborted(1, 0, 1),)
    assert rows.last_stable_offset == 2


def test_appends_after_the_plan_are_not_walked(tmp_path: Path) -> None:
    newest = segment(tmp_path, 0, data(1, 0))
    newest_file = Newest(0, newest[1], Path(newest[1]).stat().st_size)
    segment(tmp_path, 0, data(1, 0), marker(1, 1, is_commit=True), data(1, 2))
    transactions = read_transactions(str(tmp_path), [newest], newest_file, since=0, end_offset=None)
    assert transactions == ((), 0, newest_file.size_bytes)
