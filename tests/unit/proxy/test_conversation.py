"""A conversation without sockets: order, large answers, holds, and addresses at their end."""

from __future__ import annotations

import asyncio
import errno
from struct import pack

import pytest

from minibroker.kafka.protocol.api_keys import API_VERSIONS, FETCH, FIND_COORDINATOR, METADATA
from minibroker.kafka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from minibroker.kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from minibroker.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from minibroker.kafka.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsTopic
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
from minibroker.kafka.protocol.primitives import Reader
from minibroker.proxy.desk import Desk
from minibroker.proxy.limits import (
    HINTED_BYTES_MAX,
    LOOKED_AT_BYTES_MAX,
    PENDING_MAX,
    SHOWN_BYTES_MAX,
    SMALL_BYTES,
)
from minibroker.rig.faults import Fault
from minibroker.trace.exchange import Exchange
from tests.support.batches import batch
from tests.support.counted_work import CountedWork
from tests.support.dialogues import answer_of
from tests.support.message_bytes import request_bytes
from tests.support.proxy_wire import OWN, Conversation, answer_frame, framed

BEAT = HeartbeatRequest(group_id="g", member_id="m")


def beat(number: int) -> bytes:
    """Return the answer to a heartbeat."""
    return answer_frame(HeartbeatResponse(), HeartbeatRequest.API_KEY, 3, number)


def fetched(version: int, size: int, port: int) -> bytes:
    """Return an answer of Fetch with so many bytes of records, and the address of a leader."""
    part = PartitionData(partition_index=0, error_code=6, high_watermark=1, records=bytes(size))
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic_id=b"t" * 16, partitions=[part])],
        node_endpoints=[NodeEndpoint(node_id=1, host="kafka-2.example", port=port)],
    )
    return answer_frame(response, FETCH, version, 1)


def watched_desk(exchanges: list[Exchange]) -> Desk:
    """Return a desk whose exchanges come into the list."""
    desk = Desk()
    desk.onlookers.append(exchanges.append)
    return desk


@pytest.mark.parametrize("port", [9092, 9216])
def test_a_leader_in_an_answer_is_reached_through_the_proxy(port: int) -> None:
    conversation = Conversation()
    request = FetchRequest()
    conversation.client_sends(framed(request_bytes(request, 16, 1)))
    conversation.kafka_sends(fetched(16, 100, port))
    answer = answer_of(request, 16, bytes(conversation.answered[4:]))
    assert [(node.host, node.port) for node in answer.node_endpoints] == [OWN]


def test_the_addresses_of_an_answer_are_noted() -> None:
    conversation = Conversation()
    request = FindCoordinatorRequest(key="g")
    conversation.client_sends(framed(request_bytes(request, 2, 1)))
    response = FindCoordinatorResponse(node_id=1, host="kafka-2.example", port=9092)
    conversation.kafka_sends(answer_frame(response, FIND_COORDINATOR, 2, 1))
    assert conversation.addresses == [("kafka-2.example", 9092)]
    answer = answer_of(request, 2, bytes(conversation.answered[4:]))
    assert (answer.host, answer.port) == OWN


def test_a_leader_in_a_large_answer_is_hidden_as_it_passes() -> None:
    conversation = Conversation()
    request = FetchRequest()
    conversation.client_sends(framed(request_bytes(request, 16, 1)))
    data = fetched(16, HINTED_BYTES_MAX + 1, 9092)
    most = 0
    for at in range(0, len(data), 1 << 20):
        piece = data[at : at + (1 << 20)]
        conversation.kafka_sends(piece)
        most = max(most, at + len(piece) - len(conversation.answered))
    assert most < 1 << 17
    assert len(conversation.answered) == len(data)
    answer = FetchResponse.read(Reader(memoryview(conversation.answered), 9), 16)
    assert answer.node_endpoints == []
    assert len(answer.responses[0].partitions[0].records or b"") == HINTED_BYTES_MAX + 1


