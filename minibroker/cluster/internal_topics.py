"""How the internal topics come to be: their partitions, replicas and configuration.

Whoever needs one first creates it: FindCoordinator, or a Metadata request that names it
(behaviour G3). Both ask here, so that it comes out the same.

Source: Kafka AutoTopicCreationManager, GroupCoordinator and TransactionStateManager (their topic
configurations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from minibroker.config.broker import BrokerConfig

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"


class NewTopic(NamedTuple):
    """What a topic that the broker creates by itself is created with."""

    partition_count: int
    replication_factor: int
    configs: dict[str, str]


def new_topic(name: str, config: BrokerConfig) -> NewTopic:
    """What `name` is created with when nobody says: internal topics as their coordinator wants
    them, any other by `num.partitions` and `default.replication.factor`."""
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
