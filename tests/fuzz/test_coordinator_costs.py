"""The net of costs (`test_costs.py`) for what coordinators do with state that is there.

A request of that net finds no group, member or transaction. Here they are there, as many as the
request names: each of these requests does its work, at two sizes, and no step holds the loop for
long.

The end of a rebalance is not among them: the group's record has all its members, and one step
stores it and answers them, some 9 µs for each. Every member had to join before, and
`group.max.size` bounds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.groups.member_requests import Join, JoinAnswer
from minibroker.broker.server import dispatch
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from minibroker.kafka.protocol.messages.delete_groups import DeleteGroupsRequest
from minibroker.kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from minibroker.kafka.protocol.messages.end_txn import EndTxnRequest
from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from minibroker.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from minibroker.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from minibroker.kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from minibroker.kafka.protocol.messages.list_groups import ListGroupsRequest
from minibroker.kafka.protocol.messages.list_transactions import ListTransactionsRequest
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from minibroker.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from minibroker.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from minibroker.kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from minibroker.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.fuzz.costly import HOLD_FREE, HOLD_GROWTH_MAX, LARGE, SMALL
from tests.support.counted_work import CountedWork
from tests.support.in_process import InProcessBroker, RawClient
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Call = tuple[Any, int]
    """A request and its version."""
    Scene = Callable[["Client", int], Awaitable[Call]]


class Client(RawClient):
    """A client that knows its broker."""

    broker: InProcessBroker


WIDE = "wide"
"""A topic of as many partitions as the largest request names."""


@pytest.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    """A client of a broker all of whose slices end at once; groups and ids have coordinators."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    monkeypatch.setattr(dispatch, "LARGE_FRAME_BYTES", 0)
    settings = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    async with InProcessBroker(tmp_path, settings) as broker:
        await broker.create_topic(WIDE, LARGE)
        connection = await broker.connect()
        async with Client(connection.reader, connection.writer, "raw") as client:
            client.broker = broker
            for kind in (0, 1):
                answer = await client.call(FindCoordinatorRequest(key="x", key_type=kind), 2)
                assert answer.error_code == 0
            yield client


def commit_of(group_id: str, count: int) -> OffsetCommitRequest:
    """Commit an offset of each of so many partitions."""
    partitions = [OffsetCommitRequestPartition(partition_index=index) for index in range(count)]
    topics = [OffsetCommitRequestTopic(name=WIDE, partitions=partitions)]
    return OffsetCommitRequest(group_id=group_id, topics=topics)


async def join_group_of(client: RawClient, group_id: str) -> Any:
    """Join a group, and return the answer."""
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="p", metadata=b"")],
    )
    return await client.call(request, 3)


async def with_members(client: Client, group_id: str, count: int) -> None:
    """Have so many static members, i0, i1 …, join a group in one step; all are answered."""
    groups = client.broker.broker.services.groups
    answers: list[JoinAnswer] = []
    for number in range(count):
        join = Join(
            member_id="",
            instance_id=f"i{number}",
            client_id="c",
            client_host="/127.0.0.1",
            protocol_type="consumer",
            protocols=(("p", b""),),
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
        )
        groups.classic.join(groups.shard(group_id), group_id, join, answers.append)
    await eventually(lambda: len(answers) == count)
    assert {answer.error for answer in answers} == {ErrorCode.NONE}


