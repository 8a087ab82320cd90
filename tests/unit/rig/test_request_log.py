"""The error of an answer that the log of requests shows."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from minibroker.broker.server.decoder import LARGE_FRAME_BYTES
from minibroker.broker.storage.files import Files
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.protocol.answer_error import first_error
from minibroker.kafka.protocol.messages.fetch import FetchRequest
from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from minibroker.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from minibroker.rig.fault_interceptor import FaultInterceptor
from minibroker.rig.faults import Fault
from minibroker.rig.request_log import REQUESTS_MAX, RequestLog
from tests.support.in_process import InProcessBroker, RawClient, batch_of, request_frame
from tests.support.record_requests import asking, part

if TYPE_CHECKING:
    from minibroker.testing import Broker


def test_an_answer_without_errors_has_none() -> None:
    assert first_error(None) is None
    assert first_error(MetadataResponse(topics=[MetadataResponseTopic(name="t")])) is None


def test_the_first_error_is_told_however_deep_it_lies() -> None:
    bad = MetadataResponsePartition(error_code=ErrorCode.LEADER_NOT_AVAILABLE)
    topic = MetadataResponseTopic(name="t", partitions=[MetadataResponsePartition(), bad])
    assert first_error(MetadataResponse(topics=[topic])) == "LEADER_NOT_AVAILABLE"
    assert first_error(MetadataResponse(error_code=29, topics=[topic])) == (
        "TOPIC_AUTHORIZATION_FAILED"
    )
    assert first_error(MetadataResponse(error_code=12345)) == "error 12345"


def log_of(running: InProcessBroker) -> RequestLog:
    """Return the log of the requests from now on."""
    interceptor = FaultInterceptor(running.broker.services)
    running.broker.intercept(interceptor)
    return interceptor.request_log


async def test_answers_that_wait_are_noted_when_they_are_there(
    running: InProcessBroker, client: RawClient
) -> None:
    log = log_of(running)
    await client.call(FetchRequest(max_wait_ms=1, min_bytes=1), 11)
    (request,) = log
    assert (request.api, request.version, request.client_id, request.error) == (
        "Fetch",
        11,
        "raw",
        None,
    )
    assert str(request).startswith("Fetch v11 from raw (127.0.0.1:")


async def test_a_client_that_leaves_while_it_waits_leaves_no_request(
    running: InProcessBroker,
) -> None:
    log = log_of(running)
    partition = running.partitions.get("t", 0)
    async with await running.connect() as client:
        client.send(asking(part(), max_wait_ms=60_000), 11)
        async with asyncio.timeout(60):
            while not partition.waiters:
                async with await running.connect() as other:
                    await other.call(MetadataRequest(topics=[]), 9)
    async with asyncio.timeout(60):
        while partition.waiters:
            async with await running.connect() as other:
                await other.call(MetadataRequest(topics=[]), 9)
    assert any(request.api == "Fetch" for request in log)


async def test_only_the_last_are_kept(running: InProcessBroker) -> None:
    log = log_of(running)
    assert log.maxlen == REQUESTS_MAX


def test_an_answer_that_a_full_disk_made_an_error_is_noted_as_one(kafka_broker: Broker) -> None:
    """It is known only when the answer is sent, after the write."""
    kafka_broker.create_topic("t")
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "retries": 0, "log_level": 0})
    with kafka_broker.faults.add(broker="disk_full"):
        producer.produce("t", b"v")
        producer.flush(60)
    (failed,) = kafka_broker.wait_for_requests("Produce", error="KAFKA_STORAGE_ERROR")
    assert failed.client_id == "rdkafka"
    with pytest.raises(TimeoutError, match="for 2 such requests, 1 came"):
        kafka_broker.wait_for_requests("Produce", 2, timeout_s=0.01)


async def test_a_commit_that_a_full_disk_made_an_error_is_noted_as_one(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    log = log_of(running)
    await client.call(FindCoordinatorRequest(key="g"), 0)
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
    topics = [OffsetCommitRequestTopic(name="t", partitions=partitions)]
    request = OffsetCommitRequest(group_id="g", topics=topics)
    await client.call(request, 8)
    monkeypatch.setattr(Files, "pwritev", refuse)
    await client.call(request, 8)
    assert [request.error for request in log] == [None, None, "NOT_COORDINATOR"]


async def test_a_wait_that_ends_with_an_error_is_noted_with_it(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR)

    async def away(*_: object, **__: object) -> None:
        raise CoordinationError("the tree is away")

    log = log_of(running)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
    handler = "minibroker.broker.handlers.metadata._create_and_respond"
    monkeypatch.setattr(handler, refuse)
    await client.call(request, 9)
    monkeypatch.setattr(handler, away)
    await client.call(request, 9)
    assert [request.error for request in log] == ["INVALID_REPLICATION_FACTOR", "REQUEST_TIMED_OUT"]


@pytest.mark.pure("replaces fetch._respond")
async def test_a_future_that_ends_with_an_error_is_noted_with_it(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(running)
    partition = running.partitions.get("t", 0)
    client.send(asking(part(), max_wait_ms=60_000), 11)
    async with await running.connect() as other, asyncio.timeout(60):
        while not partition.waiters:
            await other.call(MetadataRequest(topics=[]), 9)
    monkeypatch.setattr("minibroker.broker.handlers.fetch._respond", lambda _fetch: 1 // 0)
    running.partitions.wake_all()
    await client.receive()
    (fetch,) = [request for request in log if request.api == "Fetch"]
    assert fetch.error == "UNKNOWN_SERVER_ERROR"


# While somebody follows the log, requests are described.


@pytest.fixture
def watched(running: InProcessBroker) -> RequestLog:
    log = log_of(running)
    log.follow(every=True)
    return log


def producing(records: bytearray, acks: int = 1) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=records)
    topics = [TopicProduceData(name="t", partition_data=[partition])]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


async def test_requests_have_subject_sizes_and_numbers(
    watched: RequestLog, client: RawClient
) -> None:
    await client.call(producing(batch_of(b"a", b"b")), 9)
    await client.call(asking(part()), 11)
    first, second = watched
    assert watched.describe(first.number) == "acks 1, t-0 2 records 77 B → t-0 @0"
    assert watched.describe(second.number) == "t-0 @0 → t-0 2 records 77 B"
    assert (first.number, second.number) == (1, 2)
    assert (first.correlation_id, second.correlation_id) == (1, 2)
    assert first.answer_bytes == 48
    assert first.request_bytes > 77
    assert first.machine_ms <= second.machine_ms


async def test_a_log_that_nobody_follows_has_no_subjects(
    running: InProcessBroker, client: RawClient
) -> None:
    log = log_of(running)
    log.follow()
    log.leave()
    await client.call(producing(batch_of(b"a")), 9)
    (request,) = log
    assert (log.describe(request.number), log.open) == ("", {})


async def test_a_large_request_is_described_by_its_answer(
    watched: RequestLog, client: RawClient
) -> None:
    await client.call(producing(batch_of(bytes(LARGE_FRAME_BYTES))), 9)
    (request,) = watched
    assert watched.describe(request.number) == "→ t-0 @0"


async def test_a_request_that_waits_is_open_until_its_answer(
    watched: RequestLog, running: InProcessBroker, client: RawClient
) -> None:
    partition = running.partitions.get("t", 0)
    client.send(asking(part(), max_wait_ms=60_000), 11)
    async with await running.connect() as other, asyncio.timeout(60):
        while not partition.waiters:
            await other.call(MetadataRequest(topics=[]), 9)
        ((waiting, describe),) = watched.open_requests()
        assert (waiting.api, describe(), waiting.number) == ("Fetch", "t-0 @0", 0)
        assert waiting.duration_ms > 0
        await other.call(producing(batch_of(b"a")), 9)
    await client.receive()
    assert not watched.open


async def test_a_request_without_an_answer_has_no_bytes_of_one(
    watched: RequestLog, client: RawClient
) -> None:
    client.writer.write(request_frame(producing(batch_of(b"a"), acks=0), 9))
    await client.call(MetadataRequest(topics=[]), 9)
    assert [request.answer_bytes is None for request in watched] == [True, False]


async def test_a_malformed_request_is_not_open(watched: RequestLog, client: RawClient) -> None:
    frame = bytes.fromhex("0003 0009 00000001 ffff 00 ffffffffff")
    client.writer.write(len(frame).to_bytes(4, "big") + frame)
    assert await client.is_closed_by_broker()
    assert not watched.open


def test_the_fault_that_met_a_request_stands_in_the_log(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("t")
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "retries": 0, "log_level": 0})
    with kafka_broker.faults.add("Produce", error="INVALID_TOPIC_EXCEPTION", delay_ms=1):
        producer.produce("t", b"v")
        producer.flush(60)
    (failed,) = kafka_broker.wait_for_requests("Produce")
    assert failed.fault == "delay 1 ms, error INVALID_TOPIC_EXCEPTION"


@pytest.mark.parametrize(
    ("fault", "effect"),
    [
        (Fault(hold=True), "held"),
        (Fault(drop="before"), "dropped before it was handled"),
        (Fault(error="REQUEST_TIMED_OUT"), "error REQUEST_TIMED_OUT, and handled"),
        (Fault(twice=True), "answer sent twice"),
        (Fault(truncate_bytes=3), "answer cut after 3 bytes"),
        (Fault(broker="stale_metadata"), "stale metadata"),
    ],
)
def test_a_fault_says_what_it_does(fault: Fault, effect: str) -> None:
    assert fault.effect == effect
