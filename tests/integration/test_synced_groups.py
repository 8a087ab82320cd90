"""With `log.flush.interval.messages=1` a coordinator's answers wait for fsync, as Kafka's do."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.groups.offsets import CommittedOffset
from minibroker.broker.handlers.common.transaction_verification import Protocol, Question, verify
from minibroker.broker.partitions.markers import EndOfTransaction
from minibroker.broker.slices import run_all
from minibroker.broker.storage.files import Files
from minibroker.broker.transactions.state import TransactionState
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import NO_PRODUCER_ID, TopicPartition
from minibroker.kafka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from minibroker.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from minibroker.kafka.protocol.messages.delete_groups import DeleteGroupsRequest
from minibroker.kafka.protocol.messages.end_txn import EndTxnRequest
from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest
from minibroker.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from minibroker.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from minibroker.kafka.protocol.messages.leave_group import LeaveGroupRequest
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
from minibroker.kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from minibroker.kafka.records.batch import iterate_headers
from tests.support.held_disk import HeldDisk
from tests.support.in_process import InProcessBroker, RawClient, batch_of
from tests.support.record_requests import asking, first, part, produce
from tests.support.transactions import transactional_world
from tests.support.waiting import eventually
from tests.support.watched_files import WatchedFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from minibroker.broker.worker import Done
    from tests.support.transactions import World


SETTINGS = {
    "log.flush.interval.messages": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
DELETED_TOPIC = OffsetDeleteRequestTopic(
    name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
)


@pytest.fixture
async def disk() -> HeldDisk:
    return HeldDisk()


@pytest.fixture
async def broker(tmp_path: Path, disk: HeldDisk) -> AsyncIterator[InProcessBroker]:
    async with InProcessBroker(tmp_path, SETTINGS) as running:
        running.partitions.appends.flusher = disk.flusher()
        await running.create_topic("t")
        async with await running.connect() as client:
            await client.call(FindCoordinatorRequest(key="g"), 2)
        yield running
        disk.go_on()


def _join(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


async def _is_unanswered(broker: InProcessBroker, client: RawClient) -> asyncio.Task[Any]:
    """Return the pending answer, after another client was answered."""
    answer = asyncio.create_task(client.receive())
    async with await broker.connect() as other:
        for _ in range(3):
            await other.call(ApiVersionsRequest(), 0)
    assert not answer.done()
    return answer


def _unsynced(broker: InProcessBroker) -> int:
    log = broker.partitions.get("__consumer_offsets", 0).log
    return log.log_end_offset - log.recovery_point


async def test_a_commit_is_answered_when_it_is_durable(
    broker: InProcessBroker, disk: HeldDisk
) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    async with await broker.connect() as client:
        disk.hold()
        client.send(OffsetCommitRequest(group_id="g", topics=topics), 2)
        answer = await _is_unanswered(broker, client)
        assert _unsynced(broker) == 1
        disk.go_on()
        assert (await answer).topics[0].partitions[0].error_code == 0
        assert _unsynced(broker) == 0


async def test_every_member_gets_its_share_when_it_is_durable(
    broker: InProcessBroker, disk: HeldDisk
) -> None:
    """The follower waits on its own connection for the assignment that the leader stored."""
    async with await broker.connect() as first, await broker.connect() as second:
        leader, follower = await _two_members(first, second)
        assert leader.leader == leader.member_id
        disk.hold()
        sync = {"group_id": "g", "generation_id": leader.generation_id}
        second.send(SyncGroupRequest(member_id=follower.member_id, **sync), 1)
        async with await broker.connect() as other:
            await other.call(ApiVersionsRequest(), 0)
        share = [SyncGroupRequestAssignment(member_id=follower.member_id, assignment=b"share")]
        first.send(SyncGroupRequest(member_id=leader.member_id, assignments=share, **sync), 1)
        answers = [await _is_unanswered(broker, client) for client in (first, second)]
        assert _unsynced(broker) == 1
        disk.go_on()
        assert [(await answer).assignment for answer in answers] == [b"", b"share"]
        assert _unsynced(broker) == 0


async def _two_members(first: RawClient, second: RawClient) -> tuple[Any, Any]:
    """Return JoinGroup's answers to the leader and to the follower of a new generation."""
    alone = await first.call(_join(), 3)
    second.send(_join(), 3)
    beat = HeartbeatRequest(
        group_id="g", generation_id=alone.generation_id, member_id=alone.member_id
    )
    while (await first.call(beat, 3)).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
        continue
    leader = await first.call(_join(alone.member_id), 3)
    return leader, await second.receive()


