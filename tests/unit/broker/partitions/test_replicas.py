"""Followers of a partition: their progress, the ISR, answers that wait for them."""

from __future__ import annotations

import pytest

from minibroker.broker.cluster.image import BrokerInfo
from minibroker.broker.partitions.replicas import (
    INVALID_LOW_WATERMARK,
    FollowerId,
    RecordDeletions,
    ReplicaRules,
    Replicas,
)
from minibroker.broker.partitions.role import Leader
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.delete_records import DeleteRecordsPartitionResult
from tests.support.in_process import ManualClock
from tests.unit.broker.partitions.conftest import Claim

SOON_MS = 1
LATER_MS = 600_000


def result() -> DeleteRecordsPartitionResult:
    """Return an answer made while the followers start at offset 1."""
    return DeleteRecordsPartitionResult(low_watermark=1)


async def test_an_answer_waits_until_the_low_watermark_is_at_its_offset() -> None:
    deletions = RecordDeletions()
    near, far = result(), result()
    later, earlier = (
        deletions.wait(5, far, LATER_MS),
        deletions.wait(3, near, LATER_MS),
    )
    deletions.complete(2)
    assert not earlier.done()
    deletions.complete(4)
    assert earlier.done()
    assert (near.error_code, near.low_watermark) == (0, 4)
    assert not later.done()
    deletions.complete(5)
    assert (far.error_code, far.low_watermark) == (0, 5)
    assert later.done()
    assert not deletions


async def test_an_answer_does_not_wait_longer_than_its_time() -> None:
    deletions = RecordDeletions()
    late = result()
    other = deletions.wait(3, result(), LATER_MS)
    await deletions.wait(3, late, SOON_MS)
    assert (late.error_code, late.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 1)
    assert not other.done()
    assert len(deletions) == 1
    deletions.complete(3)


async def test_all_answers_are_refused() -> None:
    deletions = RecordDeletions()
    refused = result()
    done = deletions.wait(3, refused, LATER_MS)
    deletions.refuse(ErrorCode.KAFKA_STORAGE_ERROR)
    assert done.done()
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert refused.low_watermark == INVALID_LOW_WATERMARK
    assert not deletions


async def test_an_answer_that_nobody_waits_for_any_more_holds_nothing() -> None:
    deletions = RecordDeletions()
    deletions.wait(3, result(), LATER_MS).cancel()
    other = deletions.wait(3, result(), LATER_MS)
    deletions.complete(3)
    assert other.done()


LAG_MS = 30_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


class Registrations:
    """The brokers that are registered, as the leader knows them."""

    def __init__(self) -> None:
        self.brokers = {broker_id: BrokerInfo(broker_id, (), epoch=100) for broker_id in (0, 1)}
        self.forgotten_count = 0

    def restart(self, broker_id: int, epoch: int) -> None:
        """Register a broker anew."""
        self.brokers = {**self.brokers, broker_id: BrokerInfo(broker_id, (), epoch=epoch)}

    def note_forgotten(self) -> None:
        self.forgotten_count += 1


@pytest.fixture
def registrations() -> Registrations:
    """Brokers 0 and 1 live, broker 2 is dead."""
    return Registrations()


@pytest.fixture
def replicas(clock: ManualClock, registrations: Registrations) -> Replicas:
    """Broker 0 leads from offset 10 on, brokers 1 and 2 follow, all are in sync."""
    rules = ReplicaRules(0, clock.now_ms, lambda: LAG_MS, lambda: registrations.brokers)
    new_replicas = Replicas(rules, registrations.note_forgotten)
    new_replicas.lead(leader(isr=[0, 1, 2]), 10, is_new_epoch=True)
    return new_replicas


def leader(isr: list[int], start_offset: int = 10) -> Leader:
    return Leader(5, 0, start_offset, [0, 1, 2], isr)


def fetch(replicas: Replicas, broker_id: int, offset: int, end: int = 20) -> None:
    assert replicas.note_fetch(FollowerId(broker_id, -1), offset, 0, end)


def test_the_high_watermark_is_what_all_in_sync_have(replicas: Replicas) -> None:
    replicas.own_end_offset = 20
    fetch(replicas, 1, 15)
    assert replicas.committed(10, 1) == 10
    fetch(replicas, 2, 12)
    assert replicas.committed(10, 1) == 12
    fetch(replicas, 2, 20)
    assert replicas.committed(12, 1) == 15


def test_a_dead_follower_outside_of_the_isr_holds_nobody(replicas: Replicas) -> None:
    replicas.lead(leader(isr=[0, 1]), 20, is_new_epoch=False)
    replicas.own_end_offset = 20
    fetch(replicas, 1, 20)
    assert replicas.committed(10, 1) == 20


