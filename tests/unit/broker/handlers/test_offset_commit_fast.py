"""The short way of OffsetCommit gives the same bytes and records as the general one, or steps
aside."""

from __future__ import annotations

import errno
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.groups.records import decode_record
from minibroker.broker.handlers import offset_commit_fast
from minibroker.broker.partitions.journal_partition import decode_batches
from minibroker.broker.storage.files import Files
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import OFFSET_COMMIT
from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest
from minibroker.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from minibroker.kafka.protocol.messages.offset_fetch import OffsetFetchRequest
from minibroker.kafka.protocol.messages.sync_group import SyncGroupRequest
from minibroker.kafka.protocol.primitives import Reader, Writer
from tests.support.record_requests import id_of
from tests.unit.broker.handlers.short_way import ShortWay, answer_to

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, ManualClock, RawClient

VERSIONS = range(7, 11)
SHORT, GENERAL = "short-group", "plain-group"
"""Twins: one commits by the short way, the other by the general one. In partitions of their own."""


@pytest.fixture
async def fast(running: InProcessBroker, client: RawClient) -> ShortWay:
    """The short way of a broker that coordinates groups, observed and switchable."""
    answer = await client.call(FindCoordinatorRequest(key=SHORT), 0)
    assert answer.error_code == 0
    await client.call(OffsetCommitRequest(group_id=SHORT), 7)
    return ShortWay(running, OFFSET_COMMIT)


def commit(
    *offsets: int, group_id: str = SHORT, topic: str = "t", topic_id: bytes = bytes(16)
) -> OffsetCommitRequest:
    """Offsets of partitions 0, 1 … of one topic, by nobody's member."""
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        for index, offset in enumerate(offsets)
    ]
    topics = [OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=partitions)]
    return OffsetCommitRequest(group_id=group_id, topics=topics)


def codes(answer: Any) -> list[int]:
    return [partition.error_code for topic in answer.topics for partition in topic.partitions]


async def join(client: RawClient, group_id: str) -> tuple[str, int]:
    """The only member of a group that has its assignment: (member id, generation)."""
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    joined = await client.call(request, 3)
    assert joined.error_code == 0
    member = joined.member_id, joined.generation_id
    synced = SyncGroupRequest(group_id=group_id, member_id=member[0], generation_id=member[1])
    assert (await client.call(synced, 3)).error_code == 0
    return member


def stored(running: InProcessBroker, group_id: str) -> list[Any]:
    """Every batch in the partition of a group: header without its CRC, keys without the group."""
    index = running.broker.services.groups.journal.partition_of(group_id)
    partition = running.partitions.get("__consumer_offsets", index)
    read = partition.read(0, 1 << 24, isolation_level=0, min_one_batch=True)
    batches = []
    for header, records in decode_batches(read.records, 0, None).batches:
        entries = []
        for record in records:
            entry = decode_record(record.key, record.value)
            assert entry is not None
            if entry.kind != 1:
                continue  # the group itself, whose member has another id
            group, *rest = entry.key
            entries.append((group == group_id, rest, record.value, record.timestamp))
        facts = {name: getattr(header, name) for name in header.__slots__ if name != "crc"}
        batches.append((facts if entries else None, entries))
    return batches