@pytest.mark.parametrize("is_held", [False, True])
async def test_nobody_gets_a_share_that_the_disk_has_refused(
    broker: InProcessBroker, disk: HeldDisk, is_held: bool
) -> None:
    """Neither the leader, whose request stored it, nor the follower gets it."""
    async with await broker.connect() as first, await broker.connect() as second:
        leader, follower = await _two_members(first, second)
        sync = {"group_id": "g", "generation_id": leader.generation_id}
        second.send(SyncGroupRequest(member_id=follower.member_id, **sync), 1)
        async with await broker.connect() as other:
            await other.call(ApiVersionsRequest(), 0)
        disk.error = StorageError("fsync: no space left on device")
        if is_held:
            disk.hold()
        share = [SyncGroupRequestAssignment(member_id=follower.member_id, assignment=b"share")]
        first.send(SyncGroupRequest(member_id=leader.member_id, assignments=share, **sync), 1)
        if is_held:
            answers = [await _is_unanswered(broker, client) for client in (first, second)]
            disk.go_on()
            responses = [await answer for answer in answers]
        else:
            responses = [await client.receive() for client in (first, second)]
        assert [(answer.error_code, answer.assignment) for answer in responses] == [
            (ErrorCode.NOT_COORDINATOR, b"")
        ] * 2


@pytest.mark.parametrize("version", [2, 7], ids=["without static members", "with static members"])
async def test_a_commit_that_the_disk_has_refused_is_not_acknowledged(
    broker: InProcessBroker, disk: HeldDisk, version: int
) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    request = OffsetCommitRequest(group_id="g", topics=topics)
    async with await broker.connect() as client:
        disk.error = StorageError("fsync: no space left on device")
        answer = await client.call(request, version)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
        disk.error = None
        assert (await client.call(request, version)).topics[0].partitions[0].error_code == 0


class NextTurnDisk(HeldDisk):
    """A disk whose fsyncs end in the next turn of the loop."""

    def run_then(self, task: Callable[[], None], done: Done) -> None:
        asyncio.get_running_loop().call_soon(super().run_then, task, done)


@pytest.mark.parametrize(
    ("request_type", "version"), [(OffsetCommitRequest, 2), (OffsetDeleteRequest, 0)]
)
async def test_an_fsync_that_fails_between_two_steps_of_a_request_is_not_acknowledged(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, request_type: Any, version: int
) -> None:
    """Each step of a request gives the loop back, and the disk refuses behind the first write."""
    async with await broker.connect() as client:
        commit = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t")])
        # One partition would be answered in one step.
        commit.topics[0].partitions = [
            OffsetCommitRequestPartition(partition_index=0, committed_offset=number)
            for number in range(2)
        ]
        assert (await client.call(commit, 2)).topics[0].partitions[0].error_code == 0
        disk = NextTurnDisk()
        broker.partitions.appends.flusher = disk.flusher()
        disk.error = StorageError("fsync: no space left on device")
        monkeypatch.setattr(slices, "SLICE_S", 0.0)
        request = commit
        if request_type is OffsetDeleteRequest:
            request = OffsetDeleteRequest(group_id="g", topics=[DELETED_TOPIC])
        answer = await client.call(request, version)
        code = getattr(answer, "error_code", 0) or answer.topics[0].partitions[0].error_code
        assert code == ErrorCode.NOT_COORDINATOR


