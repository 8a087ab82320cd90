"""From a request to its answer: short ways, handlers, and what they raise."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.create_topics import CreatableTopic
from minibroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.in_process import batch_of, request_frame

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.in_process import InProcessBroker

    Serve = Callable[..., Awaitable[InProcessBroker]]

TOPIC = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
PRODUCE = ProduceRequest(
    acks=-1,
    topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(index=3)])],
)


def produce_to(topic: str, value: bytes, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch_of(value))
    return ProduceRequest(
        acks=acks, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


async def test_an_error_of_a_short_way_is_answered_and_costs_no_other_request(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_arguments: Any) -> None:
        raise ZeroDivisionError("a bug")

    running = await serve()
    await running.create_topic("t")
    async with await running.connect("tester") as client:
        assert (await client.call(PRODUCE, 9)).responses
        handler = running.server.dispatcher._handlers[0]
        short_way = handler.fast

        def second_fails(*arguments: Any) -> Any:
            handler.fast = failing
            assert short_way is not None
            return short_way(*arguments)

        monkeypatch.setattr(handler, "fast", second_fails)
        good = produce_to("t", b"a")
        frames = [request_frame(good, 9, number) for number in (1, 2)]
        client.writer.write(b"".join(frames))
        codes = []
        for number in (1, 2):
            client.expect(0, 9, number)
            (topic,) = (await client.receive()).responses
            codes.append(topic.partition_responses[0].error_code)
        assert codes == [0, ErrorCode.UNKNOWN_SERVER_ERROR]
        handler.fast = short_way
        (topic,) = (await client.call(good, 9)).responses
        assert topic.partition_responses[0].base_offset == 1
    (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert record.getMessage().startswith("Produce v9 from 127.0.0.1")


async def test_an_error_that_has_no_answer_ends_the_connection_behind_those_that_have(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_arguments: Any) -> None:
        raise ZeroDivisionError("a bug")

    running = await serve()
    await running.create_topic("t")
    async with await running.connect() as client:
        assert (await client.call(PRODUCE, 9)).responses
        handler = running.server.dispatcher._handlers[0]
        monkeypatch.setattr(handler, "handle", failing)
        monkeypatch.setattr(handler, "error_response", failing)
        requests = [produce_to("t", b"a"), PRODUCE, produce_to("t", b"b")]
        frames = [request_frame(request, 9, number) for number, request in enumerate(requests)]
        client.writer.write(b"".join(frames))
        client.expect(0, 9, 0)
        (topic,) = (await client.receive()).responses
        assert topic.partition_responses[0].base_offset == 0
        assert await client.is_closed_by_broker()
    assert running.partitions.get("t", 0).log_end_offset == 1
    closing = [r for r in caplog.records if "closing connection" in r.getMessage()]
    assert len(closing) == 1
