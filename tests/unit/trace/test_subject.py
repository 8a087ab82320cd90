"""The subjects of messages, by the names of their fields."""

from __future__ import annotations

from typing import Any

import pytest

from minibroker.broker.handlers.common.encoded_struct import EncodedStruct
from minibroker.kafka.protocol.message import Message
from minibroker.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from minibroker.kafka.protocol.messages.end_txn import EndTxnRequest
from minibroker.kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from minibroker.kafka.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from minibroker.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from minibroker.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from minibroker.trace.subject import (
    SUBJECT_MAX,
    TOPIC_NAMES_MAX,
    TopicNames,
    describe,
    describe_both,
    learn_names,
    topics_of,
)
from tests.support.batches import batch

ID = bytes(range(16))


def fetch(topic: str = "", topic_id: bytes = bytes(16), *partitions: int) -> FetchRequest:
    return FetchRequest(
        topics=[
            FetchTopic(
                topic=topic,
                topic_id=topic_id,
                partitions=[
                    FetchPartition(partition=number, fetch_offset=40 + number)
                    for number in partitions
                ],
            )
        ]
    )


MARKERS = WriteTxnMarkersRequest(
    markers=[
        WritableTxnMarker(
            producer_id=4,
            producer_epoch=1,
            transaction_result=True,
            topics=[WritableTxnMarkerTopic(name="a", partition_indexes=[0, 1])],
        )
    ]
)
EARLIEST = ListOffsetsRequest(
    topics=[
        ListOffsetsTopic(
            name="a", partitions=[ListOffsetsPartition(partition_index=2, timestamp=-2)]
        )
    ]
)
REFUSED = FetchResponse(
    responses=[
        FetchableTopicResponse(
            topic="a",
            partitions=[PartitionData(partition_index=1, error_code=6, high_watermark=-1)],
        )
    ]
)
CONFIGURED = CreateTopicsRequest(
    topics=[CreatableTopic(name="a", configs=[CreatableTopicConfig(name="k", value="v")])]
)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (fetch("orders", bytes(16), 0, 1), "orders-0 @40, orders-1 @41"),
        (fetch("orders", bytes(16), *range(9)), "@43, 5 more of orders"),
        (REFUSED, "a-1 NOT_LEADER_OR_FOLLOWER"),
        (EARLIEST, "a-2 earliest"),
        (MARKERS, "producer 4, epoch 1, commit, a-0, a-1"),
        (CONFIGURED, "a"),
        (MetadataRequest(topics=None), "all topics"),
        (
            EndTxnRequest(transactional_id="t", producer_id=4, producer_epoch=0, committed=False),
            "transaction t, producer 4, epoch 0, abort",
        ),
        (
            JoinGroupResponse(
                generation_id=3,
                protocol_name="range",
                leader="m",
                member_id="m",
                members=[JoinGroupResponseMember(member_id="m")],
            ),
            "generation 3, protocol range, leader m, member m, 1 member",
        ),
    ],
)
def test_a_subject_has_the_names_and_numbers_of_the_message(message: Message, text: str) -> None:
    assert describe(message, {}).endswith(text)


def test_a_partition_with_records_has_their_summary() -> None:
    records = batch(b"v", b"w")
    request = ProduceRequest(
        acks=1,
        topic_data=[
            TopicProduceData(
                name="a", partition_data=[PartitionProduceData(index=3, records=records)]
            )
        ],
    )
    assert describe(request, {}) == f"acks 1, a-3 2 records {len(records)} B"


def test_a_topic_id_is_the_name_that_an_answer_said() -> None:
    names: TopicNames = {}
    assert describe(fetch("", ID, 0), names) == "AAECAwQFBgcICQoLDA0ODw-0 @40"
    learn_names(MetadataResponse(topics=[MetadataResponseTopic(name="a", topic_id=ID)]), names)
    assert describe(fetch("", ID, 0), names) == "a-0 @40"
    assert list(topics_of(fetch("", ID, 0), names)) == ["a"]


def test_names_are_learned_up_to_a_limit() -> None:
    topics = [
        MetadataResponseTopic(name="a", topic_id=number.to_bytes(16, "big"))
        for number in range(1, TOPIC_NAMES_MAX + 10)
    ]
    names: TopicNames = {}
    learn_names(MetadataResponse(topics=topics), names)
    assert len(names) == TOPIC_NAMES_MAX
    names.clear()
    learn_names(
        MetadataResponse(topics=[MetadataResponseTopic(name="a" * 250, topic_id=ID)]), names
    )
    assert not names


def test_a_foreign_name_is_one_short_line() -> None:
    text = describe(fetch("a\nb\x1b[31m\u202e" + "x" * 300, bytes(16), *range(4)), {})
    assert text.startswith("a\\nb\\x1b[31m\\u202exxx")
    assert text.isprintable()
    many = MetadataRequest(topics=[MetadataRequestTopic(name="y" * 200) for _ in range(500)])
    assert len(describe(many, {})) == SUBJECT_MAX


def test_a_part_that_is_bytes_already_has_no_text() -> None:
    """A broker's Metadata answer: a topic that is refused, and one that was encoded before."""
    refused = MetadataResponseTopic(error_code=29, name="secret")
    encoded: Any = EncodedStruct(MetadataResponseTopic(name="orders"), 12, 0)
    message = MetadataResponse(topics=[refused, encoded])
    assert "secret TOPIC_AUTHORIZATION_FAILED" in describe(message, {})
    message.topics.reverse()
    assert "orders" not in describe(message, {})


def test_an_exchange_has_the_subjects_of_both_sides() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    answer = MetadataResponse(topics=[MetadataResponseTopic(name="a")])
    assert describe_both(request, answer, {}) == "a"
    assert describe_both(None, answer, {}) == "→ a"
    assert describe_both(request, REFUSED, {}) == "a → a-1 NOT_LEADER_OR_FOLLOWER"