async def begin_session(client: Client, transactional_id: str) -> Any:
    """Begin the session of a transactional id, and return the answer."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    while (answer := await client.call(request, 1)).error_code:
        assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return answer


async def begin_transaction(client: Client, transactional_id: str, count: int) -> Any:
    """Begin a transaction of so many partitions, and return the answer of its session."""
    session = await begin_session(client, transactional_id)
    request = _adding(transactional_id, session, count)
    answer = await client.call(request, 3)
    (topic,) = answer.results_by_topic_v3_and_below
    assert {part.partition_error_code for part in topic.results_by_partition} == {0}
    return session


def _adding(transactional_id: str, session: Any, count: int) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic(name=WIDE, partitions=list(range(count)))]
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=session.producer_id,
        v3_and_below_producer_epoch=session.producer_epoch,
        v3_and_below_topics=topics,
    )


async def offset_commit(_client: Client, count: int) -> Call:
    return commit_of("g", count), 8


async def offset_fetch_of_all(client: Client, count: int) -> Call:
    await client.call(commit_of(f"g{count}", count), 8)
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=f"g{count}", topics=None)]
    ), 8


async def offset_delete(client: Client, count: int) -> Call:
    await client.call(commit_of("g", count), 8)
    partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in range(count)]
    topics = [OffsetDeleteRequestTopic(name=WIDE, partitions=partitions)]
    return OffsetDeleteRequest(group_id="g", topics=topics), 0


async def delete_groups(client: Client, count: int) -> Call:
    names = [f"g{number}" for number in range(count)]
    for name in names:
        await client.call(commit_of(name, 1), 8)
    return DeleteGroupsRequest(groups_names=names), 2


async def list_groups(client: Client, count: int) -> Call:
    for number in range(count):
        await client.call(commit_of(f"g{number}", 1), 8)
    return ListGroupsRequest(), 4


async def join_group(_client: Client, count: int) -> Call:
    protocols = [JoinGroupRequestProtocol(name=f"p{n}", metadata=b"") for n in range(count)]
    return (
        JoinGroupRequest(
            group_id=f"g{count}",
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=protocols,
        ),
        3,
    )


async def sync_group(client: Client, count: int) -> Call:
    leader = await join_group_of(client, f"g{count}")
    shares = [
        SyncGroupRequestAssignment(member_id=f"m{number}", assignment=b"s")
        for number in range(count)
    ]
    return (
        SyncGroupRequest(
            group_id=f"g{count}",
            member_id=leader.member_id,
            generation_id=leader.generation_id,
            assignments=shares,
        ),
        3,
    )


async def leave_group(client: Client, count: int) -> Call:
    await with_members(client, f"g{count}", count)
    members = [
        MemberIdentity(member_id="", group_instance_id=f"i{number}") for number in range(count)
    ]
    return LeaveGroupRequest(group_id=f"g{count}", members=members), 4


async def leave_group_of_strangers(client: Client, count: int) -> Call:
    await join_group_of(client, f"g{count}")
    members = [MemberIdentity(member_id=f"m{number}") for number in range(count)]
    return LeaveGroupRequest(group_id=f"g{count}", members=members), 4


async def describe_groups(client: Client, count: int) -> Call:
    await with_members(client, f"g{count}", count)
    return DescribeGroupsRequest(groups=[f"g{count}"]), 4


async def add_partitions_to_txn(client: Client, count: int) -> Call:
    session = await begin_session(client, f"x{count}")
    return _adding(f"x{count}", session, count), 3


async def list_transactions(client: Client, count: int) -> Call:
    for number in range(count):
        await begin_session(client, f"x{number}")
    return ListTransactionsRequest(), 0


async def end_txn(client: Client, count: int) -> Call:
    session = await begin_transaction(client, f"x{count}", count)
    return (
        EndTxnRequest(
            transactional_id=f"x{count}",
            producer_id=session.producer_id,
            producer_epoch=session.producer_epoch,
            committed=True,
        ),
        1,
    )


async def txn_offset_commit(client: Client, count: int) -> Call:
    session = await begin_session(client, f"x{count}")
    partitions = [TxnOffsetCommitRequestPartition(partition_index=index) for index in range(count)]
    return (
        TxnOffsetCommitRequest(
            transactional_id=f"x{count}",
            group_id="g",
            producer_id=session.producer_id,
            producer_epoch=session.producer_epoch,
            topics=[TxnOffsetCommitRequestTopic(name=WIDE, partitions=partitions)],
        ),
        5,
    )


SCENES = [
    offset_commit,
    offset_fetch_of_all,
    offset_delete,
    delete_groups,
    list_groups,
    join_group,
    sync_group,
    leave_group,
    leave_group_of_strangers,
    describe_groups,
    list_transactions,
    add_partitions_to_txn,
    end_txn,
    txn_offset_commit,
]


async def hold_of(client: Client, scene: Scene, count: int) -> int:
    """Return the lines of the longest step of a request, which has to succeed."""
    request, version = await scene(client, count)
    client.send(request, version)
    with CountedWork() as work:
        frame = await client.receive_frame()
    assert frame
    client._unanswered.clear()
    return work.longest_hold


@pytest.mark.pure("counts lines of Python between two turns of the loop")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_no_step_holds_the_loop_for_long(client: Client, scene: Scene) -> None:
    await hold_of(client, scene, 1)  # imports, caches
    small, large = [await hold_of(client, scene, count) for count in (SMALL, LARGE)]
    bound = max(HOLD_FREE, small + HOLD_GROWTH_MAX * (LARGE - SMALL))
    assert large <= bound, f"{SMALL}: {small}, {LARGE}: {large}"
