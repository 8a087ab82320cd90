"""Every broker key this process accepts: Kafka 3.9's, what 4.x added, and ours.

Our defaults differ from Kafka's only where one development node needs it:

    key                                         Kafka                 here
    listeners                                   PLAINTEXT://:9092     PLAINTEXT://127.0.0.1:9092
    log.dir                                     /tmp/kafka-logs       minibroker-data
    broker.id, node.id                          -1 (generated)        0
    group.initial.rebalance.delay.ms            3000                  0
    offsets.topic.replication.factor            3                     1
    transaction.state.log.replication.factor    3                     1
    transaction.state.log.min.isr               2                     1
    share.coordinator.state.topic.*             3 and 2               1

Ours, under a prefix of our own: `minibroker.advertised.kafka.version` (the release that ApiVersions
pretends to be), `minibroker.cluster.id` (the id of a cluster that has none yet: the one that
`kafka-storage format` is told), `minibroker.log.cleaner.idle.ms` (how soon a quiet compacted log is
cleaned), `minibroker.log.sync.interval.ms` (how soon an append is synced, so that a start checks
little) and `minibroker.users` (names and passwords for SASL). Without it, as Kafka's
StorageTool names them: `transaction.version`, `group.version` and
`eligible.leader.replicas.version`, levels of features in a new cluster. Named as properties of Java
that Kafka reads: `java.security.auth.login.config`, `java.security.krb5.conf` and
`org.apache.kafka.sasl.oauthbearer.allowed.urls`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.definition import key_table
from minibroker.broker.config.tables.groups import KEYS as GROUPS_KEYS
from minibroker.broker.config.tables.metadata import KEYS as METADATA_KEYS
from minibroker.broker.config.tables.network import KEYS as NETWORK_KEYS
from minibroker.broker.config.tables.newer import KEYS as NEWER_KEYS
from minibroker.broker.config.tables.operations import KEYS as OPERATIONS_KEYS
from minibroker.broker.config.tables.replication import KEYS as REPLICATION_KEYS
from minibroker.broker.config.tables.security import KEYS as SECURITY_KEYS
from minibroker.broker.config.tables.storage import KEYS as STORAGE_KEYS

if TYPE_CHECKING:
    from minibroker.broker.config.definition import ConfigKey, Row

_OURS: Final[tuple[Row, ...]] = (
    ("minibroker.advertised.kafka.version", "string", None, "", "low", "read-only", True),
    ("minibroker.cluster.id", "string", None, "", "low", "read-only", True),
    ("minibroker.log.cleaner.idle.ms", "long", "1000", "0..", "low", "read-only", True),
    ("minibroker.log.sync.interval.ms", "long", "2000", "0..", "low", "read-only", True),
    ("minibroker.scram.credentials", "password", None, "", "low", "read-only", True),
    ("minibroker.users", "password", None, "", "medium", "read-only", True),
    ("java.security.auth.login.config", "string", None, "", "medium", "read-only", True),
    ("java.security.krb5.conf", "string", None, "", "low", "read-only", True),
    (
        "org.apache.kafka.sasl.oauthbearer.allowed.urls",
        "string",
        None,
        "",
        "low",
        "read-only",
        True,
    ),
    ("transaction.version", "int", None, "0..2", "low", "read-only", True),
    ("group.version", "int", None, "0..1", "low", "read-only", True),
    ("eligible.leader.replicas.version", "int", None, "0..1", "low", "read-only", True),
)

FEATURE_KEYS: Final = (
    "transaction.version",
    "group.version",
    "eligible.leader.replicas.version",
)
"""Levels of features in a cluster where they were never changed (Kafka: set at formatting)."""

# Throttles of replication: only ever set at run time, never in a file (Kafka DynamicConfig.Broker).
_RUN_TIME_ONLY: Final[tuple[Row, ...]] = tuple(
    (name, "long", "9223372036854775807", "0..", "medium", "cluster-wide", True)
    for name in (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)

BROKER_KEYS: Final[dict[str, ConfigKey]] = key_table(
    NETWORK_KEYS,
    STORAGE_KEYS,
    REPLICATION_KEYS,
    GROUPS_KEYS,
    OPERATIONS_KEYS,
    SECURITY_KEYS,
    METADATA_KEYS,
    ((*row, "medium", "read-only", True) for row in NEWER_KEYS),
    _OURS,
    _RUN_TIME_ONLY,
)