def test_an_answer_larger_than_any_that_is_looked_at_passes() -> None:
    conversation = Conversation()
    conversation.client_sends(framed(request_bytes(MetadataRequest(), 9, 1)))
    conversation.kafka_sends(pack(">ii", LOOKED_AT_BYTES_MAX + 1, 1) + b"x" * 100)
    assert len(conversation.answered) == 108
    assert conversation.answers.cutter.rest_bytes == 0


def test_an_own_answer_waits_for_a_long_one_that_passes() -> None:
    conversation = Conversation()
    conversation.desk.faults.add(Fault("ListOffsets", error="NOT_COORDINATOR"))
    conversation.client_sends(framed(request_bytes(FetchRequest(), 11, 1)))
    conversation.kafka_sends(pack(">ii", 1000, 1) + b"x" * 500)
    conversation.client_sends(framed(request_bytes(ListOffsetsRequest(), 1, 2)))
    assert len(conversation.answered) == 508
    conversation.kafka_sends(b"x" * 496)
    assert conversation.answered[1004:1012] == pack(">ii", 8, 2)


def test_requests_without_an_answer_are_passed_over() -> None:
    """A broker that does not answer one goes on with the next: the ids say which it is."""
    exchanges: list[Exchange] = []
    desk = watched_desk(exchanges)
    conversation = Conversation(desk)
    for number in (1, 2, 3):
        conversation.client_sends(framed(request_bytes(BEAT, 3, number)))
    conversation.kafka_sends(beat(3))
    assert conversation.answered == beat(3)
    assert not conversation.answers.queue
    assert [(e.correlation_id, e.duration_ms is not None) for e in exchanges] == [
        (1, False),
        (2, False),
        (3, True),
    ]


def test_answers_that_nobody_waits_for_pass_and_are_named_once() -> None:
    desk = Desk()
    events: list[str] = []
    desk.on_event = events.append
    conversation = Conversation(desk)
    conversation.kafka_sends(beat(7) + beat(8))
    conversation.kafka_sends(beat(9))
    assert conversation.answered == beat(7) + beat(8) + beat(9)
    assert len(events) == 1
    assert "an answer that nobody waits for" in events[0]


@pytest.mark.pure("counts lines of Python")
def test_answers_that_nobody_waits_for_are_not_compared_with_all_requests() -> None:
    conversation = Conversation()
    count = PENDING_MAX // 2
    for number in range(count):
        conversation.client_sends(framed(request_bytes(BEAT, 3, number)))
    strays = b"".join(beat(count + number) for number in range(2_000))
    with CountedWork() as work:
        conversation.kafka_sends(strays)
    assert work.lines < 400 * 2_000  # 400 lines for each
    conversation.kafka_sends(beat(0))
    assert len(conversation.answers.queue) == count - 1
    assert conversation.answered == strays + beat(0)


def test_api_versions_offers_no_version_whose_addresses_cannot_be_rewritten() -> None:
    conversation = Conversation()
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    conversation.client_sends(framed(request_bytes(request, 3, 1)))
    newest = {METADATA: 99, API_VERSIONS: 99}
    response = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=0, max_version=version)
            for key, version in newest.items()
        ]
    )
    conversation.kafka_sends(answer_frame(response, API_VERSIONS, 3, 1))
    answer = answer_of(request, 3, bytes(conversation.answered[4:]))
    offered = {key.api_key: key.max_version for key in answer.api_keys}
    assert offered == {METADATA: MetadataResponse.VERSIONS[1], API_VERSIONS: 99}


async def test_a_long_list_is_shown_in_its_order() -> None:
    """It is decoded beside the loop; what ends meanwhile waits to be shown."""
    exchanges: list[Exchange] = []
    desk = watched_desk(exchanges)
    topics = [MetadataResponseTopic(name=f"topic-{number}") for number in range(3_000)]
    brokers = [MetadataResponseBroker(node_id=1, host="kafka", port=9092)]
    conversation = Conversation(desk)
    desk.run = desk._run_in_task
    conversation.run = desk._run_in_task  # type: ignore[method-assign]
    conversation.client_sends(framed(request_bytes(MetadataRequest(), 9, 1)))
    conversation.client_sends(framed(request_bytes(BEAT, 3, 2)))
    long_answer = MetadataResponse(brokers=brokers, topics=topics)
    conversation.kafka_sends(answer_frame(long_answer, METADATA, 9, 1))
    conversation.kafka_sends(beat(2))
    assert exchanges == []
    while conversation.answers.queue or not conversation.is_kafka_read:
        await desk.finish()
    await desk.finish()
    assert [exchange.api for exchange in exchanges] == ["Metadata", "Heartbeat"]
    assert len(exchanges[0].answer.topics) == 3_000  # type: ignore[union-attr]


