"""The short way of Produce gives the same bytes as the general one, or steps aside."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.server import dispatch
from minibroker.broker.timers import Timers
from minibroker.kafka.protocol.api_keys import PRODUCE
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from minibroker.kafka.protocol.primitives import Reader
from tests.support.in_process import batch_of
from tests.support.message_bytes import body_of
from tests.support.record_requests import id_of, produce
from tests.unit.broker.handlers.short_way import ShortWay, answer_to

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient

VERSIONS = range(3, 14)


@pytest.fixture
async def fast(running: InProcessBroker, client: RawClient) -> ShortWay:
    """The broker's short way, observed and switchable."""
    await client.call(produce(batch_of(b"first"), topic="nowhere"), 9)
    return ShortWay(running, PRODUCE)


async def both_ways(
    running: InProcessBroker, client: RawClient, fast: ShortWay, request: Any, version: int
) -> tuple[bytes, bytes]:
    """The answers (without correlation id) to a request in twin topics `t` and `u`."""
    if "u" not in running.broker.cluster.image.topics:
        await running.create_topic("u", 2)
    answers = []
    for topic, is_off in (("t", False), ("u", True)):
        fast.is_off = is_off
        for data in request.topic_data:
            data.name, data.topic_id = topic, id_of(running, topic)
        answer = await answer_to(client, request, version)
        name = id_of(running, topic) if version >= 13 else topic.encode()
        answers.append(answer.replace(name, b"T" * len(name), 1))
    fast.is_off = False
    return answers[0], answers[1]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
async def test_an_append_is_answered_alike(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int, acks: int
) -> None:
    for values in ([b"a"], [b"b", b"c" * 200], [b"d" * 20_000]):
        request = produce(batch_of(*values), acks=acks)
        short, general = await both_ways(running, client, fast, request, version)
        assert short == general
    assert (fast.handled, fast.passed) == (3, 0)
    assert running.partitions.get("t", 0).log_end_offset == 4
    assert running.partitions.get("u", 0).log_end_offset == 4


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_refusal_is_answered_alike(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int
) -> None:
    broken = batch_of(b"a")
    broken[-1] ^= 1
    unordered = batch_of(b"a", producer_id=3, producer_epoch=0, base_sequence=7)
    lying = batch_of(b"a", producer_id=3, producer_epoch=-1)
    large = batch_of(bytes(1_100_000))
    for records in (broken, unordered, lying, large):
        short, general = await both_ways(running, client, fast, produce(records), version)
        assert short == general


def several(*topics: list[tuple[int, bytearray | None]], acks: int = 1) -> ProduceRequest:
    """Return a request with one entry per topic, of (partition, records)."""
    return ProduceRequest(
        acks=acks,
        topic_data=[
            TopicProduceData(
                partition_data=[
                    PartitionProduceData(index=index, records=records) for index, records in parts
                ]
            )
            for parts in topics
        ],
    )


