"""DescribeTopicPartitions: all pages together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


def asking(
    *names: str, cursor: tuple[str, int] | None = None, limit: int = 2000
) -> DescribeTopicPartitionsRequest:
    place = Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=place,
    )


def indexes_by_name(answer: Any) -> list[tuple[str, list[int]]]:
    return [
        (topic.name, [part.partition_index for part in topic.partitions]) for topic in answer.topics
    ]


@pytest.fixture
async def topics(running: InProcessBroker) -> None:
    """Beside `t` with two partitions: `a` with three, `z` with one."""
    await running.create_topic("z")
    await running.create_topic("a", 3)


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
async def test_pages_join_to_the_whole(client: RawClient, limit: int) -> None:
    places: list[tuple[str, int]] = []
    cursor = None
    for _ in range(7):
        answer = await client.call(asking(cursor=cursor, limit=limit), 0)
        page = [(name, index) for name, indexes in indexes_by_name(answer) for index in indexes]
        assert len(page) <= limit
        places += page
        if answer.next_cursor is None:
            break
        cursor = (answer.next_cursor.topic_name, answer.next_cursor.partition_index)
    assert places == [("a", 0), ("a", 1), ("a", 2), ("t", 0), ("t", 1), ("z", 0)]