async def test_a_transaction_that_the_disk_has_refused_is_not_begun(
    broker: InProcessBroker, disk: HeldDisk
) -> None:
    async with await broker.connect() as client:
        find = FindCoordinatorRequest(key="x", key_type=1)
        assert (await client.call(find, 2)).error_code == 0
        init = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
        while (await client.call(init, 1)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            continue
        disk.error = StorageError("fsync: no space left on device")
        answer = await client.call(init, 1)
        assert (answer.error_code, answer.producer_id) == (ErrorCode.NOT_COORDINATOR, -1)
        disk.error = None
        assert (await client.call(init, 1)).error_code == 0


PRODUCER = {
    "v3_and_below_transactional_id": "x",
    "v3_and_below_producer_epoch": 0,
    "v3_and_below_topics": [AddPartitionsToTxnTopic(name="t", partitions=[0])],
}


async def _begin_session(client: RawClient) -> int:
    """Return the producer id of transactional id x."""
    find = FindCoordinatorRequest(key="x", key_type=1)
    assert (await client.call(find, 2)).error_code == 0
    init = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    while (answer := await client.call(init, 1)).error_code == LOADING:
        continue
    assert answer.error_code == 0
    producer_id: int = answer.producer_id
    return producer_id


@pytest.mark.parametrize("is_refused", [False, True])
async def test_nobody_hears_of_a_transaction_before_it_is_durable(
    broker: InProcessBroker, disk: HeldDisk, is_refused: bool
) -> None:
    """A request on another connection that records nothing gets no answer about it either."""
    async with await broker.connect() as first, await broker.connect() as second:
        producer_id = await _begin_session(first)
        add = AddPartitionsToTxnRequest(v3_and_below_producer_id=producer_id, **PRODUCER)
        await second.call(ApiVersionsRequest(), 0)
        disk.hold()
        first.send(add, 3)
        first_answer = await _is_unanswered(broker, first)
        second.send(add, 3)
        second_answer = await _is_unanswered(broker, second)
        if is_refused:
            disk.error = StorageError("fsync: no space left on device")
        disk.go_on()
        codes = [
            answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            for answer in (await first_answer, await second_answer)
        ]
        assert codes == [ErrorCode.NOT_COORDINATOR if is_refused else ErrorCode.NONE] * 2


@pytest.mark.parametrize("is_refused", [False, True])
@pytest.mark.parametrize(
    ("change", "version"),
    [
        (EndTxnRequest(transactional_id="x", committed=True), 3),
        (AddOffsetsToTxnRequest(transactional_id="x", group_id="g"), 3),
        (InitProducerIdRequest(transactional_id="y", transaction_timeout_ms=60_000), 1),
        (OffsetDeleteRequest(group_id="stored", topics=[DELETED_TOPIC]), 0),
        (LeaveGroupRequest(group_id="g"), 2),
    ],
    ids=["EndTxn", "AddOffsetsToTxn", "InitProducerId", "OffsetDelete", "LeaveGroup"],
)
async def test_an_answer_waits_for_its_own_record(
    broker: InProcessBroker, disk: HeldDisk, change: Any, version: int, is_refused: bool
) -> None:
    async with await broker.connect() as client:
        producer_id = await _begin_session(client)
        add = AddPartitionsToTxnRequest(v3_and_below_producer_id=producer_id, **PRODUCER)
        await client.call(add, 3)
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
        await client.call(OffsetCommitRequest(group_id="stored", topics=topics), 2)
        if isinstance(change, LeaveGroupRequest):
            change.member_id = (await client.call(_join(), 3)).member_id
        elif not isinstance(change, InitProducerIdRequest | OffsetDeleteRequest):
            change.producer_id = producer_id
        disk.hold()
        client.send(change, version)
        answer = await _is_unanswered(broker, client)
        if is_refused:
            disk.error = StorageError("fsync: no space left on device")
        disk.go_on()
        expected = ErrorCode.NOT_COORDINATOR if is_refused else ErrorCode.NONE
        assert (await answer).error_code == expected


@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_group_is_deleted_when_that_is_durable(
    broker: InProcessBroker, disk: HeldDisk, is_refused: bool
) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    async with await broker.connect() as client:
        await client.call(OffsetCommitRequest(group_id="stored", topics=topics), 2)
        disk.hold()
        client.send(DeleteGroupsRequest(groups_names=["stored", "unknown"]), 1)
        answer = await _is_unanswered(broker, client)
        if is_refused:
            disk.error = StorageError("fsync: no space left on device")
        disk.go_on()
        assert [result.error_code for result in (await answer).results] == [
            ErrorCode.NOT_COORDINATOR if is_refused else ErrorCode.NONE,
            ErrorCode.GROUP_ID_NOT_FOUND,
        ]


async def test_a_marker_ends_its_own_transaction_and_not_the_next(
    broker: InProcessBroker, disk: HeldDisk
) -> None:
    """Another group's commit stands behind the marker, and is synced when the producer's next
    transaction has its offsets. That one is aborted.
    """
    markers = broker.broker.services.transactions.markers
    name = TopicPartition("__consumer_offsets", 0)
    answers: list[dict[TopicPartition, ErrorCode]] = []

    def commit(group_id: str, offset: int, producer_id: int = NO_PRODUCER_ID) -> None:
        shard = broker.broker.services.groups.shard(group_id)
        commits = [((group_id, "t", 0), CommittedOffset(offset, -1, "", 0))]
        batch = run_all(shard.commit_batch(commits, producer_id=producer_id, producer_epoch=0))
        shard.commit_offsets(group_id, commits, batch, producer_id=producer_id)

    def committed() -> int:
        offset = broker.broker.services.groups.shard("g").offsets.visible("g", "t", 0)
        assert offset is not None
        return offset.offset

    commit("g", 1, producer_id=7)
    disk.hold()
    markers.write(EndOfTransaction(7, 0, 0, is_commit=True), [name], answers.append)
    commit("other", 5)
    disk.go_on_once()
    assert answers == [{name: ErrorCode.NONE}]
    assert committed() == 1
    commit("g", 2, producer_id=7)
    disk.go_on()
    assert committed() == 1
    markers.write(EndOfTransaction(7, 0, 0, is_commit=False), [name], answers.append)
    assert answers == [{name: ErrorCode.NONE}] * 2
    assert committed() == 1


async def test_a_disk_that_cannot_sync_any_more_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a real fsync: the only log directory is lost, and the broker with it."""

    def refuse(_fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    request = OffsetCommitRequest(group_id="g", topics=topics)
    running = InProcessBroker(tmp_path, SETTINGS)
    await running.__aenter__()
    await running.create_topic("t")
    async with await running.connect() as client:
        assert (await client.call(FindCoordinatorRequest(key="g"), 2)).error_code == 0
        answer = await client.call(request, 7)
        assert answer.topics[0].partitions[0].error_code == 0
        with monkeypatch.context() as patch:
            patch.setattr(Files, "sync", staticmethod(refuse))
            answer = await client.call(request, 7)
            assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
            assert "all log directories have failed" in await running.broker.failure
    await running.broker.abandon()


@pytest.mark.parametrize("is_refused", [False, True])
async def test_nobody_hears_of_a_member_before_it_is_durable(
    broker: InProcessBroker, disk: HeldDisk, is_refused: bool
) -> None:
    """A request on another connection that records nothing gets no answer about it either."""
    join = ConsumerGroupHeartbeatRequest(
        group_id="c",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    beat = ConsumerGroupHeartbeatRequest(group_id="c", member_id="m", member_epoch=2)
    async with await broker.connect() as first, await broker.connect() as second:
        await second.call(ApiVersionsRequest(), 0)
        disk.hold()
        first.send(join, 1)
        join_answer = await _is_unanswered(broker, first)
        second.send(beat, 1)
        beat_answer = await _is_unanswered(broker, second)
        assert _unsynced(broker) > 0
        if is_refused:
            disk.error = StorageError("fsync: no space left on device")
        disk.go_on()
        answers = [await join_answer, await beat_answer]
        expected = (ErrorCode.NOT_COORDINATOR, 0) if is_refused else (ErrorCode.NONE, 2)
        assert [(answer.error_code, answer.member_epoch) for answer in answers] == [expected] * 2


def _beat(member_epoch: int, group_id: str = "g") -> ConsumerGroupHeartbeatRequest:
    """Return a heartbeat of a member of the consumer protocol: epoch 0 joins, epoch -1 leaves."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id="m",
        member_epoch=member_epoch,
        rebalance_timeout_ms=30_000 if member_epoch == 0 else -1,
        subscribed_topic_names=["t"] if member_epoch == 0 else None,
        topic_partitions=[] if member_epoch == 0 else None,
    )