def test_an_onlooker_that_cannot_write_is_left_out() -> None:
    exchanges: list[Exchange] = []
    events: list[str] = []
    desk = watched_desk(exchanges)
    desk.on_event = events.append

    def write(_exchange: Exchange) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    desk.onlookers.insert(0, write)
    conversation = Conversation(desk)
    for number in (1, 2):
        conversation.client_sends(framed(request_bytes(BEAT, 3, number)))
        conversation.kafka_sends(beat(number))
    assert bytes(conversation.answered) == beat(1) + beat(2)
    assert len(exchanges) == 2
    (event,) = events
    assert event.endswith("it cannot be written: [Errno 28] No space left on device")


def test_a_delayed_request_and_those_behind_it_wait() -> None:
    conversation = Conversation()
    conversation.desk.faults.add(Fault("Heartbeat", delay_ms=250, times=1))
    for number in (1, 2):
        conversation.client_sends(framed(request_bytes(BEAT, 3, number)))
    assert not conversation.received
    assert not conversation.is_client_read
    assert [later.delay_s for later in conversation.later_calls] == [0.25]
    conversation.run_due()
    assert conversation.received == framed(request_bytes(BEAT, 3, 1)) + framed(
        request_bytes(BEAT, 3, 2)
    )
    assert conversation.is_client_read


def test_a_closed_connection_is_forgotten_by_its_rule() -> None:
    conversation = Conversation()
    fault = Fault("Heartbeat", hold=True)
    conversation.desk.faults.add(fault)
    conversation.client_sends(framed(request_bytes(BEAT, 3, 1)))
    conversation.requests.close()
    conversation.answers.close()
    conversation.desk.release(fault)
    assert not conversation.received


def test_a_request_without_its_answer_has_a_subject() -> None:
    conversation = Conversation(watched_desk([]))
    conversation.client_sends(framed(request_bytes(BEAT, 3, 1)))
    (pending,) = conversation.answers.queue
    assert conversation.desk.describe(pending) == "group g, generation 0, member m"
    pending.frame = None  # it is not decoded again
    assert conversation.desk.describe(pending) == "group g, generation 0, member m"


def test_a_long_list_without_its_answer_has_no_subject() -> None:
    conversation = Conversation(watched_desk([]))
    topics = [ListOffsetsTopic(name=f"topic-{number}") for number in range(2_000)]
    conversation.client_sends(framed(request_bytes(ListOffsetsRequest(topics=topics), 1, 1)))
    records = PartitionProduceData(records=batch(bytes(SMALL_BYTES)))
    produce = ProduceRequest(
        acks=1, topic_data=[TopicProduceData(name="orders", partition_data=[records])]
    )
    conversation.client_sends(framed(request_bytes(produce, 9, 2)))
    large, records_first = conversation.answers.queue
    assert conversation.desk.describe(large) == ""
    assert conversation.desk.describe(records_first).startswith("acks 1, orders-0 1 record ")


def test_a_request_of_which_only_the_start_is_here_has_no_subject() -> None:
    conversation = Conversation(watched_desk([]))
    frame = framed(request_bytes(BEAT, 3, 1) + bytes(SHOWN_BYTES_MAX))
    conversation.client_sends(frame)
    (pending,) = conversation.answers.queue
    assert conversation.desk.describe(pending) == ""


