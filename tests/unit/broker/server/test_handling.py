"""From a request to its answer: short ways, handlers, and what they raise."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.handlers import describe_transactions
from minibroker.broker.server import dispatch
from minibroker.broker.server.connections import Connections
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol import refusals
from minibroker.kafka.protocol.messages.create_topics import CreatableTopic
from minibroker.kafka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.in_process import Serve, batch_of, request_frame
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from minibroker.broker.slices import Steps

TOPIC = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
PRODUCE = ProduceRequest(
    acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(index=3)])]
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


def describe(count: int) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=[f"id-{n}" for n in range(count)])


async def test_a_handler_in_steps_gives_way_to_other_connections(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve()
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    encoders: list[threading.Thread] = []
    write = DescribeTransactionsResponse.write

    def write_noting(self: DescribeTransactionsResponse, writer: Any, version: int) -> None:
        encoders.append(threading.current_thread())
        write(self, writer, version)

    monkeypatch.setattr(DescribeTransactionsResponse, "write", write_noting)
    async with await running.connect() as client, await running.connect() as other:
        client.send(describe(300), 0)
        await eventually(lambda: any(c.connection.is_busy for c in running.server.connections))
        assert (await other.call(MetadataRequest(topics=[]), 9)).brokers
        answer = await client.receive()
    assert [state.transactional_id for state in answer.transaction_states] == (
        describe(300).transactional_ids
    )
    assert [thread is threading.main_thread() for thread in encoders] == [False]


async def test_a_handler_in_steps_is_answered_at_once_where_a_slice_is_enough(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve()
    monkeypatch.setattr(slices, "SLICE_S", 60.0)
    waits: list[Any] = []
    monkeypatch.setattr(Connections, "may_start_task", lambda *_: waits.append(None))
    async with await running.connect() as client:
        assert len((await client.call(describe(300), 0)).transaction_states) == 300
    assert not waits


@pytest.mark.parametrize("slice_s", [0.0, 60.0])
@pytest.mark.parametrize("large_bytes", [0, 1 << 20])
async def test_an_error_of_a_step_is_answered(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, slice_s: float, large_bytes: int
) -> None:
    def failing(*_: Any) -> Steps[Any]:
        yield
        yield
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    running = await serve()
    monkeypatch.setattr(slices, "SLICE_S", slice_s)
    monkeypatch.setattr(dispatch, "LARGE_FRAME_BYTES", large_bytes)
    monkeypatch.setattr(describe_transactions, "handle", failing)
    async with await running.connect() as client:
        answer = await client.call(describe(3), 0)
        assert [state.error_code for state in answer.transaction_states] == [
            ErrorCode.COORDINATOR_NOT_AVAILABLE
        ] * 3
        assert (await client.call(MetadataRequest(topics=[]), 9)).brokers


async def test_the_error_answer_of_a_large_request_is_made_beside_the_loop(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_: Any) -> Any:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    makers: list[threading.Thread] = []
    make = refusals.refusal

    def make_noting(*arguments: Any) -> Any:
        makers.append(threading.current_thread())
        return make(*arguments)

    running = await serve()
    monkeypatch.setattr(dispatch, "LARGE_FRAME_BYTES", 0)
    monkeypatch.setattr(describe_transactions, "handle", refusing)
    monkeypatch.setattr(refusals, "refusal", make_noting)
    async with await running.connect() as client:
        assert len((await client.call(describe(3), 0)).transaction_states) == 3
    assert [thread is threading.main_thread() for thread in makers] == [False]


@pytest.mark.parametrize("slice_s", [0.0, 60.0])
async def test_a_client_that_leaves_while_its_request_is_in_steps_is_forgotten(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, slice_s: float
) -> None:
    running = await serve()
    monkeypatch.setattr(slices, "SLICE_S", slice_s)
    async with await running.connect() as client:
        client.send(describe(300), 0)
        await client.writer.drain()
    await eventually(lambda: not running.server.connections)
    async with await running.connect() as client:
        assert len((await client.call(describe(3), 0)).transaction_states) == 3