def test_too_few_in_sync_commit_nothing(replicas: Replicas, clock: ManualClock) -> None:
    replicas.own_end_offset = 20
    clock.advance(LAG_MS + 1)
    replicas.lead(leader(isr=[0]), 20, is_new_epoch=False)
    assert replicas.committed(10, 2) == 10
    assert replicas.committed(10, 1) == 20


def test_a_member_of_the_isr_that_is_no_replica_holds_the_high_watermark(
    replicas: Replicas,
) -> None:
    """The end of a move in Kafka 3.9: the old replica is in sync still, and nobody knows how far it
    is. Confirmed without it, a record would have one copy less than the ISR says.
    """
    replicas.lead(Leader(6, 0, 20, [0, 1], [0, 1, 2]), 20, is_new_epoch=True)
    replicas.own_end_offset = 20
    fetch(replicas, 1, 20)
    assert replicas.committed(10, 2) == 10
    replicas.lead(Leader(6, 1, 20, [0, 1], [0, 1]), 20, is_new_epoch=False)
    assert replicas.committed(10, 2) == 20


def test_a_stranger_is_no_follower(replicas: Replicas) -> None:
    assert not replicas.note_fetch(FollowerId(7, -1), 10, 0, 20)


def test_a_follower_joins_when_it_has_what_is_committed(
    replicas: Replicas, clock: ManualClock
) -> None:
    clock.advance(LAG_MS + 1)
    replicas.lead(leader(isr=[0]), 20, is_new_epoch=False)
    replicas.own_end_offset = 20
    fetch(replicas, 1, 9)
    assert replicas.isr_with(1, 9) is None  # behind the start of this leader's epoch
    fetch(replicas, 1, 12)
    assert replicas.isr_with(1, 13) is None
    assert replicas.isr_with(1, 12) == [0, 1]
    # It counts for the high watermark before anybody confirms it, and is asked for once.
    assert replicas.committed(12, 1) == 12
    assert replicas.isr_with(1, 12) is None
    clock.advance(LAG_MS + 1)
    replicas.give_up_joining()
    assert replicas.committed(12, 1) == 20


def test_a_slow_follower_leaves(replicas: Replicas, clock: ManualClock) -> None:
    fetch(replicas, 1, 20)
    clock.advance(LAG_MS + 1)
    assert replicas.isr_without_slow(20) == [0, 1]
    fetch(replicas, 2, 20)
    assert replicas.isr_without_slow(20) is None


async def test_an_answer_waits_until_all_in_sync_have_its_records(replicas: Replicas) -> None:
    claim = Claim()
    first, second = replicas.wait(15, claim, LATER_MS), replicas.wait(20, Claim(), LATER_MS)
    replicas.complete(14, 1)
    assert not first.done()
    replicas.complete(15, 1)
    assert first.done()
    assert not second.done()
    assert claim.error_code == 0
    replicas.refuse_waiting()


async def test_an_answer_says_that_too_few_have_its_records(
    replicas: Replicas, clock: ManualClock
) -> None:
    claim = Claim()
    done = replicas.wait(15, claim, LATER_MS)
    clock.advance(LAG_MS + 1)
    replicas.lead(leader(isr=[0]), 20, is_new_epoch=False)
    replicas.complete(15, 2)
    assert claim.error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert done.done()


async def test_an_answer_does_not_wait_for_ever(replicas: Replicas) -> None:
    claim = Claim()
    earlier = replicas.wait(15, Claim(), LATER_MS)
    await replicas.wait(16, claim, SOON_MS)
    assert claim.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert not earlier.done()
    replicas.refuse_waiting()


async def test_an_answer_is_refused_when_another_broker_leads(replicas: Replicas) -> None:
    claim = Claim()
    done = replicas.wait(15, claim, LATER_MS)
    replicas.refuse_waiting()
    assert claim.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert done.done()


async def test_replicas_an_answer_that_nobody_waits_for_any_more_holds_nothing(
    replicas: Replicas,
) -> None:
    replicas.wait(15, Claim(), LATER_MS).cancel()
    later = replicas.wait(16, Claim(), LATER_MS)
    replicas.complete(16, 1)
    assert later.done()


def test_a_follower_was_at_the_end_until_its_last_request(
    replicas: Replicas, clock: ManualClock
) -> None:
    for broker_id in (1, 2):
        fetch(replicas, broker_id, 20, end=20)
    clock.advance(LAG_MS + 1)
    replicas.was_at_end(1, clock.now_ms())
    replicas.was_at_end(7, clock.now_ms())  # it has no replica
    assert replicas.isr_without_slow(21) == [0, 1]
    assert set(replicas.followers) == {1, 2}


