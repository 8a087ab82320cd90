"""Markers stay as long as their data, aborted records go at once."""

from __future__ import annotations

from minibroker.broker.storage.compaction.survivors import CleanedTransactions
from minibroker.broker.storage.txn_index import AbortedTransaction
from minibroker.kafka.records.batch import BatchHeader, read_header
from minibroker.kafka.records.control import TransactionMarker, build_marker
from tests.support.compaction import keyed

ABORT = TransactionMarker(is_commit=False, coordinator_epoch=0)
COMMIT = TransactionMarker(is_commit=True, coordinator_epoch=0)


def data(offset: int, producer_id: int = 1, *, is_transactional: bool = True) -> BatchHeader:
    header = read_header(
        keyed((b"k", b"v"), producer_id=producer_id, sequence=0, is_transactional=is_transactional)
    )
    header.base_offset = offset
    return header


def control(offset: int, marker: TransactionMarker, producer_id: int = 1) -> BatchHeader:
    built = build_marker(marker, producer_id=producer_id, producer_epoch=0, timestamp_ms=0)
    header = read_header(built)
    header.base_offset = offset
    return header


def test_records_of_an_aborted_transaction_are_known_from_its_first_on() -> None:
    walk = CleanedTransactions()
    aborted = AbortedTransaction(1, 5, 7, 8)
    walk.expect([aborted])
    assert not walk.note_batch(data(4))  # an earlier one of the same producer was committed
    assert not walk.note_control(control(4, COMMIT), COMMIT)
    assert walk.note_batch(data(5))
    assert not walk.note_batch(data(6, is_transactional=False))
    assert not walk.note_control(control(7, ABORT), ABORT)
    assert walk.kept_aborts == [aborted]
    assert not walk.note_batch(data(8))


def test_a_marker_without_data_before_it_may_go() -> None:
    walk = CleanedTransactions()
    walk.expect([AbortedTransaction(2, 3, 9, 10)])
    assert walk.note_control(control(1, COMMIT), COMMIT)
    assert walk.note_control(control(9, ABORT, producer_id=2), ABORT)
    assert walk.kept_aborts == []


def test_an_entry_named_twice_counts_once() -> None:
    """A transaction that spans two segments overlaps both of them."""
    walk = CleanedTransactions()
    aborted = AbortedTransaction(1, 0, 9, 10)
    walk.expect([aborted])
    assert walk.note_batch(data(0))
    walk.expect([aborted])
    assert walk.note_batch(data(5))
    assert not walk.note_control(control(9, ABORT), ABORT)
    assert walk.kept_aborts == [aborted]
    assert not walk.note_batch(data(10))


def test_an_empty_control_batch_may_go_and_other_kinds_stay() -> None:
    walk = CleanedTransactions()
    header = control(1, COMMIT)
    assert not walk.note_control(header, None)
    header.count = 0
    assert walk.note_control(header, None)