def arbitrary(chance: Random, running: InProcessBroker) -> OffsetCommitRequest:
    """A request of nearly the usual shape; its group and member are filled in later."""

    def partition() -> OffsetCommitRequestPartition:
        return OffsetCommitRequestPartition(
            partition_index=chance.choice([0, 0, 1, 1, 1, 2, -1]),
            committed_offset=chance.choice([0, 5, -1, 2**40, -(2**63)]),
            committed_leader_epoch=chance.choice([-1, 0, 7]),
            committed_metadata=chance.choice(["", "", "", "", None, None, "x", "y" * 5_000]),
        )

    def topic() -> OffsetCommitRequestTopic:
        name = chance.choice(["t", "t", "t", "t", "missing"])
        count = chance.choice([1, 1, 1, 2, 3, 65, 0])
        return OffsetCommitRequestTopic(
            name=name, topic_id=id_of(running, name), partitions=[partition() for _ in range(count)]
        )

    return OffsetCommitRequest(
        group_instance_id=chance.choice([None, None, None, "", "instance"]),
        topics=[topic() for _ in range(chance.choice([1, 1, 1, 1, 1, 0, 2]))],
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("has_member", [False, True])
async def test_any_request_is_answered_and_written_alike(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int, has_member: bool
) -> None:
    members = {SHORT: ("", -1), GENERAL: ("", -1)}
    if has_member:
        members = {group_id: await join(client, group_id) for group_id in members}
    chance = Random(version)
    for _ in range(120):
        request = arbitrary(chance, running)
        as_stranger = chance.random() < 0.2
        generation_off = chance.choice([0] * 8 + [1, 3])
        answers = []
        for group_id, (member_id, generation) in members.items():
            fast.is_off = group_id == GENERAL
            request.group_id = group_id
            request.member_id = "stranger" if as_stranger else member_id
            request.generation_id_or_member_epoch = generation + generation_off
            answers.append(await answer_to(client, request, version))
        assert answers[0] == answers[1], request
        assert not any(part.staged for part in _journal_partitions(running))
    assert stored(running, SHORT) == stored(running, GENERAL)
    assert fast.taken >= 5
    assert fast.passed >= 5


def _journal_partitions(running: InProcessBroker) -> Any:
    return running.broker.services.groups.journal._partitions.values()


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_usual_commits_take_the_short_way(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int
) -> None:
    await running.create_topic("wide", 70)
    topic_id = id_of(running, "wide")
    for count in (1, 2, 50, 64):
        request = commit(*range(count), topic="wide", topic_id=topic_id)
        assert codes(await client.call(request, version)) == [0] * count
    assert (fast.taken, fast.passed) == (4, 0)
    # One more than a template has room for.
    request = commit(*range(65), topic="wide", topic_id=topic_id)
    assert codes(await client.call(request, version)) == [0] * 65
    assert (fast.taken, fast.passed) == (4, 1)
    fetched = await client.call(OffsetFetchRequest(group_id=SHORT, topics=None), 7)
    (topic,) = fetched.topics
    assert [partition.committed_offset for partition in topic.partitions] == list(range(65))


async def test_every_group_and_generation_is_its_own(
    running: InProcessBroker, client: RawClient, fast: ShortWay
) -> None:
    member_id, generation = await join(client, "members")
    request = commit(5, group_id="members")
    request.member_id = member_id
    expected = {generation: 0, generation + 1: ErrorCode.ILLEGAL_GENERATION}
    for _ in range(2):
        for wanted, code in expected.items():
            request.generation_id_or_member_epoch = wanted
            assert codes(await client.call(request, 7)) == [code]
        assert codes(await client.call(commit(6, group_id="others"), 7)) == [0]
    assert (fast.taken, fast.passed) == (4, 2)


async def test_a_commit_is_a_sign_of_life(
    client: RawClient, fast: ShortWay, clock: ManualClock
) -> None:
    member_id, generation = await join(client, SHORT)
    request = commit(5)
    request.member_id, request.generation_id_or_member_epoch = member_id, generation
    for _ in range(3):
        clock.advance(8_000)  # the session's time-out is 10 s
        assert codes(await client.call(request, 7)) == [0]
    beat = HeartbeatRequest(group_id=SHORT, member_id=member_id, generation_id=generation)
    assert (await client.call(beat, 3)).error_code == 0
    assert fast.taken == 3


@pytest.mark.parametrize("version", [9, 10])
async def test_a_deleted_topic_is_forgotten(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int
) -> None:
    old_id = id_of(running, "t")
    assert codes(await client.call(commit(5, topic_id=old_id), version)) == [0]
    await running.broker.cluster.delete_topic("t")
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(await client.call(commit(5, topic_id=old_id), version)) == [unknown]
    await running.create_topic("t", 1)
    request = commit(7, topic_id=id_of(running, "t"))
    assert codes(await client.call(request, version)) == [0]
    assert (fast.taken, fast.passed) == (2, 1)


async def test_an_added_partition_is_found(
    running: InProcessBroker, client: RawClient, fast: ShortWay
) -> None:
    request = commit(5, 6, 7)
    refused = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert sorted(codes(await client.call(request, 8))) == [0, 0, refused]
    await running.broker.cluster.create_partitions("t", 3)
    assert codes(await client.call(request, 8)) == [0, 0, 0]
    assert (fast.taken, fast.passed) == (1, 1)


async def test_a_partition_that_is_not_served_any_more_is_forgotten(
    running: InProcessBroker, client: RawClient, fast: ShortWay
) -> None:
    assert codes(await client.call(commit(5), 8)) == [0]
    await running.broker.cluster.delete_topic("__consumer_offsets")
    assert codes(await client.call(commit(5), 8)) == [ErrorCode.NOT_COORDINATOR]
    assert (fast.taken, fast.passed) == (1, 1)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_disk_that_refuses_is_in_the_answer(
    running: InProcessBroker,
    client: RawClient,
    fast: ShortWay,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    request = commit(5, 6, topic_id=id_of(running, "t"))
    assert codes(await client.call(request, version)) == [0, 0]
    with monkeypatch.context() as patch:
        patch.setattr(Files, "pwritev", refuse)
        lost = commit(7, 8, topic_id=id_of(running, "t"))
        assert codes(await client.call(lost, version)) == [ErrorCode.NOT_COORDINATOR] * 2
    fetched = await client.call(OffsetFetchRequest(group_id=SHORT, topics=None), 7)
    assert [partition.committed_offset for partition in fetched.topics[0].partitions] == [5, 6]
    assert codes(await client.call(request, version)) == [0, 0]
    assert (fast.taken, fast.passed) == (3, 0)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_commit_over_a_quota_is_answered_with_its_throttle(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int
) -> None:
    alter = running.broker.cluster.alter_config
    await alter("clients", "raw", {"request_percentage": "0.000001"})
    answer = await client.call(commit(5, 6, topic_id=id_of(running, "t")), version)
    assert (answer.throttle_time_ms, codes(answer)) == (1000, [0, 0])
    assert (fast.taken, fast.passed) == (1, 0)


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_truncation_of_a_request_is_survived(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int
) -> None:
    writer = Writer()
    commit(5, 6, topic_id=id_of(running, "t")).write(writer, version)
    body = writer.to_bytes()
    (connection,) = running.server.connections
    connection._context.version = version
    handler = running.server.dispatcher._handlers[OFFSET_COMMIT]
    for size in range(len(body)):
        view = memoryview(bytearray(body[:size]))
        assert offset_commit_fast.handle_fast(connection._context, handler, view, 0) is None
    assert not running.broker.services.commit_routes
    assert stored(running, SHORT) == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_lengths_that_lie_are_left_to_the_general_way(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int
) -> None:
    """Every byte before the partitions, one after the other, changed to what lengths fear most."""
    writer = Writer()
    commit(5, topic_id=id_of(running, "t")).write(writer, version)
    body = writer.to_bytes()
    (connection,) = running.server.connections
    context = connection._context
    context.version = version
    handler = running.server.dispatcher._handlers[OFFSET_COMMIT]
    for position in range(len(body) - 16):
        for byte in (0, 1, 0x7F, 0x80, 0xFF):
            changed = bytearray(body)
            changed[position] = byte
            view = memoryview(changed)
            answer = offset_commit_fast.handle_fast(context, handler, view, 0)
            if answer is not None:
                read = handler.request.read(Reader(view, 0), version)
                assert answer.route.group_id == read.group_id
                assert [(offset[0], offset[1]) for offset in answer.offsets] == [
                    (partition.partition_index, partition.committed_offset)
                    for partition in read.topics[0].partitions
                ]
    running.partitions.commit()


class TestCompressed:
    """`offsets.topic.compression.codec`: what is compressed has no fixed places."""

    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return {"offsets.topic.compression.codec": "1"}

    async def test_it_goes_the_general_way(
        self, running: InProcessBroker, client: RawClient, fast: ShortWay
    ) -> None:
        assert codes(await client.call(commit(5, 6), 8)) == [0, 0]
        assert (fast.taken, fast.passed) == (0, 1)


class TestOldInterBrokerProtocol:
    """`inter.broker.protocol.version` below 2.1: values have no leader epoch."""

    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return {"inter.broker.protocol.version": "2.0"}

    async def test_it_goes_the_general_way(
        self, running: InProcessBroker, client: RawClient, fast: ShortWay
    ) -> None:
        assert codes(await client.call(commit(5, 6), 8)) == [0, 0]
        assert (fast.taken, fast.passed) == (0, 1)


async def test_lengths_of_two_bytes_do_not_lead_it_astray(
    client: RawClient, fast: ShortWay
) -> None:
    """Bytes that look like the usual shape where a long member id is taken for a short one."""
    partitions = [
        [OffsetCommitRequestPartition(partition_index=index) for index in range(count)]
        for count in (1, 3)
    ]
    request = OffsetCommitRequest(
        group_id="g",
        member_id="m" * 199 + "\x19",
        group_instance_id="",
        topics=[
            OffsetCommitRequestTopic(name=name, partitions=found)
            for name, found in zip("\2\1", partitions, strict=True)
        ],
    )
    passed = fast.passed
    short = await answer_to(client, request, 8)
    assert fast.passed == passed + 1
    fast.is_off = True
    assert await answer_to(client, request, 8) == short
