"""A follower answers the Fetch of a consumer up to its own high watermark (KIP-392)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.role import Follower
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.fetch import ReplicaState
from tests.support.in_process import batch_of
from tests.support.record_requests import (
    asking,
    fill,
    first,
    id_of,
    offsets_in,
    part,
    parts_of_answer,
)
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from minibroker.broker.partitions.partition import Partition
    from tests.support.in_process import InProcessBroker, RawClient

LEADER = 9


@pytest.fixture
async def follower(running: InProcessBroker, client: RawClient) -> Partition:
    """Return `t`-0 with three records, of which one is committed; broker 9 leads it."""
    await fill(client, b"a", b"b", b"c")
    partition = running.partitions.get("t", 0)
    partition.take_role(Follower(1, -1, LEADER))
    partition.log.update_high_watermark(1)
    return partition


def take(running: InProcessBroker, partition: Partition, *, high_watermark: int) -> None:
    """Do what an answer of the leader without records does."""
    running.partitions.append_as_follower(
        partition, memoryview(b""), leader_high_watermark=high_watermark, leader_log_start_offset=0
    )


async def test_a_consumer_reads_what_the_follower_knows_to_be_committed(
    running: InProcessBroker, follower: Partition, client: RawClient
) -> None:
    partition = first(await client.call(asking(part()), 11))
    assert (partition.error_code, partition.high_watermark, partition.last_stable_offset) == (
        0,
        1,
        1,
    )
    assert offsets_in(partition.records) == [0]
    take(running, follower, high_watermark=3)
    assert offsets_in(first(await client.call(asking(part()), 11)).records) == [0, 1, 2]


async def test_older_consumers_and_brokers_need_the_leader(
    running: InProcessBroker, follower: Partition, client: RawClient
) -> None:
    partition = first(await client.call(asking(part()), 10))
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    request = asking(part(), topic_id=id_of(running))
    request.replica_state = ReplicaState(replica_id=LEADER)
    partition = first(await client.call(request, 16))
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("leader_epoch", "code"),
    [
        (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (0, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_a_broker_without_a_replica_is_refused_before_its_offset_is_looked_at(
    running: InProcessBroker, client: RawClient, leader_epoch: int, code: ErrorCode
) -> None:
    """It may have heard of its replica before the leader has."""
    await fill(client, b"a")
    place = part(offset=99, current_leader_epoch=leader_epoch)
    request = asking(place, topic_id=id_of(running))
    request.replica_state = ReplicaState(replica_id=9)
    assert first(await client.call(request, 16)).error_code == code


@pytest.mark.parametrize(
    ("offset", "code"),
    [
        (1, ErrorCode.NONE),
        (2, ErrorCode.NONE),
        (3, ErrorCode.NONE),
        (4, ErrorCode.OFFSET_OUT_OF_RANGE),
        (-1, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
async def test_an_offset_in_the_log_waits_and_one_outside_is_out_of_range(
    follower: Partition, client: RawClient, offset: int, code: ErrorCode
) -> None:
    partition = first(await client.call(asking(part(offset=offset)), 11))
    assert (partition.error_code, len(partition.records or b"")) == (code, 0)


async def test_the_leader_epoch_of_a_follower_is_compared(
    follower: Partition, client: RawClient
) -> None:
    for epoch, code in (
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (1, ErrorCode.NONE),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        partition = first(await client.call(asking(part(current_leader_epoch=epoch)), 11))
        assert partition.error_code == code


async def test_a_waiting_consumer_gets_what_the_leader_commits(
    running: InProcessBroker, follower: Partition, client: RawClient
) -> None:
    client.send(asking(part(offset=1), max_wait_ms=600_000), 11)
    await eventually(lambda: follower.waiters)
    take(running, follower, high_watermark=2)
    partition: Any = first(await client.receive())
    assert (offsets_in(partition.records), partition.high_watermark) == ([1], 2)


async def test_a_session_hears_of_the_followers_progress_and_of_a_cut(
    running: InProcessBroker, follower: Partition, client: RawClient
) -> None:
    first_answer = await client.call(asking(part(offset=1), session=(0, 0)), 11)
    session = first_answer.session_id
    assert parts_of_answer(await client.call(asking(session=(session, 1)), 11)) == {}
    take(running, follower, high_watermark=3)
    assert parts_of_answer(await client.call(asking(session=(session, 2)), 11)) == {
        0: (0, 3, 2 * len(batch_of(b"b")))
    }
    request = asking(part(offset=3), session=(session, 3))
    assert parts_of_answer(await client.call(request, 11)) == {}
    running.partitions.truncate(follower, 2)
    assert parts_of_answer(await client.call(asking(session=(session, 4)), 11)) == {
        0: (ErrorCode.OFFSET_OUT_OF_RANGE, -1, 0)
    }
