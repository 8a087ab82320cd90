"""Topics of the command line (`--topic`), created when the broker has started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.creation_limits import RECORDS_MAX, records_of_topic
from minibroker.broker.config.topic import validate_topic_config
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.topic_option import TopicToCreate


async def create_topics(
    cluster: Cluster, config: BrokerConfig, topics: Sequence[TopicToCreate]
) -> None:
    """Create the topics that are not there yet. Raises ConfigError with option and reason."""
    for topic in topics:
        await create_topic(cluster, config, topic)


async def create_topic(cluster: Cluster, config: BrokerConfig, topic: TopicToCreate) -> None:
    """Create a topic, if it is not there yet. Raises ConfigError with the option and the reason."""
    validate_topic_config(topic.configs, config)
    count = config.num_partitions if topic.partitions < 0 else topic.partitions
    try:
        await cluster.create_topic(
            topic.name,
            count,
            topic.replicas or config.default_replication_factor,
            configs=topic.configs,
        )
    except KafkaError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            reason = error.detail or error.code.name
            if error.code == ErrorCode.POLICY_VIOLATION:
                limit = RECORDS_MAX - records_of_topic(0, topic.configs)
                reason += f" Expected at most {limit} partitions."
            raise ConfigError(f"--topic {topic.name}:{count}: {reason}") from error
