"""Batches whose transaction the coordinator has not confirmed yet keep their order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from minibroker.broker.partitions import verification
from minibroker.broker.partitions.partition import VerificationGuard
from minibroker.broker.partitions.verification import PENDING_MAX
from minibroker.broker.storage.producer_state import ProducerEntry, RecentBatch
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

ID = 5


def partition_with(entry: ProducerEntry | None = None) -> Any:
    entries = {} if entry is None else {ID: entry}
    return SimpleNamespace(unverified={}, producers=lambda: entries)


def entry(epoch: int, start: int = -1, *batches: RecentBatch) -> ProducerEntry:
    return ProducerEntry(epoch, 0, 0, start, batches)


def begin(partition: Any, epoch: int, sequence: int, *, bump: bool = False) -> VerificationGuard:
    return verification.begin(partition, ID, epoch, sequence, has_epoch_bump=bump)


def test_the_log_tells_whether_a_transaction_is_open() -> None:
    assert not verification.has_open_transaction(partition_with(), ID, 0)
    assert not verification.has_open_transaction(partition_with(entry(3)), ID, 3)
    assert verification.has_open_transaction(partition_with(entry(3, 7)), ID, 3)
    assert not verification.has_open_transaction(partition_with(entry(3, 7)), ID, 4)
    with pytest.raises(KafkaError) as caught:
        verification.has_open_transaction(partition_with(entry(3, 7)), ID, 2)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_later_batch_does_not_overtake_a_refused_one() -> None:
    partition = partition_with()
    begin(partition, 0, 10)
    begin(partition, 0, 12)
    verification.check_sequence(partition, ID, 10)
    with pytest.raises(KafkaError) as caught:
        verification.check_sequence(partition, ID, 12)
    assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    verification.on_append(partition, ID)
    verification.check_sequence(partition, ID, 12)


def test_the_lowest_sequence_of_the_newest_epoch_counts() -> None:
    partition = partition_with()
    guard = begin(partition, 1, 5)
    begin(partition, 1, 3)
    begin(partition, 0, 0)
    assert (guard.epoch, guard.lowest_sequence) == (1, 3)
    begin(partition, 2, 8)
    assert (guard.epoch, guard.lowest_sequence) == (2, 8)


def test_kip_890_a_producer_that_the_log_does_not_know_begins_with_0() -> None:
    partition = partition_with()
    begin(partition, 0, 4, bump=True)
    with pytest.raises(KafkaError) as caught:
        verification.check_sequence(partition, ID, 4)
    assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    partition_with_entry = partition_with(entry(0, -1, RecentBatch(3, 3, 0, 0)))
    begin(partition_with_entry, 0, 4, bump=True)
    verification.check_sequence(partition_with_entry, ID, 4)


def test_a_marker_forgets_all_but_the_next_transaction() -> None:
    partition = partition_with()
    begin(partition, 0, 0)
    verification.on_marker(partition, ID, 0)
    assert partition.unverified == {}
    begin(partition, 1, 0, bump=True)
    verification.on_marker(partition, ID, 1)
    assert ID in partition.unverified
    verification.on_marker(partition, ID, 2)
    assert partition.unverified == {}


def test_only_the_guard_of_the_own_question_lets_a_batch_in() -> None:
    """A marker and a new question in between: the first one's answer is about the past (ABA)."""
    partition = partition_with()
    ticket = begin(partition, 0, 0)
    verification.check_guard(partition, ID, 0, ticket)
    verification.on_marker(partition, ID, 0)
    after = begin(partition, 0, 0)
    for guard in (ticket, None):
        with pytest.raises(KafkaError) as caught:
            verification.check_guard(partition, ID, 0, guard)
        assert caught.value.code == ErrorCode.INVALID_TXN_STATE
    verification.check_guard(partition, ID, 0, after)


def test_an_open_transaction_needs_no_guard() -> None:
    verification.check_guard(partition_with(entry(3, 7)), ID, 3, None)
    with pytest.raises(KafkaError) as caught:
        verification.check_guard(partition_with(entry(3)), ID, 3, None)
    assert caught.value.code == ErrorCode.INVALID_TXN_STATE


def test_memory_is_bounded() -> None:
    partition = partition_with()
    for producer_id in range(PENDING_MAX + 1):
        verification.begin(partition, producer_id, 0, 0, has_epoch_bump=False)
    assert len(partition.unverified) == PENDING_MAX
    assert 0 not in partition.unverified
