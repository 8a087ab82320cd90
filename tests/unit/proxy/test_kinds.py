"""`kinds`: requests that repeat themselves pass without being read, as the first of them did."""

from __future__ import annotations

import random
from struct import pack
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.protocol.api_keys import APIS, CONTROLLED_SHUTDOWN, PRODUCE
from minibroker.kafka.protocol.header import write_request_header
from minibroker.kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from minibroker.kafka.protocol.messages.fetch import NodeEndpoint as FetchEndpoint
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from minibroker.kafka.protocol.messages.list_groups import ListGroupsRequest
from minibroker.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from minibroker.kafka.protocol.messages.produce import (
    NodeEndpoint,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from minibroker.kafka.protocol.primitives import Writer
from minibroker.proxy.heads import RequestHead, head_end, read_head
from minibroker.proxy.kinds import KINDS_MAX, RequestKinds
from minibroker.proxy.request_side import RequestSide
from minibroker.rig.faults import Fault
from tests.support.message_bytes import request_bytes
from tests.support.proxy_wire import Conversation, answer_frame, framed

if TYPE_CHECKING:
    from collections.abc import Iterator

BEAT = HeartbeatRequest(group_id="g", member_id="m")


def request_frame(request: Any, version: int, number: int, client_id: str | None = "shop") -> bytes:
    """Return a frame of a client's."""
    return framed(request_bytes(request, version, number, client_id))


@pytest.mark.parametrize("key", APIS, ids=lambda key: APIS[key].name)
def test_a_head_ends_before_the_body(key: int) -> None:
    api = APIS[key]
    for version in range(api.min_version, api.max_version + 1):
        writer = Writer()
        write_request_header(writer, key, version, 77, "shop")
        data = b"xxxx" + writer.to_bytes() + pack(">bh", 0, 1) + b"body"
        if key == CONTROLLED_SHUTDOWN and not version:
            assert head_end(RequestHead(key, version, None, True), data, 4, len(data)) == 0
        elif key != PRODUCE:
            head = read_head(data, 4, len(data))
            assert head is not None
            assert head_end(head, data, 4, len(data)) == 4 + 10 + len(b"shop")


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("transaction", [None, "", "t" * 200])
def test_a_head_of_produce_ends_behind_acks(version: int, transaction: str | None) -> None:
    request = ProduceRequest(acks=-1, timeout_ms=0x01020304)
    if version >= 3:
        request.transactional_id = transaction
    data = request_bytes(request, version, 1)
    head = read_head(data, 0, len(data))
    assert head is not None
    end = head_end(head, data, 0, len(data))
    assert data[end - 2 : end + 4] == b"\xff\xff\x01\x02\x03\x04"


def test_kinds_of_one_connection_are_bounded() -> None:
    kinds = RequestKinds()
    for key in APIS:
        for version in range(8):
            kinds.learn(RequestHead(key, version, b"c", True), bytes(30), 0, 30)
            assert len(kinds) <= KINDS_MAX
    assert kinds
    kinds.clear()
    kinds.learn(RequestHead(3, 9, bytes(2_000), True), bytes(3_000), 0, 3_000)
    assert not kinds


class Judged:
    """A conversation that counts the requests whose heads are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        judge = RequestSide.judge

        def counting(side: RequestSide, size: int, data: bytes, at: int) -> Any:
            self.count += 1
            return judge(side, size, data, at)

        monkeypatch.setattr(RequestSide, "judge", counting)
        self.conversation = Conversation()


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Judged:
    """Return a conversation that counts."""
    return Judged(monkeypatch)


def test_only_the_first_of_a_kind_is_read(judged: Judged) -> None:
    conversation = judged.conversation
    beats = b"".join(request_frame(BEAT, 3, number) for number in range(10))
    conversation.client_sends(request_frame(BEAT, 3, 77))
    assert judged.count == 1
    conversation.client_sends(beats)
    conversation.client_sends(beats)
    assert judged.count == 1
    assert [pending.correlation_id for pending in conversation.answers.queue] == [
        77,
        *range(10),
        *range(10),
    ]


def test_a_head_with_another_client_or_version_is_read(judged: Judged) -> None:
    conversation = judged.conversation
    for _ in range(2):
        conversation.client_sends(request_frame(BEAT, 3, 1))
    old_count = judged.count
    for frame in (
        request_frame(BEAT, 3, 1, "other"),
        request_frame(BEAT, 3, 1, None),
        request_frame(BEAT, 2, 1),
    ):
        conversation.client_sends(frame)
    assert judged.count == old_count + 3


def test_a_produce_that_wants_no_answer_waits_for_none(judged: Judged) -> None:
    conversation = judged.conversation
    frames = b"".join(request_frame(ProduceRequest(acks=0), 9, number) for number in range(5))
    conversation.client_sends(frames)
    assert judged.count == 1
    assert conversation.received == frames
    assert not conversation.answers.queue


def test_a_rule_and_an_onlooker_see_kinds_that_came_before(judged: Judged) -> None:
    conversation = judged.conversation
    for _ in range(3):
        conversation.client_sends(request_frame(BEAT, 3, 1))
    fault = Fault("Heartbeat", error="NOT_COORDINATOR")
    conversation.desk.faults.add(fault)
    conversation.client_sends(request_frame(BEAT, 3, 5))
    last = conversation.answers.queue[-1]
    assert last.own_answer is not None
    conversation.desk.faults.discard(fault)
    conversation.client_sends(request_frame(BEAT, 3, 6))
    assert conversation.answers.queue[-1].own_answer is None
    conversation.desk.onlookers.append(lambda _: None)
    conversation.client_sends(request_frame(BEAT, 3, 7))
    assert conversation.answers.queue[-1].frame is not None


def test_an_own_answer_leaves_behind_those_that_pass() -> None:
    conversation = Conversation()
    for number in (1, 2, 3):
        conversation.client_sends(request_frame(BEAT, 3, number))
    conversation.desk.faults.add(Fault("ListGroups", error="COORDINATOR_NOT_AVAILABLE"))
    conversation.client_sends(request_frame(ListGroupsRequest(), 3, 4))
    beats = [
        answer_frame(HeartbeatResponse(), HeartbeatRequest.API_KEY, 3, number)
        for number in (1, 2, 3)
    ]
    conversation.kafka_sends(beats[0] + beats[1] + beats[2][:9])
    assert conversation.answered == beats[0] + beats[1] + beats[2][:9]
    conversation.kafka_sends(beats[2][9:])
    assert conversation.answered.startswith(b"".join(beats))
    assert conversation.answered[sum(map(len, beats)) + 4 :].startswith(pack(">i", 4))


def exchange(dice: random.Random, number: int) -> tuple[bytes, bytes]:
    """Return a request and its answer, b"" for none."""
    kind = dice.choice(("beat", "produce", "produce", "fetch", "old fetch", "metadata"))
    client_id = dice.choice(("shop", "shop", "billing", None))
    size = dice.choice((0, 10, 3_000))
    has_hint = dice.random() < 0.3
    if kind == "beat":
        answer = answer_frame(HeartbeatResponse(), HeartbeatRequest.API_KEY, 3, number)
        return request_frame(BEAT, 3, number, client_id), answer
    if kind == "metadata":
        response = MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="kafka", port=9092)]
        )
        answer = answer_frame(response, MetadataRequest.API_KEY, 9, number)
        return request_frame(MetadataRequest(topics=[]), 9, number, client_id), answer
    if kind == "produce":
        version = dice.choice((7, 9, 11))
        acks = dice.choice((0, 1, -1))
        part = PartitionProduceData(index=0, records=dice.randbytes(size))
        request = ProduceRequest(
            transactional_id=dice.choice((None, "t")),
            acks=acks,
            topic_data=[TopicProduceData(name="orders", partition_data=[part])],
        )
        produced = ProduceResponse()
        if version >= 10 and has_hint:
            produced.node_endpoints = [NodeEndpoint(node_id=1, host="kafka", port=9092)]
        answer = answer_frame(produced, PRODUCE, version, number) if acks else b""
        return request_frame(request, version, number, client_id), answer
    version = 11 if kind == "old fetch" else 16
    topic = FetchableTopicResponse(
        topic="orders", partitions=[PartitionData(records=dice.randbytes(size))]
    )
    fetched = FetchResponse(responses=[topic])
    if version == 16 and has_hint:
        fetched.node_endpoints = [FetchEndpoint(node_id=1, host="kafka", port=9092)]
    answer = answer_frame(fetched, FetchRequest.API_KEY, version, number)
    return request_frame(FetchRequest(), version, number, client_id), answer


def alone(request: bytes, answer: bytes) -> bytes:
    """Return what a client gets that asks for this alone."""
    conversation = Conversation()
    conversation.client_sends(request)
    conversation.kafka_sends(answer)
    return bytes(conversation.answered)


def pieces(dice: random.Random, data: bytes) -> Iterator[bytes]:
    """Yield the bytes in pieces of any size."""
    at = 0
    while at < len(data):
        step = dice.choice((1, 9, 30, 200, 10_000, 10_000))
        yield data[at : at + step]
        at += step


@pytest.mark.parametrize("seed", range(60))
def test_requests_in_any_pieces_are_as_each_alone(seed: int) -> None:
    dice = random.Random(seed)
    conversation = Conversation()
    stream = answered = b""
    number = 0
    for _ in range(dice.randrange(1, 12)):
        requests = answers = b""
        for _ in range(dice.randrange(1, 12)):
            number += 1
            request, answer = exchange(dice, number)
            requests += request
            answers += answer
            answered += alone(request, answer)
        stream += requests
        for piece in pieces(dice, requests):
            conversation.client_sends(piece)
        for piece in pieces(dice, answers):
            conversation.kafka_sends(piece)
    assert conversation.received == stream
    assert conversation.answered == answered
    assert not conversation.answers.queue
    assert conversation.answers.cutter.rest_bytes == 0
