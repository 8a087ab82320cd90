"""Replica assignment; the expected lists were printed by Kafka 3.9.1's AdminUtils."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import updates
from minibroker.broker.cluster.assignment import assign_replicas
from minibroker.broker.cluster.registration import generate_broker_id
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.updates import NO_BROKERS, BrokerLists
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from pathlib import Path


FIVE: dict[int, str | None] = dict.fromkeys(range(5))
RACKS: dict[int, str | None] = dict(enumerate(["r1", "r3", "r3", "r2", "r2", "r1"]))
UNEVEN_RACKS: dict[int, str | None] = {1: "a", 2: "a", 3: "a", 4: "b"}


@pytest.mark.parametrize(
    ("racks", "partition_count", "replication_factor", "start", "first", "expected"),
    [
        (
            FIVE,
            12,
            3,
            0,
            0,
            "012 123 234 340 401 023 134 240 301 412 034 140",
        ),
        (FIVE, 4, 2, 3, 7, "04 10 21 34"),
        (RACKS, 8, 3, 0, 0, "031 315 154 542 420 203 042 320"),
        (RACKS, 8, 4, 2, 0, "1403 5231 4015 2354 0142 3520 1354 5142"),
        (UNEVEN_RACKS, 6, 3, 1, 4, "431 243 342 142 423 243"),
    ],
)
def test_assignment_equals_kafkas(
    *,
    racks: dict[int, str | None],
    partition_count: int,
    replication_factor: int,
    start: int,
    first: int,
    expected: str,
) -> None:
    assignment = assign_replicas(
        racks, partition_count, replication_factor, start_index=start, first_partition=first
    )
    assert assignment == [[int(digit) for digit in word] for word in expected.split()]


def test_start_and_shift_are_picked_when_none_is_given() -> None:
    picks = iter([3, 0])
    assignment = assign_replicas(FIVE, 2, 2, pick=lambda _: next(picks))
    assert assignment == [[3, 4], [4, 0]]


def test_random_start_stays_inside_the_brokers() -> None:
    for _ in range(20):
        for replicas in assign_replicas(FIVE, 7, 3):
            assert len(set(replicas)) == 3
            assert set(replicas) <= set(FIVE)


def test_single_broker_holds_everything() -> None:
    assert assign_replicas({7: None}, 3, 1) == [[7], [7], [7]]


@pytest.mark.parametrize(
    ("racks", "partition_count", "replication_factor", "code", "detail"),
    [
        (FIVE, 0, 1, ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (FIVE, -1, 1, ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (
            FIVE,
            1,
            0,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0.",
        ),
        (
            FIVE,
            1,
            6,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor: 6 larger than available brokers: 5.",
        ),
        (
            {1: "a", 2: None},
            1,
            1,
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        ),
    ],
)
def test_assignment_refuses(
    racks: dict[int, str | None],
    partition_count: int,
    replication_factor: int,
    code: ErrorCode,
    detail: str,
) -> None:
    with pytest.raises(KafkaError) as caught:
        assign_replicas(racks, partition_count, replication_factor)
    assert (caught.value.code, caught.value.detail) == (code, detail)


# Generated ids: one after the other, above those that a configuration may have.


async def test_each_broker_gets_the_next_id(tmp_path: Path) -> None:
    home = SharedTree(tmp_path / "metadata.db", SystemClock())
    keeper = home.session()
    await keeper.open()
    assert [await generate_broker_id(home.session(), 1000) for _ in range(3)] == [1001, 1002, 1003]
    assert await generate_broker_id(home.session(), 5) == 9
    await keeper.close()


# Equal lists of brokers are one list, and no more than a fixed number of lists is kept.


def test_equal_lists_are_one_list() -> None:
    lists = BrokerLists()
    first = lists.share([1, 2])
    assert lists.share([1, 2]) is first
    assert lists.share([2, 1]) is not first


def test_an_empty_list_is_always_the_same() -> None:
    assert BrokerLists().share([]) is NO_BROKERS


def test_lists_are_forgotten_when_there_are_too_many() -> None:
    lists = BrokerLists()
    for broker_id in range(2 * updates.LISTS_MAX + 1):
        assert lists.share([broker_id, 0]) == [broker_id, 0]
        assert len(lists._lists) <= updates.LISTS_MAX