async def in_twin_topics(
    running: InProcessBroker, client: RawClient, fast: ShortWay, request: Any, version: int
) -> tuple[bytes, bytes]:
    """The answers (without correlation id) to a request whose topics are `t0`, `t1` … and `u0`,
    `u1` …, the general way."""
    answers = []
    for letter, is_off in (("t", False), ("u", True)):
        fast.is_off = is_off
        for number, data in enumerate(request.topic_data):
            name = f"{letter}{number}"
            if name not in running.broker.cluster.image.topics:
                await running.create_topic(name, 130)
            data.name, data.topic_id = name, id_of(running, name)
        answer = await answer_to(client, request, version)
        for data in request.topic_data:
            name = data.topic_id if version >= 13 else data.name.encode()
            answer = answer.replace(name, b"T" * len(name), 1)
        answers.append(answer)
    fast.is_off = False
    return answers[0], answers[1]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_throttle_is_answered_alike(
    running: InProcessBroker,
    client: RawClient,
    fast: ShortWay,
    version: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quotas = running.broker.services.quotas
    await running.broker.cluster.alter_config("clients", "raw", {"producer_byte_rate": "1e12"})
    assert quotas.is_active
    monkeypatch.setattr(dispatch, "charge", lambda *_: 1)
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(Timers, "after", lambda _timers, _delay_ms, end: loop.call_soon(end))
    good, broken = batch_of(b"a"), batch_of(b"a")
    broken[-1] ^= 1
    for parts in ([(0, good)], [(0, good), (1, good)], [(0, broken)], [(0, good), (1, broken)]):
        short, general = await in_twin_topics(running, client, fast, several(parts), version)
        assert short == general
        reader = Reader(memoryview(short), 1 if version >= 9 else 0)
        response = ProduceResponse.read(reader, version)
        assert response.throttle_time_ms == 1
    assert fast.handled == 4


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
async def test_several_partitions_and_topics_are_answered_alike(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int, acks: int
) -> None:
    def good(index: int) -> tuple[int, bytearray]:
        return index, batch_of(b"%d" % index, bytes(index))

    for topics in (
        [[good(1), good(0)]],
        [[good(5)], [good(3), good(4)], [good(0)]],
        [[good(index) for index in range(130)]],
    ):
        request = several(*topics, acks=acks)
        short, general = await in_twin_topics(running, client, fast, request, version)
        assert short == general
    assert (fast.handled, fast.passed) == (3, 0)
    assert running.partitions.get("t0", 5).log_end_offset == 4
    assert running.partitions.get("u0", 5).log_end_offset == 4


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_refusal_among_several_is_answered_alike(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int
) -> None:
    broken = batch_of(b"a")
    broken[-1] ^= 1
    lying = batch_of(b"a", producer_id=3, producer_epoch=-1)
    large = batch_of(bytes(1_100_000))
    good = batch_of(b"good")
    for refused in (broken, lying, large):
        request = several([(0, good), (1, refused)], [(0, refused), (1, good)])
        short, general = await in_twin_topics(running, client, fast, request, version)
        assert short == general
    assert (fast.handled, fast.passed) == (3, 0)
    assert running.partitions.get("t0", 0).log_end_offset == 3
    assert running.partitions.get("t0", 1).log_end_offset == 0


async def test_compressed_batches_of_several_partitions_take_the_short_way(
    running: InProcessBroker, client: RawClient, fast: ShortWay
) -> None:
    batches = [(index, batch_of(bytes(500), codec="lz4")) for index in (0, 1)]
    short, general = await in_twin_topics(running, client, fast, several(batches), 9)
    assert short == general
    assert fast.handled == 1


async def test_a_batch_that_would_hold_the_loop_leaves_nothing_of_its_request_behind(
    running: InProcessBroker, client: RawClient, fast: ShortWay
) -> None:
    """It is checked beside the loop, the general way; the others are not appended twice."""
    small, large = batch_of(b"a"), batch_of(*[b"x"] * 2000)
    short, general = await in_twin_topics(
        running, client, fast, several([(0, small), (1, large)]), 9
    )
    assert short == general
    assert (fast.handled, fast.passed) == (0, 1)
    assert running.partitions.get("t0", 0).log_end_offset == 1


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_request_of_another_shape_goes_the_general_way(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int
) -> None:
    good = batch_of(b"a")
    requests = [
        several([(0, good), (0, good)]),
        several([(0, good)], [(1, good)]),
        several([(0, good), (1, None)]),
        several([(0, good), (9, good)]),
        several([(0, good)], []),
        ProduceRequest(acks=1, topic_data=[]),
        produce(good, index=9),
        produce(good + good),
        produce(None),
        produce(b""),
        produce(good, acks=5),
        produce(good, transactional_id="x"),
        produce(
            batch_of(b"a", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True),
            transactional_id="x",
        ),
    ]
    for request in requests:
        short, general = await both_ways(running, client, fast, request, version)
        assert short == general
    assert fast.handled == 0


async def test_a_deleted_topic_is_forgotten(
    running: InProcessBroker, client: RawClient, fast: ShortWay
) -> None:
    await client.call(produce(batch_of(b"a")), 9)
    assert fast.handled == 1
    await running.broker.cluster.delete_topic("t")
    (topic,) = (await client.call(produce(batch_of(b"a")), 9)).responses
    assert topic.partition_responses[0].error_code == 3
    await running.create_topic("t")
    (topic,) = (await client.call(produce(batch_of(b"a")), 9)).responses
    assert (topic.partition_responses[0].error_code, topic.partition_responses[0].base_offset) == (
        0,
        0,
    )


async def test_a_disk_that_refuses_is_in_the_answer(
    running: InProcessBroker,
    client: RawClient,
    fast: ShortWay,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = running.partitions.get("t", 0).log

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(log.disk.files), "pwritev", staticmethod(full))
        (topic,) = (await client.call(produce(batch_of(b"a")), 9)).responses
    part = topic.partition_responses[0]
    assert (part.error_code, part.base_offset, part.log_start_offset) == (56, -1, -1)
    assert "No space left on device" in caplog.text
    (topic,) = (await client.call(produce(batch_of(b"a")), 9)).responses
    assert (topic.partition_responses[0].error_code, topic.partition_responses[0].base_offset) == (
        0,
        0,
    )


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_truncation_of_a_request_is_survived(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int
) -> None:

    body = body_of(produce(batch_of(b"a"), topic_id=id_of(running), acks=1), version)
    (connection,) = running.server.connections
    connection._context.version = version
    handler = running.server.dispatcher._handlers[PRODUCE]
    request = several([(0, batch_of(b"a")), (1, batch_of(b"b"))])
    request.topic_data[0].name, request.topic_data[0].topic_id = "t", id_of(running)
    several_body = body_of(request, version)
    for whole, size in [
        *((body, size) for size in range(len(body))),
        *((several_body, size) for size in range(len(several_body))),
    ]:
        view = memoryview(bytearray(whole[:size]))
        assert handler.fast(connection._context, handler, view, 0) is None
    assert running.partitions.get("t", 0).log_end_offset == 0
