"""With `log.flush.interval.messages=1` a coordinator's answers wait for fsync, as Kafka's do."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.error_codes import ErrorCode
from minibroker.errors import StorageError
from minibroker.partitions.flushing import Flusher
from minibroker.partitions.manager import fail_answer
from minibroker.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from minibroker.protocol.messages.heartbeat import HeartbeatRequest
from minibroker.protocol.messages.init_producer_id import InitProducerIdRequest
from minibroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from minibroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from minibroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from minibroker.storage.files import Files
from tests.support.in_process import InProcessBroker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from minibroker.errors import MinibrokerError
    from tests.support.in_process import RawClient

SETTINGS = {
    "log.flush.interval.messages": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class Disk:
    """fsyncs wait for the test once it says `hold`."""

    def __init__(self) -> None:
        self.held: list[Callable[[], None]] | None = None
        self.error: StorageError | None = None
        """What every fsync ends with."""

    def run_then(
        self,
        task: Callable[[], None],
        done: Callable[[MinibrokerError | OSError | None], None],
    ) -> None:
        def run() -> None:
            if self.error is None:
                task()
            done(self.error)

        if self.held is None:
            run()
        else:
            self.held.append(run)

    def hold(self) -> None:
        self.held = []

    def go_on(self) -> None:
        while self.held:
            self.held.pop(0)()
        self.held = None


@pytest.fixture
async def disk() -> Disk:
    return Disk()


@pytest.fixture
async def broker(tmp_path: Path, disk: Disk) -> AsyncIterator[InProcessBroker]:
    async with InProcessBroker(tmp_path, SETTINGS) as running:
        running.partitions.flusher = Flusher(disk.run_then, fail_answer)
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
    """The answer that is not there, though others are."""
    answer = asyncio.create_task(client.receive())
    async with await broker.connect() as other:
        for _ in range(3):
            await other.call(ApiVersionsRequest(), 0)
    assert not answer.done()
    return answer


def _unsynced(broker: InProcessBroker) -> int:
    log = broker.partitions.get("__consumer_offsets", 0).log
    return log.log_end_offset - log.recovery_point


async def test_a_commit_is_answered_when_it_is_durable(broker: InProcessBroker, disk: Disk) -> None:
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
    broker: InProcessBroker, disk: Disk
) -> None:
    """The follower waits on a connection of its own for what the leader has stored."""
    async with await broker.connect() as one, await broker.connect() as two:
        leader, follower = await _two_members(one, two)
        assert leader.leader == leader.member_id
        disk.hold()
        sync = {"group_id": "g", "generation_id": leader.generation_id}
        two.send(SyncGroupRequest(member_id=follower.member_id, **sync), 1)
        async with await broker.connect() as other:
            await other.call(ApiVersionsRequest(), 0)
        share = [SyncGroupRequestAssignment(member_id=follower.member_id, assignment=b"share")]
        one.send(SyncGroupRequest(member_id=leader.member_id, assignments=share, **sync), 1)
        answers = [await _is_unanswered(broker, client) for client in (one, two)]
        assert _unsynced(broker) == 1
        disk.go_on()
        assert [(await answer).assignment for answer in answers] == [b"", b"share"]
        assert _unsynced(broker) == 0


async def _two_members(one: RawClient, two: RawClient) -> tuple[Any, Any]:
    """JoinGroup's answers to the leader and to the follower of a new generation."""
    first = await one.call(_join(), 3)
    two.send(_join(), 3)
    beat = HeartbeatRequest(
        group_id="g", generation_id=first.generation_id, member_id=first.member_id
    )
    while (await one.call(beat, 3)).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
        continue
    leader = await one.call(_join(first.member_id), 3)
    return leader, await two.receive()


@pytest.mark.parametrize("is_held", [False, True])
async def test_nobody_gets_a_share_that_the_disk_has_refused(
    broker: InProcessBroker, disk: Disk, is_held: bool
) -> None:
    """Neither the leader, whose request stored it, nor the follower on another connection."""
    async with await broker.connect() as one, await broker.connect() as two:
        leader, follower = await _two_members(one, two)
        sync = {"group_id": "g", "generation_id": leader.generation_id}
        two.send(SyncGroupRequest(member_id=follower.member_id, **sync), 1)
        async with await broker.connect() as other:
            await other.call(ApiVersionsRequest(), 0)
        disk.error = StorageError("fsync: no space left on device")
        if is_held:
            disk.hold()
        share = [SyncGroupRequestAssignment(member_id=follower.member_id, assignment=b"share")]
        one.send(SyncGroupRequest(member_id=leader.member_id, assignments=share, **sync), 1)
        if is_held:
            answers = [await _is_unanswered(broker, client) for client in (one, two)]
            disk.go_on()
            found = [await answer for answer in answers]
        else:
            found = [await client.receive() for client in (one, two)]
        assert [(one.error_code, one.assignment) for one in found] == [
            (ErrorCode.NOT_COORDINATOR, b"")
        ] * 2


@pytest.mark.parametrize("version", [2, 7], ids=["general way", "short way"])
async def test_a_commit_that_the_disk_has_refused_is_not_acknowledged(
    broker: InProcessBroker, disk: Disk, version: int
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


async def test_a_transaction_that_the_disk_has_refused_is_not_begun(
    broker: InProcessBroker, disk: Disk
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


async def test_a_disk_that_cannot_sync_any_more_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the real way, fsync and all: the only log directory is lost, and the broker with it."""

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
