"""Settings of the topics that the broker makes by itself."""

from __future__ import annotations

from minibroker.broker.cluster.internal_topics import new_topic
from minibroker.broker.config.broker import BrokerConfig


def test_internal_topics_are_made_as_their_coordinators_want_them() -> None:
    config = BrokerConfig(
        {
            "offsets.topic.num.partitions": "3",
            "offsets.topic.segment.bytes": "1048576",
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.min.isr": "2",
        }
    )
    assert new_topic("__consumer_offsets", config) == (
        3,
        1,
        {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "1048576"},
    )
    assert new_topic("__transaction_state", config) == (
        4,
        1,
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "2",
            "segment.bytes": "104857600",
            "unclean.leader.election.enable": "false",
        },
    )


def test_any_other_topic_is_made_by_the_defaults() -> None:
    config = BrokerConfig({"num.partitions": "5"})
    assert new_topic("t", config) == (5, 1, {})
