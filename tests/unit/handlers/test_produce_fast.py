"""The short way of Produce gives the same bytes as the general one, or steps aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.handlers import produce_fast
from minibroker.protocol.api_keys import PRODUCE
from minibroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.in_process import batch_of
from tests.unit.handlers.short_way import ShortWay, answer_to
from tests.unit.handlers.test_produce import id_of, produce

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
        for one in request.topic_data:
            one.name, one.topic_id = topic, id_of(running, topic)
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
    assert (fast.taken, fast.passed) == (3, 0)
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


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_has_another_shape_goes_the_general_way(
    running: InProcessBroker, client: RawClient, fast: ShortWay, version: int
) -> None:
    good = batch_of(b"a")
    two_parts = ProduceRequest(
        acks=1,
        topic_data=[
            TopicProduceData(
                name="t",
                partition_data=[PartitionProduceData(index=i, records=good) for i in (0, 1)],
            )
        ],
    )
    requests = [
        two_parts,
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
    assert fast.taken == 0


async def test_a_deleted_topic_is_forgotten(
    running: InProcessBroker, client: RawClient, fast: ShortWay
) -> None:
    await client.call(produce(batch_of(b"a")), 9)
    assert fast.taken == 1
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
        patch.setattr(type(log._disk.files), "pwritev", staticmethod(full))
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
    from minibroker.protocol.primitives import Writer  # noqa: PLC0415  beside its only use

    writer = Writer()
    produce(batch_of(b"a"), topic_id=id_of(running), acks=1).write(writer, version)
    body = writer.to_bytes()
    (connection,) = running.server.connections
    connection._context.version = version
    handler = running.server.dispatcher._handlers[PRODUCE]
    for size in range(len(body)):
        view = memoryview(bytearray(body[:size]))
        assert produce_fast.handle_fast(connection._context, handler, view, 0) is None
    assert running.partitions.get("t", 0).log_end_offset == 0