def test_a_request_that_a_rule_holds_is_open_until_its_client_leaves() -> None:
    exchanges: list[Exchange] = []
    desk = watched_desk(exchanges)
    news: list[None] = []
    desk.on_expect = lambda: news.append(None)
    conversation = Conversation(desk)
    desk.faults.add(Fault("Heartbeat", hold=True))
    conversation.client_sends(framed(request_bytes(BEAT, 3, 1)))
    request = conversation.requests.delayed_request
    assert request is not None
    assert desk.describe(request) == "group g, generation 0, member m"
    assert len(news) == 1
    conversation.requests.close()
    assert conversation.requests.delayed_request is None
    assert [(exchange.api, exchange.answer_bytes) for exchange in exchanges] == [
        ("Heartbeat", None)
    ]


def test_a_request_that_a_rule_delayed_waits_for_kafka_then() -> None:
    conversation = Conversation(watched_desk([]))
    conversation.desk.faults.add(Fault("Heartbeat", delay_ms=250))
    conversation.client_sends(framed(request_bytes(BEAT, 3, 1)))
    request = conversation.requests.delayed_request
    conversation.run_due()
    assert conversation.requests.delayed_request is None
    assert list(conversation.answers.queue) == [request]


def test_requests_beyond_the_limit_wait_for_answers() -> None:
    """A read of 256 KB may have 10,000 small requests: they are not taken all at once."""
    conversation = Conversation()
    count = 2 * PENDING_MAX + 300
    frames = [framed(request_bytes(BEAT, 3, number)) for number in range(count)]
    conversation.client_sends(b"".join(frames))
    assert conversation.received == b"".join(frames[:PENDING_MAX])
    assert not conversation.is_client_read
    answers = 0
    while len(conversation.received) < len(b"".join(frames)):
        assert len(conversation.answers.queue) <= PENDING_MAX
        conversation.kafka_sends(beat(answers))
        conversation.run_due()
        answers += 1
    assert conversation.is_client_read
    assert answers < count
    for number in range(answers, count):
        conversation.kafka_sends(beat(number))
    assert conversation.answered == b"".join(map(beat, range(count)))


def test_room_for_requests_ends_no_hold_of_a_rule() -> None:
    conversation = Conversation()
    fault = Fault("ListOffsets", hold=True)
    beats = [framed(request_bytes(BEAT, 3, number)) for number in range(PENDING_MAX - 1)]
    conversation.client_sends(b"".join(beats))
    conversation.desk.faults.add(fault)
    last = framed(request_bytes(BEAT, 3, PENDING_MAX))
    request = framed(request_bytes(ListOffsetsRequest(), 1, PENDING_MAX + 1))
    conversation.client_sends(last + request)
    assert conversation.received == b"".join(beats) + last
    for number in range(PENDING_MAX - 1):
        conversation.kafka_sends(beat(number))
    conversation.run_due()
    assert conversation.received == b"".join(beats) + last
    assert not conversation.is_client_read
    conversation.desk.release(fault)
    assert conversation.received == b"".join(beats) + last + request
    assert conversation.is_client_read


async def test_a_hold_between_two_requests_waits_for_the_end_of_one() -> None:
    """A login is renewed when Kafka has answered all; half a request is never answered."""
    conversation = Conversation()
    first, second = (framed(request_bytes(BEAT, 3, number)) for number in (1, 2))
    conversation.client_sends(first[:-5])
    hold = asyncio.create_task(conversation.requests.hold_when_idle())
    await asyncio.sleep(0)
    conversation.client_sends(first[-5:] + second)
    assert conversation.received == first
    conversation.kafka_sends(beat(1))
    await hold
    assert conversation.received == first
    conversation.requests.go_on()
    assert conversation.received == first + second


async def test_room_for_requests_ends_no_hold_for_a_login() -> None:
    conversation = Conversation()
    frames = [framed(request_bytes(BEAT, 3, number)) for number in range(PENDING_MAX + 1)]
    conversation.client_sends(b"".join(frames))
    hold = asyncio.create_task(conversation.requests.hold_when_idle())
    await asyncio.sleep(0)
    for number in range(PENDING_MAX):
        conversation.kafka_sends(beat(number))
        conversation.run_due()
    assert conversation.received == b"".join(frames[:-1])
    await hold
    conversation.requests.go_on()
    assert conversation.received == b"".join(frames)
