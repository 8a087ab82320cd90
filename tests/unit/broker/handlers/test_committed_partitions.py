"""The partitions of a request that exist, and the places of their answers."""

from __future__ import annotations

import pytest

from minibroker.broker.cluster.image import MetadataImage, TopicImage
from minibroker.broker.handlers.commits.partitions import (
    TopicAnswers,
    is_too_long,
    known_partitions,
)
from minibroker.broker.slices import run_all
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicId
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tests.unit.broker.partitions.conftest import partition_image

TOPIC_ID = TopicId(b"\1" * 16)
CLASSES = (OffsetCommitResponseTopic, OffsetCommitResponsePartition)


@pytest.fixture
def image() -> MetadataImage:
    image = MetadataImage()
    topic = TopicImage("t", TOPIC_ID, [partition_image(), partition_image()])
    image.topics["t"] = image.topic_by_id[TOPIC_ID] = topic
    return image


def request_topic(
    name: str, *indexes: int, topic_id: bytes = bytes(16)
) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(
        name=name,
        topic_id=topic_id,
        partitions=[OffsetCommitRequestPartition(partition_index=index) for index in indexes],
    )


@pytest.mark.parametrize("has_ids", [False, True])
def test_unknown_topics_are_answered_first_and_each_topic_once(
    image: MetadataImage, has_ids: bool
) -> None:
    response: list[OffsetCommitResponseTopic] = []
    answers = TopicAnswers(response, CLASSES, has_ids=has_ids)
    topics = [
        request_topic("t", 0, 2, 1, -1, topic_id=TOPIC_ID),
        request_topic("u", 0, topic_id=b"\2" * 16),
        request_topic("v", topic_id=b"\3" * 16),
    ]
    may_read = {"t", "u", "v"}
    existing = run_all(known_partitions(image, topics, answers, has_ids=has_ids, may_read=may_read))
    assert [
        (topic.image.name, [p.partition_index for p in topic.partitions]) for topic in existing
    ] == [("t", [0, 1])]
    run_all(answers.add_known(existing, ErrorCode.ILLEGAL_GENERATION))
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if has_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    codes = [
        [(partition.partition_index, partition.error_code) for partition in topic.partitions]
        for topic in response
    ]
    missing, late = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.ILLEGAL_GENERATION
    assert codes == [[(2, missing), (-1, missing), (0, late), (1, late)], [(0, unknown)], []]
    ids = [topic.topic_id for topic in response]
    assert ids == [TOPIC_ID, b"\2" * 16, b"\3" * 16] if has_ids else [bytes(16)] * 3


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (None, False),
        ("", False),
        ("x" * 10, False),
        ("x" * 11, True),
        ("\N{LATIN SMALL LETTER U WITH DIAERESIS}" * 10, False),
        ("\N{GRINNING FACE}" * 5, False),
        ("\N{GRINNING FACE}" * 6, True),
    ],
)
def test_metadata_is_counted_in_utf_16_units(metadata: str | None, expected: bool) -> None:
    assert is_too_long(metadata, 10) is expected


@pytest.mark.parametrize("has_ids", [False, True])
def test_a_forbidden_topic_is_refused_whether_it_is_there_or_not(
    image: MetadataImage, has_ids: bool
) -> None:
    response: list[OffsetCommitResponseTopic] = []
    answers = TopicAnswers(response, CLASSES, has_ids=has_ids)
    topics = [
        request_topic("t", 0, 9, topic_id=TOPIC_ID),
        request_topic("u", 0, topic_id=b"\2" * 16),
    ]
    steps = known_partitions(image, topics, answers, has_ids=has_ids, may_read=set())
    assert run_all(steps) == []
    forbidden = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if has_ids else forbidden
    codes = [[part.error_code for part in topic.partitions] for topic in response]
    assert codes == [[forbidden, forbidden], [unknown]]
