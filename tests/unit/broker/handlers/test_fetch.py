"""Fetch: waiting, epochs, sessions. Positions, limits and isolation are in tests/compat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.tree import Create
from minibroker.broker.partitions.role import Follower
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.fetch import ReplicaState
from tests.support.in_process import InProcessBroker, ManualClock, batch_of
from tests.support.record_requests import (
    asking,
    fill,
    first,
    id_of,
    part,
    parts_of_answer,
)
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.in_process import RawClient

VERSIONS = range(4, 19)
ONE_BATCH = len(batch_of(b"x"))


# Reading.


# Epochs.


async def test_leader_epochs_are_checked_and_the_leader_is_told(
    running: InProcessBroker, client: RawClient
) -> None:
    newer = first(await client.call(asking(part(current_leader_epoch=5)), 11))
    assert newer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    partition = running.partitions.get("t", 0)
    partition.take_role(partition.role._replace(epoch=3))
    request = asking(part(current_leader_epoch=2), topic_id=id_of(running))
    answer = await client.call(request, 16)
    assert first(answer).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert first(answer).current_leader.leader_id == 0
    assert [(e.node_id, e.port) for e in answer.node_endpoints] == [(0, running.address[1])]


async def test_a_follower_compares_topic_id_then_leader_epoch_then_its_role(
    running: InProcessBroker, client: RawClient
) -> None:
    partition = running.partitions.get("t", 0)
    partition.take_role(Follower(epoch=3, partition_epoch=-1, leader=5))
    ours = id_of(running)
    for epoch, code in (
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (3, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ):
        request = asking(part(current_leader_epoch=epoch), topic_id=ours)
        request.replica_state = ReplicaState(replica_id=9)  # only a consumer may read it
        assert first(await client.call(request, 16)).error_code == code
    partition.topic_id = b"\7" * 16
    request = asking(part(current_leader_epoch=2), topic_id=ours)
    answer = first(await client.call(request, 16))
    assert answer.error_code == ErrorCode.INCONSISTENT_TOPIC_ID


async def test_a_topic_that_got_its_id_while_it_was_served_is_fetched_by_it(tmp_path: Path) -> None:
    """A broker before Kafka 2.8 made it, without an id. The controller gives it one behind its
    partitions.
    """
    clock = ManualClock()
    home = SharedTree(tmp_path / "metadata.db", clock)
    state = b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0]}'
    async with InProcessBroker(tmp_path, clock=clock, tree=home.session()) as running:
        await running.broker.cluster.tree.multi(
            [
                Create(paths.topic("t"), b'{"version":1,"partitions":{"0":[0]}}'),
                Create(paths.partitions("t")),
                Create(paths.partition("t", 0)),
                Create(paths.partition_state("t", 0), state),
            ]
        )
        await eventually(lambda: any(id_of(running)))
        async with await running.connect() as client:
            await fill(client, b"a")
            answer = first(await client.call(asking(part(), topic_id=id_of(running)), 16))
        assert (answer.error_code, len(answer.records)) == (0, ONE_BATCH)


async def test_an_offset_before_the_start_is_out_of_range_whatever_its_epoch(
    running: InProcessBroker, client: RawClient
) -> None:
    await fill(client, b"a", b"b")
    partition = running.partitions.get("t", 0)
    partition.log.begin_leader_epoch(2)
    running.partitions.delete_records(partition, 1)
    answered_part = first(await client.call(asking(part(offset=0, last_fetched_epoch=1)), 12))
    assert (answered_part.error_code, answered_part.diverging_epoch) == (
        ErrorCode.OFFSET_OUT_OF_RANGE,
        None,
    )


# Isolation.


# Waiting.


async def test_it_waits_until_there_is_enough(running: InProcessBroker, client: RawClient) -> None:
    client.send(asking(part(0), part(1), max_wait_ms=60_000, min_bytes=2 * ONE_BATCH), 11)
    await eventually(lambda: running.partitions.get("t", 0).waiters)
    async with await running.connect() as producer:
        await fill(producer, b"x", index=0)
        assert running.partitions.get("t", 0).waiters
        await fill(producer, b"x", index=1)
    assert {i: size for i, (_, _, size) in parts_of_answer(await client.receive()).items()} == {
        0: ONE_BATCH,
        1: ONE_BATCH,
    }


async def test_min_bytes_is_at_most_max_bytes(client: RawClient) -> None:
    await fill(client, b"a" * 200)
    request = asking(part(), max_wait_ms=60_000, min_bytes=1 << 30, max_bytes=100)
    assert parts_of_answer(await client.call(request, 11))[0][2] > 200


async def test_a_topic_deleted_meanwhile_is_told(
    running: InProcessBroker, client: RawClient
) -> None:
    client.send(asking(part(), max_wait_ms=60_000), 11)
    await eventually(lambda: running.partitions.get("t", 0).waiters)
    await running.broker.cluster.delete_topic("t")
    assert first(await client.receive()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# Sessions.


async def test_a_session_goes_on_with_one_connection_only(
    running: InProcessBroker, client: RawClient
) -> None:
    answer = await client.call(asking(part(0), session=(0, 0)), 12)
    session_id = answer.session_id
    client.send(asking(session=(session_id, 1), max_wait_ms=60_000), 12)
    await eventually(lambda: running.partitions.get("t", 0).waiters)
    async with await running.connect() as other:
        assert (await other.call(asking(session=(session_id, 2)), 12)).error_code == 0
        await fill(other, b"x")
        stale = await client.receive()
        assert stale.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert stale.session_id == session_id
        assert parts_of_answer(await other.call(asking(session=(session_id, 3)), 12)) == {
            0: (0, 1, ONE_BATCH)
        }
