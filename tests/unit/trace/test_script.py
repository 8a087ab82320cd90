"""A recorded dialogue as a script: which request is the same, and which answer is next."""

from __future__ import annotations

from typing import Any

import pytest

from minibroker.kafka.protocol.api_keys import FETCH, JOIN_GROUP, METADATA, PRODUCE
from minibroker.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from minibroker.kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from minibroker.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.trace import script as script_module
from minibroker.trace.json_lines import DialogueError
from minibroker.trace.script import Script
from tests.support.batches import Item, batch
from tests.support.trace_frames import EXCHANGE


def ask(*topics: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=topic) for topic in topics])


def produce(records: bytes) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=records)]
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="a", partition_data=data)])


def fetch(*partitions: int) -> FetchRequest:
    places = [FetchPartition(partition=number, fetch_offset=5) for number in partitions]
    return FetchRequest(topics=[FetchTopic(topic="a", partitions=places)])


def join(member_id: str, *protocols: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        member_id=member_id,
        protocols=[JoinGroupRequestProtocol(name=name) for name in protocols],
    )


def script_of(api: str, *pairs: tuple[Any, Any]) -> Script:
    """Return a script of requests and answers in version 9."""
    script = Script()
    for request, answer in pairs:
        answered = None if answer is None else 10
        script.add(
            EXCHANGE._replace(api=api, request=request, answer=answer, answer_bytes=answered)
        )
    return script


def test_a_request_gets_its_answers_in_order_and_the_last_again() -> None:
    answers = [MetadataResponse(controller_id=number) for number in (1, 2)]
    script = script_of("Metadata", *((ask("a"), answer) for answer in answers))
    replies = [script.find(METADATA, 9, ask("a")) for _ in range(4)]
    assert [scripted and scripted.answer for scripted in replies] == [
        answers[0],
        answers[1],
        answers[1],
        answers[1],
    ]
    assert replies[0] is not None
    assert replies[0].duration_ms == EXCHANGE.duration_ms


def test_other_fields_and_versions_are_another_request() -> None:
    script = script_of("Metadata", (ask("a"), MetadataResponse()))
    assert script.find(METADATA, 9, ask("b")) is None
    assert script.find(METADATA, 8, ask("a")) is None


def test_a_request_without_an_answer_has_none_again() -> None:
    scripted = script_of("Produce", (produce(batch(b"v")), None)).find(
        PRODUCE, 9, produce(batch(b"v"))
    )
    assert scripted is not None
    assert scripted.answer is None


@pytest.mark.parametrize("places", [(0, 1), (1, 0)])
def test_a_request_that_was_answered_once_is_answered(places: tuple[int, int]) -> None:
    """Clients ask, close the connection before the answer comes, and ask again."""
    answer = MetadataResponse(controller_id=1)
    recorded = [(ask("a"), None), (ask("a"), answer)]
    script = script_of("Metadata", *(recorded[place] for place in places))
    replies = [script.find(METADATA, 9, ask("a")) for _ in range(2)]
    assert [scripted and scripted.answer for scripted in replies] == [answer, answer]


def test_records_are_compared_by_key_value_and_headers() -> None:
    recorded = batch(Item(b"v", b"k", None, ((b"h", b"1"),)), timestamp_ms=1)
    script = script_of("Produce", (produce(recorded), ProduceResponse()))
    same = build_batch([Record(0, 2, b"k", b"v", (("h", b"1"),))], codec="gzip", producer_id=7)
    assert script.find(PRODUCE, 9, produce(bytes(same))) is not None
    for other in (Item(b"w", b"k", None, ((b"h", b"1"),)), Item(b"v", b"k")):
        assert script.find(PRODUCE, 9, produce(batch(other))) is None
    damaged = script_of("Produce", (produce(b"\xff" * 80), ProduceResponse()))
    assert damaged.find(PRODUCE, 9, produce(b"\xff" * 80)) is not None


def test_the_order_of_partitions_does_not_count_but_that_of_protocols_does() -> None:
    script = script_of("Fetch", (fetch(0, 1), MetadataResponse()))
    assert script.find(FETCH, 9, fetch(1, 0)) is not None
    assert script.find(FETCH, 9, fetch(1, 2)) is None
    script = script_of("JoinGroup", (join("m", "range", "sticky"), MetadataResponse()))
    assert script.find(JOIN_GROUP, 9, join("m", "sticky", "range")) is None


def test_a_member_may_have_chosen_another_id() -> None:
    script = script_of("JoinGroup", (join("m", "range"), MetadataResponse()))
    assert script.find(JOIN_GROUP, 9, join("n", "range")) is not None


def test_the_reason_says_what_was_recorded() -> None:
    script = script_of("Metadata", *((ask(name), MetadataResponse()) for name in "abcdef"))
    assert script.reason(METADATA, 9) == "Metadata v9 was recorded about: a; b; c"
    assert script.reason(METADATA, 8) == "Metadata was recorded in version 9"
    assert script.reason(FETCH, 8) == "Fetch was never recorded"


def test_answers_that_nobody_could_read_are_no_answers() -> None:
    script = Script()
    script.add(EXCHANGE._replace(api="Metadata", request=ask("a"), answer=None, answer_bytes=9))
    script.add(EXCHANGE._replace(api="api 999", request=None))
    assert script.find(METADATA, 9, ask("a")) is None


def test_a_script_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_module, "EXCHANGES_MAX", 2)
    with pytest.raises(DialogueError, match="at most 2 exchanges"):
        script_of("Metadata", *((ask("a"), MetadataResponse()) for _ in range(3)))
