"""DescribeTopicPartitions: pages, cursors, topics that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.handlers.common.authorized_operations import ALL_OPERATIONS
from minibroker.broker.security.acls import ResourceType
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
async def test_all_topics_by_name(client: RawClient) -> None:
    answer = await client.call(asking(), 0)
    assert indexes_by_name(answer) == [("a", [0, 1, 2]), ("t", [0, 1]), ("z", [0])]
    assert answer.next_cursor is None
    for topic in answer.topics:
        assert topic.topic_authorized_operations == ALL_OPERATIONS[ResourceType.TOPIC]
        for part in topic.partitions:
            assert (part.error_code, part.leader_id, part.replica_nodes) == (0, 0, [0])
            assert part.eligible_leader_replicas == part.last_known_elr == []


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
