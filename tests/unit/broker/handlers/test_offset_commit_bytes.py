"""The parts of the usual OffsetCommit request, and what has another shape."""

from __future__ import annotations

import pytest

from minibroker.broker.handlers.offset_commit_bytes import split
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from minibroker.kafka.protocol.primitives import Writer

VERSIONS = range(7, 11)
_IN_FRONT = b"head"


def request(count: int, metadata: str | None = "", topic_count: int = 1) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=index << 33,
            committed_leader_epoch=index - 1,
            committed_metadata=metadata,
        )
        for index in range(count)
    ]
    topic = OffsetCommitRequestTopic(name="topic", topic_id=bytes(range(16)), partitions=partitions)
    return OffsetCommitRequest(
        group_id="group",
        generation_id_or_member_epoch=3,
        member_id="member",
        group_instance_id="instance",
        topics=[topic] * topic_count,
    )


def frame_of(message: OffsetCommitRequest, version: int) -> memoryview:
    """Its bytes behind some others, as a frame has its header in front."""
    writer = Writer()
    message.write(writer, version)
    return memoryview(bytearray(_IN_FRONT + writer.to_bytes()))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [1, 2, 64])
@pytest.mark.parametrize("metadata", ["", None])
def test_offsets_stand_behind_what_is_the_same_for_all(
    version: int, count: int, metadata: str | None
) -> None:
    frame = frame_of(request(count, metadata), version)
    found = split(frame, len(_IN_FRONT), version)
    assert found is not None
    key, offsets = found
    assert offsets == [(index, index << 33, index - 1) for index in range(count)]
    first = split(frame_of(request(1), version), len(_IN_FRONT), version)
    assert first is not None
    assert first[0] == key
    assert frame[len(_IN_FRONT) :][: len(key)] == key


@pytest.mark.parametrize("version", VERSIONS)
def test_instance_ids_may_be_missing(version: int) -> None:
    message = request(1)
    message.group_instance_id = None
    assert split(frame_of(message, version), len(_IN_FRONT), version) is not None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "message",
    [request(0), request(65), request(1, "x"), request(2, "x" * 18), request(1, "", 2)],
    ids=["no partition", "too many", "metadata", "metadata of an entry's size", "two topics"],
)
def test_another_shape_is_nothing(version: int, message: OffsetCommitRequest) -> None:
    assert split(frame_of(message, version), len(_IN_FRONT), version) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_truncated_or_longer_request_is_not_parsed(version: int) -> None:
    frame = frame_of(request(2), version)
    for size in range(len(_IN_FRONT), len(frame)):
        assert split(frame[:size], len(_IN_FRONT), version) is None
    assert split(memoryview(bytes(frame) + b"\0"), len(_IN_FRONT), version) is None


@pytest.mark.parametrize("version", range(8, 11))
@pytest.mark.parametrize("from_end", [1, 2, 3])
def test_tags_are_nothing(version: int, from_end: int) -> None:
    frame = frame_of(request(1), version)
    frame[len(frame) - from_end] = 1
    assert split(frame, len(_IN_FRONT), version) is None