async def test_a_join_that_made_its_group_is_answered_while_the_group_is_deleted(
    broker: InProcessBroker, disk: HeldDisk
) -> None:
    """The group has offsets, so the deletion takes several steps. The record of the join becomes
    durable between two of them.
    """
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    groups = broker.broker.services.groups
    async with await broker.connect() as client:
        for member_epoch in (0, -1):
            assert (await client.call(_beat(member_epoch), 1)).error_code == 0
        commit = OffsetCommitRequest(group_id="g", topics=topics)
        assert (await client.call(commit, 2)).topics[0].partitions[0].error_code == 0
        disk.hold()
        client.send(_join(), 3)
        answer = await _is_unanswered(broker, client)
        deletion = groups.delete_group("g")
        next(deletion)
        disk.go_on()
        for _ in deletion:
            continue
        assert groups.find("g") is None
        async with asyncio.timeout(10):
            assert (await answer).error_code == LOADING
        assert (await client.call(_join(), 3)).error_code == 0


async def test_a_join_that_made_its_group_leaves_a_member_of_the_other_protocol_alone(
    broker: InProcessBroker, disk: HeldDisk
) -> None:
    """A member of the consumer protocol comes before the record of the join is durable."""
    async with await broker.connect() as client, await broker.connect() as other:
        await other.call(ApiVersionsRequest(), 0)
        disk.hold()
        client.send(_join(), 3)
        answer = await _is_unanswered(broker, client)
        other.send(_beat(0), 1)
        other_answer = await _is_unanswered(broker, other)
        disk.go_on()
        assert (await answer).error_code == LOADING
        joined = await other_answer
        assert joined.error_code == 0
        assert (await other.call(_beat(joined.member_epoch), 1)).error_code == 0


