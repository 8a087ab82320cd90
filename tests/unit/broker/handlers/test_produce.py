"""Produce: headers, waits, bugs. Answers of every version are in tests/compat."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.cluster.image import BrokerInfo
from minibroker.broker.handlers import produce as produce_handler
from minibroker.broker.partitions.partition import Partition
from minibroker.broker.partitions.replicas import FollowerId
from minibroker.broker.partitions.role import Follower, Leader
from minibroker.broker.storage.files import Files
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from minibroker.kafka.records.batch import BatchHeader
from tests.support.held_disk import HeldDisk, refuse_second_write
from tests.support.in_process import batch_of
from tests.support.record_requests import id_of, produce, result, stored
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.in_process import InProcessBroker, RawClient

DAY_MS = 24 * 3600 * 1000


FOLLOWER = 9


def lead_with_follower(running: InProcessBroker, index: int = 0) -> Partition:
    """Return a partition of `t`, which `FOLLOWER` has to have, too, from now on."""
    partition = running.partitions.get("t", index)
    rules = running.partitions.replica_rules._replace(
        brokers=lambda: {FOLLOWER: BrokerInfo(FOLLOWER, ())}
    )
    role = partition.role
    assert isinstance(role, Leader)
    both = [rules.broker_id, FOLLOWER]
    partition.take_role(role._replace(replicas=both, metadata_isr=both), rules)
    return partition


# What is kept.


@pytest.mark.pure("counts calls of BatchHeader.__init__")
@pytest.mark.parametrize(
    ("version", "transactional_id", "batch"),
    [
        (2, None, batch_of(b"a")),
        (6, "no records of a transaction", batch_of(b"a")),
        (9, None, batch_of(b"a")),
        (9, "no records of a transaction", batch_of(b"a")),
        (9, "no records of a transaction", batch_of(*[b"checked beside the loop"] * 2000)),
        (13, None, batch_of(b"a" * 300, codec="lz4")),
    ],
)
async def test_a_header_is_read_once(  # noqa: PLR0917
    running: InProcessBroker,
    client: RawClient,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    transactional_id: str | None,
    batch: bytearray,
) -> None:
    """From the request to the log, on the short way and on the general one."""
    first = produce(batch_of(b"first"), topic_id=id_of(running))
    assert (await result(client, first, version)).error_code == 0
    headers: list[tuple[int, ...]] = []
    init = BatchHeader.__init__

    def count(header: BatchHeader, *fields: int) -> None:
        headers.append(fields)
        init(header, *fields)

    request = produce(batch, topic_id=id_of(running), transactional_id=transactional_id)
    request.topic_data[0].partition_data.append(PartitionProduceData(index=1, records=batch))
    monkeypatch.setattr(BatchHeader, "__init__", count)
    (topic,) = (await client.call(request, version)).responses
    monkeypatch.undo()
    assert [part.error_code for part in topic.partition_responses] == [0, 0]
    assert len(headers) == 2


async def test_several_topics_and_partitions_are_answered_in_order(
    running: InProcessBroker, client: RawClient
) -> None:
    await running.create_topic("u")
    request = ProduceRequest(
        acks=1,
        topic_data=[
            TopicProduceData(
                name="t",
                partition_data=[
                    PartitionProduceData(index=1, records=batch_of(b"a")),
                    PartitionProduceData(index=7, records=batch_of(b"b")),
                    PartitionProduceData(index=0, records=batch_of(b"c")),
                ],
            ),
            TopicProduceData(
                name="u", partition_data=[PartitionProduceData(index=0, records=batch_of(b"d"))]
            ),
        ],
    )
    answer = await client.call(request, 9)
    assert [
        (topic.name, [(part.index, part.error_code) for part in topic.partition_responses])
        for topic in answer.responses
    ] == [("t", [(1, 0), (7, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)), (0, 0)]), ("u", [(0, 0)])]


# What is refused.


@pytest.mark.parametrize("count", [1, 2000])  # the second is checked beside the loop
async def test_a_wait_for_followers_takes_no_place_of_a_task(
    running: InProcessBroker, client: RawClient, count: int
) -> None:
    """Otherwise `queued.max.requests` producers of a slow follower would hold up all others."""
    partition = lead_with_follower(running)
    request = produce(batch_of(*[b"checked beside the loop"] * count))
    request.timeout_ms = 600_000
    client.send(request, 9)
    assert partition.replicas is not None
    await eventually(lambda: partition.replicas._waiting)
    await eventually(lambda: not running.server.connections._tasks_running)
    partition.follower_fetched(FollowerId(FOLLOWER, -1), count, 0)
    (topic,) = (await client.receive()).responses
    assert topic.partition_responses[0].error_code == 0


async def test_a_leader_that_is_replaced_between_two_parts_of_a_request_does_not_acknowledge(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The follower did not have the batch, and the new leader has it removed."""
    partition = lead_with_follower(running)
    write_part = produce_handler._write_part

    def write_part_and_lose(*arguments: Any) -> None:
        write_part(*arguments)
        asyncio.get_running_loop().call_soon(partition.take_role, Follower(1, -1, FOLLOWER))

    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    monkeypatch.setattr(produce_handler, "APPENDS_MAX", 1)
    monkeypatch.setattr(produce_handler, "_write_part", write_part_and_lose)
    request = produce(batch_of(b"a"))
    request.topic_data[0].partition_data.append(
        PartitionProduceData(index=1, records=batch_of(b"b"))
    )
    (topic,) = (await client.call(request, 9)).responses
    codes = [part.error_code for part in topic.partition_responses]
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER, 0]


