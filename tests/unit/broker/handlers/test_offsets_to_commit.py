"""Common code of both commits of offsets: a code per partition, and answers that fail later."""

from __future__ import annotations

import asyncio
import inspect
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.groups.offsets import CommittedOffset
from minibroker.broker.handlers.commits.offsets import accept, when_replicated, write
from minibroker.broker.handlers.commits.partitions import KnownTopic, TopicAnswers
from minibroker.broker.handlers.common.visible_answers import when_visible
from minibroker.broker.slices import run_all
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from minibroker.broker.slices import Steps

ID = bytes(range(16))
NOW_MS = 1_000


def known_topic(*partitions: OffsetCommitRequestPartition) -> list[KnownTopic]:
    image: Any = SimpleNamespace(name="t", topic_id=ID, partitions=[None] * 9)
    return [KnownTopic(image, list(partitions))]


def partition(index: int, metadata: str = "", **fields: int) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=index, committed_offset=7, committed_metadata=metadata, **fields
    )


def accept_all(topics: list[KnownTopic], **wishes: Any) -> Any:
    settings = {"units_max": 10, "now_ms": NOW_MS, "has_ids": False, "has_times": True}
    shard: Any = Shard()
    return run_all(accept(shard, "g", topics, **{**settings, **wishes}))


def write_all(shard: Any, topics: list[KnownTopic], answers: TopicAnswers, **wishes: Any) -> Any:
    wishes.setdefault("validator", None)
    return run_all(write(shard, "g", accept_all(topics), topics, answers, **wishes))


class Shard:
    """Takes what is written, or refuses it."""

    def __init__(
        self, refusal: ErrorCode | None = None, wait: asyncio.Future[None] | None = None
    ) -> None:
        self.written: list[Any] = []
        self.refusal = refusal
        self._wait = wait

    def visible(self) -> asyncio.Future[None] | None:
        return self._wait

    def commit_batch(self, _commits: Any, **_producer: int) -> Steps[bytearray]:
        yield
        return bytearray(b"batch")

    def commit_offsets(
        self, _group_id: str, commits: Any, _batch: Any, *, producer_id: int
    ) -> None:
        if self.refusal is not None:
            raise KafkaError(self.refusal)
        self.written.append((commits, producer_id))


def test_metadata_that_is_too_long_is_refused_by_itself() -> None:
    commits, codes, _ = accept_all(known_topic(partition(0, "x" * 11), partition(1, "x" * 10)))
    assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    assert [key for key, _ in commits] == [("g", "t", 1)]


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ({}, CommittedOffset(7, -1, "", 5)),
        ({"has_times": False}, CommittedOffset(7, -1, "", NOW_MS)),
        ({"expire_ms": 9, "has_ids": True}, CommittedOffset(7, -1, "", 5, 9, ID)),
    ],
)
def test_times_and_ids_are_those_of_the_version(
    wishes: dict[str, Any], expected: CommittedOffset
) -> None:
    ((_, committed),), *_ = accept_all(known_topic(partition(0, commit_timestamp=5)), **wishes)
    assert committed == expected
    assert committed.topic_id == (ID if wishes.get("has_ids") else ZERO_TOPIC_ID)


def test_the_group_is_asked_for_every_partition() -> None:
    places: list[tuple[str, bytes, int]] = []

    def validator(*place: Any) -> None:
        places.append(place)
        if place[2] == 1:
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)

    topics = known_topic(partition(0), partition(2, "x" * 11), partition(1))
    response = OffsetCommitResponse()
    classes = OffsetCommitResponseTopic, OffsetCommitResponsePartition
    shard = Shard()
    with pytest.raises(KafkaError):
        write_all(
            shard,
            topics,
            TopicAnswers(response.topics, classes, has_ids=False),
            validator=validator,
        )
    assert places == [("t", ID, 0), ("t", ID, 1)]
    assert (shard.written, response.topics) == ([], [])


def test_answers_fail_when_the_disk_refuses_and_keep_an_error_of_their_own() -> None:
    topics = known_topic(partition(0, "x" * 11), partition(1))
    response = OffsetCommitResponse()
    classes = OffsetCommitResponseTopic, OffsetCommitResponsePartition
    answers = TopicAnswers(response.topics, classes, has_ids=False)
    shard: Any = Shard()
    write_all(shard, topics, answers, producer_id=3)
    ((_, producer_id),) = shard.written
    assert producer_id == 3
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    codes = [partition.error_code for partition in response.topics[0].partitions]
    assert codes == [too_large, ErrorCode.NONE]
    response = OffsetCommitResponse()
    answers = TopicAnswers(response.topics, classes, has_ids=False)
    refusing: Any = Shard(ErrorCode.NOT_COORDINATOR)
    write_all(refusing, topics, answers)
    codes = [partition.error_code for partition in response.topics[0].partitions]
    assert codes == [too_large, ErrorCode.NOT_COORDINATOR]
    topics = known_topic(partition(1))
    with pytest.raises(KafkaError):
        write_all(refusing, topics, answers)


async def test_offsets_that_are_not_replicated_in_time_are_refused() -> None:
    topics = known_topic(partition(0, "x" * 11), partition(1))
    response = OffsetCommitResponse()
    classes = OffsetCommitResponseTopic, OffsetCommitResponsePartition
    late: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    late.set_exception(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    shard: Any = Shard(wait=late)
    answers = TopicAnswers(response.topics, classes, has_ids=False)
    wait = write_all(shard, topics, answers)
    waiting = when_replicated(wait, response)
    assert not isinstance(waiting, OffsetCommitResponse)
    answer = await waiting
    codes = [partition.error_code for partition in answer.topics[0].partitions]
    assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_nothing_accepted_writes_nothing() -> None:
    topics = known_topic(partition(0, "x" * 11))
    response = OffsetCommitResponse()
    classes = OffsetCommitResponseTopic, OffsetCommitResponsePartition
    shard: Any = Shard()
    answers = TopicAnswers(response.topics, classes, has_ids=False)
    write_all(shard, topics, answers)
    assert shard.written == []
    assert len(response.topics[0].partitions) == 1


def refuse(code: ErrorCode) -> str:
    return code.name


async def test_an_answer_with_nothing_to_wait_for_is_there_at_once() -> None:
    assert when_visible(None, "good", refuse) == "good"


@pytest.mark.parametrize("is_refused", [False, True])
async def test_an_answer_waits_or_becomes_an_error(is_refused: bool) -> None:
    visible: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    answer = when_visible(visible, "good", refuse)
    assert inspect.iscoroutine(answer)
    if is_refused:
        visible.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR))
    else:
        visible.set_result(None)
    assert await answer == ("NOT_COORDINATOR" if is_refused else "good")