def test_only_followers_in_sync_that_have_an_offset_are_read_from(replicas: Replicas) -> None:
    assert list(replicas.in_sync_at(10)) == []  # nobody has fetched in this epoch
    replicas.note_fetch(FollowerId(1, -1), 15, 12, 20)
    replicas.note_fetch(FollowerId(2, -1), 20, 0, 20)
    assert [broker_id for broker_id, _ in replicas.in_sync_at(16)] == [2]
    assert [broker_id for broker_id, _ in replicas.in_sync_at(12)] == [1, 2]
    replicas.lead(leader(isr=[0, 1]), 20, is_new_epoch=False)
    assert [broker_id for broker_id, _ in replicas.in_sync_at(15)] == [1]


async def test_records_are_deleted_once_all_live_replicas_start_behind_them(
    replicas: Replicas,
) -> None:
    result = DeleteRecordsPartitionResult()
    done = replicas.deletions.wait(12, result, LATER_MS)
    replicas.complete_deletions(12)
    assert not done.done()  # broker 1 has not fetched yet, broker 2 is dead
    replicas.note_fetch(FollowerId(1, -1), 20, 11, 20)
    replicas.complete_deletions(12)
    assert not done.done()
    replicas.note_fetch(FollowerId(1, -1), 20, 12, 20)
    replicas.complete_deletions(12)
    assert done.done()
    assert (result.error_code, result.low_watermark) == (0, 12)


async def test_deletions_are_refused_when_another_broker_leads(replicas: Replicas) -> None:
    result = DeleteRecordsPartitionResult()
    done = replicas.deletions.wait(12, result, LATER_MS)
    replicas.refuse_waiting()
    assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert done.done()


# A follower that was started again.


async def test_records_are_not_deleted_by_what_a_former_process_told(
    replicas: Replicas, registrations: Registrations
) -> None:
    """The new process may begin with an older log start offset than the former one told."""
    result = DeleteRecordsPartitionResult()
    replicas.note_fetch(FollowerId(1, 100), 20, 12, 20)
    registrations.restart(1, 200)
    assert replicas.low_watermark(12) == -1
    assert registrations.forgotten_count == 1
    done = replicas.deletions.wait(12, result, LATER_MS)
    replicas.complete_deletions(12)
    assert not done.done()
    replicas.note_fetch(FollowerId(1, 200), 20, 12, 20)
    replicas.complete_deletions(12)
    assert done.done()
    assert registrations.forgotten_count == 1


@pytest.mark.parametrize("epoch", [100, -1])
def test_records_are_not_committed_by_what_a_former_process_told(
    replicas: Replicas, registrations: Registrations, epoch: int
) -> None:
    """The new process may have a shorter log: the power was cut, or a file is damaged."""
    replicas.own_end_offset = 20
    replicas.lead(leader(isr=[0, 1]), 20, is_new_epoch=False)
    replicas.note_fetch(FollowerId(1, epoch), 20, 0, 20)
    registrations.restart(1, 200)
    assert replicas.committed(10, 1) == 10
    assert list(replicas.in_sync_at(15)) == []
    replicas.note_fetch(FollowerId(1, 200), 15, 0, 20)
    assert replicas.committed(10, 1) == 15


def test_a_former_process_outside_of_the_isr_holds_nobody(
    replicas: Replicas, registrations: Registrations
) -> None:
    replicas.own_end_offset = 20
    replicas.lead(leader(isr=[0]), 20, is_new_epoch=False)
    replicas.note_fetch(FollowerId(1, 100), 15, 0, 15)
    assert replicas.committed(10, 1) == 15
    registrations.restart(1, 200)
    assert replicas.committed(15, 1) == 20


def test_a_follower_in_the_isr_has_the_whole_lag_time_after_a_start(
    replicas: Replicas, registrations: Registrations, clock: ManualClock
) -> None:
    replicas.lead(leader(isr=[0, 1]), 20, is_new_epoch=False)
    replicas.note_fetch(FollowerId(1, 100), 20, 0, 20)
    clock.advance(LAG_MS + 1)
    registrations.restart(1, 200)
    assert replicas.isr_without_slow(20) is None
    clock.advance(LAG_MS + 1)
    assert replicas.isr_without_slow(20) == [0]


def test_a_late_fetch_of_a_former_process_tells_nothing(
    replicas: Replicas, registrations: Registrations
) -> None:
    registrations.restart(1, 200)
    assert not replicas.note_fetch(FollowerId(1, 100), 20, 12, 20)
    assert replicas.low_watermark(12) == -1


def test_a_registration_that_comes_late_forgets_nothing(
    replicas: Replicas, registrations: Registrations
) -> None:
    replicas.note_fetch(FollowerId(1, 200), 20, 12, 20)
    registrations.restart(0, 150)
    assert replicas.low_watermark(12) == 12
    registrations.restart(1, 200)
    assert replicas.low_watermark(12) == 12
    assert registrations.forgotten_count == 0
