"""Keys of replicas, leaders and the talk between brokers.

Rows as `definition.ConfigKey` reads them. Source: Kafka 3.9, ReplicationConfigs, ServerConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from minibroker.broker.config.definition import Row

KEYS: Final[tuple[Row, ...]] = (
    ("num.replica.alter.log.dirs.threads", "int", None, "", "high", "read-only"),
    ("background.threads", "int", "10", "1..", "high", "cluster-wide"),
    ("controlled.shutdown.max.retries", "int", "3", "", "medium", "read-only"),
    ("controlled.shutdown.retry.backoff.ms", "long", "5000", "", "medium", "read-only"),
    ("controlled.shutdown.enable", "boolean", "true", "", "medium", "read-only"),
    ("controller.socket.timeout.ms", "int", "30000", "", "medium", "read-only"),
    ("default.replication.factor", "int", "1", "", "medium", "read-only"),
    ("replica.lag.time.max.ms", "long", "30000", "", "high", "read-only"),
    ("replica.socket.timeout.ms", "int", "30000", "", "high", "read-only"),
    ("replica.socket.receive.buffer.bytes", "int", "65536", "", "high", "read-only"),
    ("replica.fetch.max.bytes", "int", "1048576", "0..", "medium", "read-only"),
    ("replica.fetch.wait.max.ms", "int", "500", "", "high", "read-only"),
    ("replica.fetch.backoff.ms", "int", "1000", "0..", "medium", "read-only"),
    ("replica.fetch.min.bytes", "int", "1", "", "high", "read-only"),
    ("replica.fetch.response.max.bytes", "int", "10485760", "0..", "medium", "read-only"),
    ("num.replica.fetchers", "int", "1", "", "high", "cluster-wide"),
    ("replica.high.watermark.checkpoint.interval.ms", "long", "5000", "", "high", "read-only"),
    ("auto.leader.rebalance.enable", "boolean", "true", "", "high", "read-only"),
    ("leader.imbalance.per.broker.percentage", "int", "10", "", "high", "read-only"),
    ("leader.imbalance.check.interval.seconds", "long", "300", "1..", "high", "read-only"),
    ("unclean.leader.election.interval.ms", "long", "300000", "1..", "medium", "read-only", True),
    ("unclean.leader.election.enable", "boolean", "false", "", "high", "cluster-wide"),
    (
        "security.inter.broker.protocol",
        "string",
        "PLAINTEXT",
        "PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL",
        "medium",
        "read-only",
    ),
    ("inter.broker.protocol.version", "string", "3.9-IV0", "version", "medium", "read-only"),
    ("inter.broker.listener.name", "string", None, "", "medium", "read-only"),
    ("replica.selector.class", "string", None, "", "medium", "read-only"),
)
