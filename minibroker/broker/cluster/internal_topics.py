"""The creation of internal topics: their partitions, replicas and configuration.

The first request that needs such a topic creates it: FindCoordinator, or a Metadata request that
names it. Both ask this module, so that the topic is the same.

Source: Kafka AutoTopicCreationManager, GroupCoordinator and TransactionStateManager (their topic
configurations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from minibroker.broker.config.broker import BrokerConfig

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"


class NewTopic:
    """Partitions, replicas and configuration of a topic that the broker creates by itself."""

    __slots__ = ("configs", "partition_count", "replication_factor")

    def __init__(
        self, partition_count: int, replication_factor: int, configs: dict[str, str]
    ) -> None:
        self.partition_count = partition_count
        self.replication_factor = replication_factor
        self.configs = configs


def new_topic(name: str, config: BrokerConfig) -> NewTopic:
    """Return how `name` is created if nobody says: internal topics as their coordinator wants them,
    any other by `num.partitions` and `default.replication.factor`.
    """
    if name == OFFSETS_TOPIC:
        return NewTopic(
            config.offsets_topic_num_partitions,
            config.offsets_topic_replication_factor,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTIONS_TOPIC:
        return NewTopic(
            config.transaction_state_log_num_partitions,
            config.transaction_state_log_replication_factor,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    return NewTopic(config.num_partitions, config.default_replication_factor, {})
