"""Messages with long lists: read, judged and written beside the loop, and passed on in order."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import METADATA, PRODUCE
from minibroker.kafka.protocol.header import response_header
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest
from minibroker.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from minibroker.kafka.protocol.primitives import Writer
from minibroker.proxy import codec
from minibroker.proxy.desk import Desk
from minibroker.proxy.heads import read_head
from minibroker.proxy.limits import ITEMS_MAX, SMALL_BYTES
from minibroker.rig.faults import Fault
from tests.support.batches import batch
from tests.support.dialogues import answer_of
from tests.support.message_bytes import request_bytes
from tests.support.proxy_wire import OWN, Conversation, framed

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.trace.exchange import Exchange

BEAT = framed(request_bytes(HeartbeatRequest(group_id="g", member_id="m"), 3, 2))
LONG = ITEMS_MAX + 40
ERROR = "NOT_LEADER_OR_FOLLOWER"


def produce(count: int, records: bytes | bytearray = b"") -> bytes:
    """Return a Produce for so many partitions of a topic."""
    parts = [PartitionProduceData(index=index, records=records) for index in range(count)]
    request = ProduceRequest(
        acks=1, topic_data=[TopicProduceData(name="orders", partition_data=parts)]
    )
    return framed(request_bytes(request, 9, 1))


def in_tasks() -> Conversation:
    """Return a conversation whose work runs in tasks of this loop."""
    conversation = Conversation(desk := Desk())
    desk.run = desk._run_in_task
    conversation.run = desk._run_in_task  # type: ignore[method-assign]
    return conversation


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> set[threading.Thread]:
    """Return the threads that read or write a whole message."""
    users: set[threading.Thread] = set()

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            users.add(threading.current_thread())
            return function(*args)

        return call

    for name in ("read_request", "write_request", "read_answer", "write_answer"):
        monkeypatch.setattr(codec, name, watched(getattr(codec, name)))
    return users


async def test_a_long_produce_keeps_the_order_of_its_connection(
    threads: set[threading.Thread],
) -> None:
    conversation = in_tasks()
    conversation.desk.faults.add(Fault("Produce", error=ERROR, topic="orders", partition=0))
    conversation.client_sends(produce(LONG) + BEAT)
    assert not conversation.received
    assert not conversation.is_client_read
    while not conversation.is_client_read:
        await conversation.desk.finish()
    assert threading.main_thread() not in threads
    size = 4 + int.from_bytes(conversation.received[:4])
    frame = bytes(conversation.received[:size])
    head = read_head(frame, 4, len(frame))
    assert head is not None
    (topic,) = codec.read_request(head, frame).topic_data
    assert [part.index for part in topic.partition_data] == list(range(1, LONG))
    assert conversation.received[size:] == BEAT


async def test_a_long_produce_is_refused_behind_its_delay(threads: set[threading.Thread]) -> None:
    conversation = in_tasks()
    conversation.desk.faults.add(Fault("Produce", error=ERROR, delay_ms=250, times=1))
    conversation.client_sends(produce(LONG) + BEAT)
    while not conversation.later_calls:
        await conversation.desk.finish()
    conversation.run_due()
    assert not conversation.received
    while not conversation.is_client_read:
        await conversation.desk.finish()
    assert conversation.received == BEAT
    answer = answer_of(ProduceRequest(), 9, bytes(conversation.answered[4:]))
    codes = {part.error_code for part in answer.responses[0].partition_responses}
    assert codes == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert threading.main_thread() not in threads


def test_a_produce_of_many_bytes_and_few_partitions_needs_no_thread() -> None:
    conversation = Conversation()
    conversation.desk.faults.add(Fault("Produce", error=ERROR, topic="other"))
    frame = produce(10, batch(bytes(SMALL_BYTES)))
    conversation.client_sends(frame)
    assert conversation.received == frame


async def test_a_long_answer_is_written_beside_the_loop(threads: set[threading.Thread]) -> None:
    conversation = in_tasks()
    conversation.client_sends(framed(request_bytes(MetadataRequest(), 9, 1)))
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="kafka", port=9092)],
        topics=[MetadataResponseTopic(name=f"topic-{number}") for number in range(LONG)],
    )
    writer = Writer()
    writer.append(response_header(METADATA, 9, 1))
    response.write(writer, 9)
    conversation.kafka_sends(framed(writer.to_bytes()))
    while not conversation.answered:
        await conversation.desk.finish()
    answer = answer_of(MetadataRequest(), 9, bytes(conversation.answered[4:]))
    assert [(broker.host, broker.port) for broker in answer.brokers] == [OWN]
    assert len(answer.topics) == LONG
    assert threading.main_thread() not in threads
    await conversation.desk.finish()
    assert conversation.is_kafka_read


async def test_a_long_produce_is_shown_from_beside_the_loop() -> None:
    exchanges: list[Exchange] = []
    conversation = in_tasks()
    conversation.desk.onlookers.append(exchanges.append)
    conversation.client_sends(produce(LONG, batch(bytes(SMALL_BYTES // LONG))))
    conversation.requests.close()
    conversation.answers.close()
    assert exchanges == []
    await conversation.desk.finish()
    assert [exchange.api for exchange in exchanges] == ["Produce"]


def test_a_list_that_claims_more_than_it_has_is_broken_and_not_long() -> None:
    frame = bytearray(produce(1))
    at = frame.index(b"orders") + len(b"orders")
    frame[at] = 127  # partitions; the bytes for them are missing
    head = read_head(bytes(frame), 4, len(frame))
    assert head is not None
    assert head.api_key == PRODUCE
    assert codec.read_short_request(head, bytes(frame)) is None