async def test_a_topic_that_was_made_again_meanwhile_gets_nothing(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The producer named the old topic's id. Another batch of its request is checked beside the
    loop when that one is deleted.
    """
    await running.create_topic("u")
    checker = running.partitions.checker
    check = checker.check_large

    async def check_and_replace(*arguments: Any) -> None:
        await check(*arguments)
        await running.broker.cluster.delete_topic("t")
        await running.create_topic("t")

    monkeypatch.setattr(type(checker), "check_large", lambda _self, *all: check_and_replace(*all))
    request = produce(batch_of(*[b"large"] * 2000), topic_id=id_of(running, "u"))
    request.topic_data += produce(batch_of(b"a"), topic_id=id_of(running)).topic_data
    answers = (await client.call(request, 13)).responses
    codes = [topic.partition_responses[0].error_code for topic in answers]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_ID]
    assert running.partitions.get("t", 0).log_end_offset == 0


@pytest.mark.parametrize("count", [1, 2000], ids=["in slices", "checked beside the loop"])
async def test_an_answer_waits_for_its_fsync_whoever_writes_the_batch(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Another connection commits in the turn between the append and the answer."""
    await running.create_topic("durable", flush_messages="1")
    disk = HeldDisk()
    running.partitions.appends.flusher = disk.flusher()
    disk.hold()
    append = produce_handler._append

    def append_and_commit_elsewhere(*arguments: Any) -> Any:
        appended = append(*arguments)
        asyncio.get_running_loop().call_soon(running.server.connections.dispatcher.commit)
        return appended

    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    monkeypatch.setattr(produce_handler, "_append", append_and_commit_elsewhere)
    batch = batch_of(*[b"a"] * count)
    client.send(produce(batch, topic="durable", transactional_id="no records of one"), 9)
    answer = asyncio.create_task(client.receive())
    await eventually(lambda: bool(disk.tasks))
    async with await running.connect() as other:
        for _ in range(3):
            await other.call(ApiVersionsRequest(), 0)
    assert not answer.done()
    disk.error = StorageError("fsync: no space left on device")
    disk.go_on()
    (topic,) = (await answer).responses
    assert topic.partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_directory_that_fails_behind_a_write_acknowledges_nothing_that_followers_lack(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk takes the batch of one partition and refuses that of another. Both go offline, and
    the follower leads the first one without the batch. Which of the two is written first is open.
    """
    for index in (0, 1):
        lead_with_follower(running, index)
    partitions = running.partitions
    lost = [TopicPartition("t", index) for index in (0, 1)]
    monkeypatch.setattr(
        partitions, "on_storage_error", lambda _error: partitions.take_offline(lost)
    )
    request = produce(batch_of(b"a"))
    request.topic_data[0].partition_data.append(
        PartitionProduceData(index=1, records=batch_of(b"b"))
    )
    refuse_second_write(monkeypatch)
    (topic,) = (await client.call(request, 9)).responses
    codes = [part.error_code for part in topic.partition_responses]
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR] * 2


async def test_null_records_are_refused(client: RawClient) -> None:
    """Kafka never answers such a request."""
    assert (await result(client, produce(None))).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_compressed_batches_are_kept_as_they_came(
    running: InProcessBroker, client: RawClient, codec: str
) -> None:
    batch = batch_of(b"a" * 100, codec=codec)
    assert (await result(client, produce(bytes(batch)))).error_code == 0
    assert stored(running)[21:] == bytes(batch)[21:]


async def test_an_internal_topic_is_written_by_the_broker_only(
    running: InProcessBroker, client: RawClient
) -> None:
    await running.create_topic("__consumer_offsets")
    part = await result(client, produce(batch_of(b"a"), topic="__consumer_offsets"))
    assert part.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


# A bug.


@pytest.mark.pure("replaces Partition.append")
async def test_a_bug_at_one_partition_is_its_error_and_the_others_are_written(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Partition.append

    def fail_at_0(self: Partition, *arguments: Any, **options: Any) -> Any:
        if self.index == 0:
            raise ZeroDivisionError("a bug")
        return append(self, *arguments, **options)

    monkeypatch.setattr(Partition, "append", fail_at_0)
    request = produce(batch_of(b"a"))
    request.topic_data[0].partition_data.append(
        PartitionProduceData(index=1, records=batch_of(b"b"))
    )
    (topic,) = (await client.call(request, 9)).responses
    bad, good = topic.partition_responses
    assert (bad.error_code, bad.base_offset) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1)
    assert (good.error_code, good.base_offset) == (0, 0)
    alone = await result(client, produce(batch_of(b"a")))  # by the short way
    assert (alone.error_code, alone.base_offset) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1)
    assert alone.log_start_offset == 0


async def test_a_bug_in_writing_one_partition_leaves_the_others(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Files.pwritev

    def fail_at_0(fd: int, buffers: Sequence[bytes], position: int) -> int:
        if b"worse" in b"".join(buffers):
            raise ZeroDivisionError("a bug")
        return write(fd, buffers, position)

    monkeypatch.setattr(Files, "pwritev", staticmethod(fail_at_0))
    request = produce(batch_of(b"worse"))
    request.topic_data[0].partition_data.append(
        PartitionProduceData(index=1, records=batch_of(b"b"))
    )
    (topic,) = (await client.call(request, 9)).responses
    codes = [part.error_code for part in topic.partition_responses]
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
    assert running.partitions.get("t", 1).high_watermark == 1
    monkeypatch.undo()