async def test_a_member_that_joins_again_is_answered_where_the_log_loses_the_upgrade_of_its_group(
    broker: InProcessBroker, disk: HeldDisk
) -> None:
    """The second member waits for the first one. Then a member of the consumer protocol comes."""
    join = _join()
    join.protocols[0].metadata = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
    async with await broker.connect() as first, await broker.connect() as second:
        assert (await first.call(join, 3)).error_code == 0
        second.send(join, 3)
        answer = await _is_unanswered(broker, second)
        disk.hold()
        first.send(_beat(0), 1)
        upgrade = await _is_unanswered(broker, first)
        disk.error = StorageError("fsync: no space left on device")
        disk.go_on()
        assert (await upgrade).error_code == ErrorCode.NOT_COORDINATOR
        async with asyncio.timeout(10):
            assert (await answer).error_code == ErrorCode.NOT_COORDINATOR


# With `log.flush.interval.messages=1` a step of a transaction begins when the last is durable.


T0 = TopicPartition("t", 0)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with transactional_world(tmp_path, **{"log.flush.interval.messages": "1"}) as new_world:
        yield new_world


async def turns(count: int = 10) -> None:
    """Let all tasks run that wait only for the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


def hold_fsyncs(world: World) -> HeldDisk:
    disk = HeldDisk()
    world.running.partitions.appends.flusher = disk.flusher()
    disk.hold()
    return disk


@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
async def test_markers_follow_a_durable_decision_and_the_end_follows_durable_markers(
    world: World, is_commit: bool
) -> None:
    producer = await world.begin()
    await world.add(producer, 0)
    await world.produce(producer, b"a")
    data = world.running.partitions.get("t", 0)
    old_end = data.log_end_offset
    disk = hold_fsyncs(world)
    world.coordinator.end("x", *producer, is_commit=is_commit, client_version=0)
    await turns()
    assert data.log_end_offset == old_end, "a marker before the decision was durable"
    disk.go_on_once()
    await eventually(lambda: data.log_end_offset == old_end + 1)
    prepared = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
    assert world.state().state == prepared, "complete before the marker was durable"
    disk.go_on()
    ended = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
    await eventually(lambda: world.state().state == ended)


@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_batch_waits_until_its_transaction_is_durable(
    world: World, is_refused: bool
) -> None:
    """Otherwise a power cut could leave a batch of a transaction that no coordinator knows."""
    producer = await world.begin()
    disk = hold_fsyncs(world)
    question = Question("x", *producer, {T0: 0}, Protocol.ADDING, {})
    waiting = verify(world.running.broker.services, question)
    assert not isinstance(waiting, dict)
    task = asyncio.ensure_future(waiting)
    await turns()
    assert not task.done()
    if is_refused:
        disk.error = StorageError("fsync: no")
    disk.go_on()
    assert await task == ({T0: ErrorCode.NOT_COORDINATOR} if is_refused else {})


# `flush.messages=1` with two producers: every acknowledged record can be read at once.


ROUNDS = 5


async def produced(client: RawClient, value: bytes) -> int:
    """Return the offset of an acknowledged record."""
    answer = await client.call(produce(batch_of(value)), 9)
    result = answer.responses[0].partition_responses[0]
    assert result.error_code == 0
    return int(result.base_offset)


async def read_to(client: RawClient) -> int:
    """Return up to which offset (not included) a consumer gets records that does not wait."""
    records = first(await client.call(asking(part()), 11)).records
    return max((header.last_offset + 1 for _, header in iterate_headers(records)), default=0)


@pytest.mark.parametrize("client_count", [1, 2], ids=["one by one", "side by side"])
async def test_a_consumer_sees_each_record_once_it_is_acknowledged(
    tmp_path: Path, client_count: int
) -> None:
    files = WatchedFiles()
    async with InProcessBroker(tmp_path, files=files) as running:
        await running.create_topic("t", flush_messages="1")
        directory = running.partitions.get("t", 0).log.directory
        clients = [await running.connect() for _ in range(3)]
        reader = clients.pop()
        for turn in range(ROUNDS):
            files.hold(directory)
            deliveries = [
                asyncio.create_task(produced(client, b"%d" % turn))
                for client in clients[:client_count]
            ]
            assert await files.is_held()
            if client_count == 1:
                deliveries.append(asyncio.create_task(produced(clients[1], b"behind")))
            assert await read_to(reader) <= 2 * turn
            files.release()
            for answered in asyncio.as_completed(deliveries):
                assert await is_readable_once(reader, answered)
        for client in (*clients, reader):
            await client.close()


async def is_readable_once(reader: RawClient, answered: asyncio.Future[int]) -> bool:
    """Return whether a record can be read as soon as it is acknowledged."""
    offset = await answered
    return await read_to(reader) > offset
