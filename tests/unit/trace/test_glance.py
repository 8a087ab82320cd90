"""A glance at frames gives the exchange of `decode`, whatever they are."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.protocol.api_keys import APIS, FETCH, PRODUCE
from minibroker.kafka.protocol.header import response_header
from minibroker.kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from minibroker.kafka.protocol.primitives import Writer
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.trace.decode import Frames, decode, read_head
from minibroker.trace.exchange import Exchange
from minibroker.trace.glance import glance
from tests.fuzz.damage import damaged
from tests.support.trace_frames import START_MS, random_frames, recorded_frames, request_frame

if TYPE_CHECKING:
    from minibroker.kafka.protocol.message import Message

TOPIC_ID = bytes(range(16))
NAMES = {TOPIC_ID: "orders"}
FIRST = {PRODUCE: 3, FETCH: 4}
"""The first versions that the messages of these tests have a place in."""
PLAIN = {PRODUCE: 9, FETCH: 12}
"""The first versions that are read at a glance."""


def batch(value_bytes: int = 5, **fields: Any) -> bytes:
    return bytes(build_batch([Record(0, 1_000, b"key", b"v" * value_bytes)], **fields))


def frames_of(request: Message, answer: Message, version: int) -> Frames:
    """Return an exchange of a Produce or a Fetch."""
    writer = Writer()
    writer.append(response_header(request.API_KEY, version, 7))  # type: ignore[attr-defined]
    answer.write(writer, version)  # type: ignore[attr-defined]
    frame = request_frame(request, version)
    return Frames(
        1, 1, "c:1", "b:9092", START_MS, 0.5, frame, writer.to_bytes(), head=read_head(frame)
    )


def name_fields(version: int) -> dict[str, Any]:
    """Return the fields of a topic's name or id."""
    return {"topic_id": TOPIC_ID} if version >= 13 else {"topic": "orders"}


def produced(version: int, records: list[bytes], answers: list[dict[str, Any]]) -> Frames:
    """Return an exchange of a Produce to some partitions."""
    topic = name_fields(version)
    if "topic" in topic:
        topic = {"name": topic["topic"]}
    return frames_of(
        ProduceRequest(
            acks=-1,
            topic_data=[
                TopicProduceData(
                    **topic,
                    partition_data=[
                        PartitionProduceData(index=number, records=data)
                        for number, data in enumerate(records)
                    ],
                )
            ],
        ),
        ProduceResponse(
            responses=[
                TopicProduceResponse(
                    **topic,
                    partition_responses=[
                        PartitionProduceResponse(index=number, **fields)
                        for number, fields in enumerate(answers)
                    ],
                )
            ]
        ),
        version,
    )


def fetched(version: int, offsets: list[int], answers: list[dict[str, Any]], **more: Any) -> Frames:
    """Return an exchange of a Fetch from some partitions; no answers: one without topics."""
    topic = name_fields(version)
    partitions = [
        PartitionData(partition_index=number, **fields) for number, fields in enumerate(answers)
    ]
    return frames_of(
        FetchRequest(
            replica_id=-1,
            topics=[
                FetchTopic(
                    **topic,
                    partitions=[
                        FetchPartition(partition=number, fetch_offset=offset)
                        for number, offset in enumerate(offsets)
                    ],
                )
            ]
            if offsets
            else [],
            **more,
        ),
        FetchResponse(
            responses=[FetchableTopicResponse(**topic, partitions=partitions)] if answers else []
        ),
        version,
    )


def compare(frames: Frames) -> Exchange:
    """Check that a glance gives what `decode` gives, and return it."""
    names = dict(NAMES)
    exchange = glance(frames, names)
    expected = decode(frames, dict(NAMES))
    assert exchange._replace(request=None, answer=None) == expected._replace(
        request=None, answer=None
    )
    assert exchange.error == expected.error
    return exchange


