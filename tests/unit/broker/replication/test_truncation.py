"""The rules by which a follower cuts its log (KIP-101, KIP-279)."""

from __future__ import annotations

from random import Random

import pytest

from minibroker.broker.replication.truncation import (
    UNKNOWN,
    Restart,
    diverged_at,
    may_differ,
    out_of_range,
)
from minibroker.broker.storage.epochs import LeaderEpochs
from tests.support.logs import epochs_of


@pytest.mark.parametrize(
    ("history", "end", "leader_epoch", "leader_end", "expected"),
    [
        # The leader's epoch ends earlier than the follower's copy of it.
        ([(0, 0), (1, 5)], 9, 1, 7, 7),
        ([(0, 0), (1, 5)], 9, 0, 4, 4),
        # The follower's copy of the epoch is the shorter one.
        ([(0, 0), (2, 5)], 9, 0, 8, 5),
        # An epoch that the follower has not got: the end of the one below.
        ([(0, 0), (2, 5)], 9, 1, 8, 5),
        # An epoch older than all that the follower knows.
        ([(3, 2)], 9, 1, 1, 1),
        # No epoch is known to one of them.
        ([], 9, 1, 6, 6),
        ([(0, 0)], 9, UNKNOWN, 6, 6),
        ([(0, 0)], 9, UNKNOWN, 20, 9),
        # The leader knows nothing of it: everything behind the high watermark goes.
        ([(0, 0)], 9, UNKNOWN, UNKNOWN, 3),
    ],
)
def test_the_log_is_cut_where_both_agree(
    history: list[tuple[int, int]], end: int, leader_epoch: int, leader_end: int, expected: int
) -> None:
    cut = diverged_at(
        epochs_of(*history), end, 3, leader_epoch=leader_epoch, leader_end_offset=leader_end
    )
    assert cut == expected


@pytest.mark.parametrize(
    ("history", "start", "end", "leader_start", "expected"),
    [
        ([(0, 0)], 0, 9, 9, True),
        # The leader has records of the follower still: they are compared by their epochs.
        ([(0, 0)], 0, 9, 8, False),
        # A record of the leader's own epoch stands behind the same records as at the leader.
        ([(0, 0), (2, 8)], 0, 9, 9, False),
        # There is nothing that could differ.
        ([(0, 0)], 9, 9, 9, False),
        # Message formats without epochs.
        ([], 0, 9, 9, False),
    ],
)
def test_a_log_whose_records_its_leader_has_deleted_may_differ(
    history: list[tuple[int, int]], start: int, end: int, leader_start: int, expected: bool
) -> None:
    answer = may_differ(
        epochs_of(*history), start, end, leader_epoch=2, leader_start_offset=leader_start
    )
    assert answer is expected


Record = tuple[int, int]
"""(leader epoch, number that is unique)."""


def history_of(log: list[Record]) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for offset, (epoch, _) in enumerate(log):
        epochs.assign(epoch, offset)
    return epochs


def follow(log: list[Record], leader: list[Record], rounds: int) -> None:
    """Fetch from `leader` until both logs are equal, as a fetcher and a leader do it."""
    for _ in range(rounds):
        last_epoch = log[-1][0] if log else -1
        if log:
            epoch, end = history_of(leader).end_offset_for(last_epoch, len(leader))
            if epoch < last_epoch or end < len(log):
                cut = diverged_at(
                    history_of(log), len(log), 0, leader_epoch=epoch, leader_end_offset=end
                )
                del log[cut:]
                continue
        if len(log) == len(leader):
            return
        log.extend(leader[len(log) : len(log) + 3])
    raise AssertionError(f"{log} does not come to {leader}")


@pytest.mark.parametrize("seed", range(200))
def test_a_follower_comes_to_have_its_leaders_log(seed: int) -> None:
    """Logs that parted at random: one keeper of each epoch, appends that others did not get."""
    random = Random(seed)
    logs: list[list[Record]] = [[], [], []]
    number = 0
    for epoch in range(random.randint(1, 8)):
        leader = random.randrange(3)
        # Records that a new leader does not know, and that nobody committed, are there before.
        for _ in range(random.randint(0, 4)):
            logs[leader].append((epoch, number))
            number += 1
        for other in range(3):
            if other != leader and random.random() < 0.5:
                follow(logs[other], logs[leader], 100)
                del logs[other][random.randint(0, len(logs[other])) :]
    leader = random.randrange(3)
    logs[leader].append((99, number))
    for other in range(3):
        follow(logs[other], logs[leader], 100)
        assert logs[other] == logs[leader]


def test_an_offset_out_of_range_is_mended_by_the_leaders_ends() -> None:
    assert out_of_range(9, 0, 5) == Restart(5, is_cut=True, begins_anew=False)
    assert out_of_range(9, 12, 20) == Restart(12, is_cut=False, begins_anew=True)
    assert out_of_range(9, 4, 20) == Restart(9, is_cut=False, begins_anew=False)
