"""Topics that are made, deleted and made larger over HTTP, as by an admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.kafka.protocol.api_keys import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from minibroker.kafka.protocol.messages.create_partitions import CreatePartitionsTopic
from minibroker.kafka.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from minibroker.kafka.protocol.messages.delete_topics import DeleteTopicState
from minibroker.rig.inner_client import check_code

if TYPE_CHECKING:
    from minibroker.control.topic_shapes import TopicBody
    from minibroker.rig.inner_client import InnerClient

TIMEOUT_MS: Final = 15_000
_DEFAULT: Final = -1


async def create_topic(client: InnerClient, new: TopicBody) -> None:
    """Make a topic. Raises KafkaError."""
    topic = CreatableTopic(
        name=new.name,
        num_partitions=_DEFAULT if new.partitions is None else new.partitions,
        replication_factor=_DEFAULT if new.replicas is None else new.replicas,
        configs=[
            CreatableTopicConfig(name=name, value=value) for name, value in new.configs.items()
        ],
    )
    response = await client.ask(CREATE_TOPICS, topics=[topic], timeout_ms=TIMEOUT_MS)
    (result,) = response.topics
    check_code(result.error_code, result.error_message)


async def delete_topic(client: InnerClient, name: str) -> None:
    """Delete a topic. Raises KafkaError."""
    topic = DeleteTopicState(name=name)
    response = await client.ask(DELETE_TOPICS, topics=[topic], timeout_ms=TIMEOUT_MS)
    (result,) = response.responses
    check_code(result.error_code, result.error_message)


async def add_partitions(client: InnerClient, name: str, count: int) -> None:
    """Have a topic have so many partitions. Raises KafkaError."""
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    response = await client.ask(CREATE_PARTITIONS, topics=[topic], timeout_ms=TIMEOUT_MS)
    (result,) = response.results
    check_code(result.error_code, result.error_message)