@pytest.mark.parametrize("version", range(FIRST[PRODUCE], APIS[PRODUCE].max_version + 1))
def test_a_plain_produce_has_no_messages(version: int) -> None:
    exchange = compare(
        produced(
            version,
            [batch(900, producer_id=4, producer_epoch=1, base_sequence=9)],
            [{"base_offset": 42}],
        )
    )
    assert (exchange.request is None) == (version >= PLAIN[PRODUCE])
    assert exchange.subject == (
        "orders-0 1 record 973 B producer 4 epoch 1 sequence 9 → orders-0 @42"
    )


@pytest.mark.parametrize("version", range(FIRST[FETCH], APIS[FETCH].max_version + 1))
def test_a_plain_fetch_has_no_messages(version: int) -> None:
    records = {"high_watermark": 50, "records": batch(20_000, base_offset=41)}
    for offsets, answers in (
        ([42], [records]),
        ([42, 7], [records, {"high_watermark": 7, "records": b""}]),
        ([42], [{"high_watermark": 7, "aborted_transactions": []}]),
    ):
        exchange = compare(fetched(version, offsets, answers))
        assert (exchange.request is None) == (version >= PLAIN[FETCH])
    if version >= 7:
        assert compare(fetched(version, [], [])).subject == ""


@pytest.mark.parametrize("version", [PLAIN[PRODUCE], 13])
def test_another_produce_is_decoded(version: int) -> None:
    plain = [batch()]
    for frames in (
        produced(version, plain, [{"error_code": 6}]),
        produced(version, plain, [{"base_offset": -1}]),
        produced(version, plain, [{"base_offset": 1, "error_message": "no"}]),
        produced(version, plain * 5, [{"base_offset": 1}] * 5),
        produced(version, [b"no batch"], [{"base_offset": 1}]),
        produced(version, [batch(codec="gzip")], [{"base_offset": 1}]),
        produced(version, [batch() + batch()], [{"base_offset": 1}]),
        produced(version, [], []),
        produced(version, plain, [{"base_offset": 1}])._replace(answer=None),
        produced(version, plain, [{"base_offset": 1}])._replace(head=None),
        produced(version, plain, [{"base_offset": 1}])._replace(answer=b"\x00\x00\x00\x08\x00"),
    ):
        compare(frames)


def test_another_fetch_is_decoded() -> None:
    answer = {"high_watermark": 7}
    forgotten = [ForgottenTopic(topic="old", partitions=[1])]
    for frames in (
        fetched(12, [1], [{"error_code": 1}]),
        fetched(12, [-1], [answer]),
        fetched(12, [1], [answer], rack_id="a"),
        fetched(12, [1], [answer], cluster_id="c"),
        fetched(12, [1], [answer], forgotten_topics_data=forgotten),
        fetched(12, list(range(5)), [answer]),
    ):
        compare(frames)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_random_exchanges_are_those_of_decode(api: Any) -> None:
    for frames in random_frames(api, 9):
        compare(frames._replace(head=read_head(frames.request)))


def test_recorded_exchanges_are_those_of_decode() -> None:
    for broker in ("3.9.1", "4.4.0"):
        for frames in recorded_frames(broker):
            compare(frames._replace(head=read_head(frames.request)))


def test_damaged_exchanges_are_those_of_decode() -> None:
    chance = random.Random(6)
    whole = [
        produced(9, [batch(200)], [{"base_offset": 42}]),
        produced(13, [batch(200)], [{"base_offset": 42}]),
        fetched(12, [1], [{"high_watermark": 9, "records": batch()}]),
        fetched(17, [1], [{"high_watermark": 9, "records": batch()}]),
    ]
    for frames in whole * 300:
        request = (
            damaged(chance, bytes(frames.request)) if chance.random() < 0.5 else frames.request
        )
        answer = frames.answer
        if request is frames.request:
            answer = damaged(chance, bytes(answer or b""))
        compare(frames._replace(request=request, answer=answer, head=read_head(request)))
