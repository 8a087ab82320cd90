"""The roles of a partition: every step from every role, and what is refused."""

from __future__ import annotations

import pytest

from minibroker.broker.cluster.image import NO_LEADER
from minibroker.broker.partitions.role import (
    INITIAL,
    Follower,
    Leader,
    Offline,
    OfflineReason,
    Role,
    become_follower,
    become_leader,
    come_back,
    go_offline,
)

LEADER = Leader(5, 2, 100, (0, 1), (0,))
FOLLOWER = Follower(5, 2, 1)
FOLLOWER_OF_NOBODY = Follower(5, 2, NO_LEADER)
LOG_FAILED = Offline(5, 2, OfflineReason.LOG_FAILED)
DIRECTORY_FAILED = Offline(5, 2, OfflineReason.DIRECTORY_FAILED)
ONLINE = [LEADER, FOLLOWER, FOLLOWER_OF_NOBODY]
OFFLINE = [INITIAL, LOG_FAILED, DIRECTORY_FAILED]


def lead(role: Role, epoch: int, partition_epoch: int = 0, end_offset: int = 200) -> Leader | None:
    return become_leader(
        role, epoch, partition_epoch, end_offset=end_offset, replicas=(0, 1), metadata_isr=(0,)
    )


@pytest.mark.parametrize("role", ONLINE)
def test_a_new_epoch_makes_a_leader_that_starts_at_the_logs_end(role: Role) -> None:
    assert lead(role, 6) == Leader(6, 0, 200, (0, 1), (0,))


@pytest.mark.parametrize("role", ONLINE)
def test_a_new_epoch_makes_a_follower(role: Role) -> None:
    assert become_follower(role, 6, 0, 1) == Follower(6, 0, 1)
    assert become_follower(role, 6, 0, NO_LEADER) == Follower(6, 0, NO_LEADER)


def test_a_leader_told_of_its_epoch_again_keeps_where_it_began() -> None:
    assert lead(LEADER, 5, 3) == LEADER._replace(partition_epoch=3)
    assert lead(LEADER, 5, 2) == LEADER


@pytest.mark.parametrize("role", [FOLLOWER, FOLLOWER_OF_NOBODY])
def test_a_follower_that_leads_in_the_same_epoch_begins_at_the_logs_end(role: Role) -> None:
    assert lead(role, 5, 2) == Leader(5, 2, 200, (0, 1), (0,))


def test_a_leader_may_follow_in_the_same_epoch() -> None:
    assert become_follower(LEADER, 5, 3, NO_LEADER) == Follower(5, 3, NO_LEADER)


@pytest.mark.parametrize("role", ONLINE)
@pytest.mark.parametrize(("epoch", "partition_epoch"), [(4, 9), (5, 1), (4, -1)])
def test_an_older_event_is_refused(role: Role, epoch: int, partition_epoch: int) -> None:
    assert lead(role, epoch, partition_epoch) is None
    assert become_follower(role, epoch, partition_epoch, 1) is None


@pytest.mark.parametrize("role", ONLINE)
def test_a_partition_epoch_that_is_not_known_is_not_older(role: Role) -> None:
    assert lead(role, 5, -1) is not None
    assert become_follower(role, 5, -1, 1) == Follower(5, -1, 1)


@pytest.mark.parametrize("role", OFFLINE)
def test_without_a_log_nothing_leads_or_follows(role: Role) -> None:
    assert lead(role, 9) is None
    assert become_follower(role, 9, 0, 1) is None


@pytest.mark.parametrize("role", [*ONLINE, LOG_FAILED])
@pytest.mark.parametrize("reason", [OfflineReason.LOG_FAILED, OfflineReason.DIRECTORY_FAILED])
def test_everything_may_go_offline_and_keeps_its_epochs(role: Role, reason: OfflineReason) -> None:
    assert go_offline(role, reason) == Offline(5, 2, reason)


def test_a_failed_directory_stays_failed() -> None:
    assert go_offline(DIRECTORY_FAILED, OfflineReason.LOG_FAILED) == DIRECTORY_FAILED
    assert come_back(DIRECTORY_FAILED) is None


def test_a_log_that_is_open_makes_a_follower_of_nobody() -> None:
    assert come_back(INITIAL) == Follower(-1, -1, NO_LEADER)
    assert come_back(LOG_FAILED) == FOLLOWER_OF_NOBODY


@pytest.mark.parametrize("role", ONLINE)
def test_only_an_offline_partition_can_come_back(role: Role) -> None:
    assert come_back(role) is None


def test_a_partition_that_comes_back_still_knows_older_events() -> None:
    role = come_back(LOG_FAILED)
    assert role is not None
    assert lead(role, 4) is None
    assert lead(role, 5, 2) == Leader(5, 2, 200, (0, 1), (0,))
