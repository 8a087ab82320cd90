"""Keys of where the metadata lives: ZooKeeper, and the KRaft quorum that is accepted and unused.

Rows as `definition.ConfigKey` reads them. Source: Kafka 3.9, ZkConfigs, KRaftConfigs, QuorumConfig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from minibroker.broker.config.definition import Row

KEYS: Final[tuple[Row, ...]] = (
    ("zookeeper.connect", "string", None, "", "high", "read-only"),
    ("zookeeper.session.timeout.ms", "int", "18000", "", "high", "read-only"),
    ("zookeeper.connection.timeout.ms", "int", None, "", "high", "read-only"),
    ("zookeeper.set.acl", "boolean", "false", "", "high", "read-only"),
    ("zookeeper.max.in.flight.requests", "int", "10", "1..", "high", "read-only"),
    ("zookeeper.ssl.client.enable", "boolean", "false", "", "medium", "read-only"),
    ("zookeeper.clientCnxnSocket", "string", None, "", "medium", "read-only"),
    ("zookeeper.ssl.keystore.location", "string", None, "", "medium", "read-only"),
    ("zookeeper.ssl.keystore.password", "password", None, "", "medium", "read-only"),
    ("zookeeper.ssl.keystore.type", "string", None, "", "medium", "read-only"),
    ("zookeeper.ssl.truststore.location", "string", None, "", "medium", "read-only"),
    ("zookeeper.ssl.truststore.password", "password", None, "", "medium", "read-only"),
    ("zookeeper.ssl.truststore.type", "string", None, "", "medium", "read-only"),
    ("zookeeper.ssl.protocol", "string", "TLSv1.2", "", "low", "read-only"),
    ("zookeeper.ssl.enabled.protocols", "list", None, "", "low", "read-only"),
    ("zookeeper.ssl.cipher.suites", "list", None, "", "low", "read-only"),
    ("zookeeper.ssl.endpoint.identification.algorithm", "string", "HTTPS", "", "low", "read-only"),
    ("zookeeper.ssl.crl.enable", "boolean", "false", "", "low", "read-only"),
    ("zookeeper.ssl.ocsp.enable", "boolean", "false", "", "low", "read-only"),
    ("early.start.listeners", "string", None, "", "high", "read-only"),
    ("unstable.api.versions.enable", "boolean", "false", "", "high", "read-only", True),
    ("unstable.feature.versions.enable", "boolean", "false", "", "high", "read-only", True),
    (
        "metadata.log.max.record.bytes.between.snapshots",
        "long",
        "20971520",
        "1..",
        "high",
        "read-only",
    ),
    ("metadata.log.max.snapshot.interval.ms", "long", "3600000", "0..", "high", "read-only"),
    ("process.roles", "list", "", "broker|controller", "high", "read-only"),
    ("node.id", "int", "0", "", "high", "read-only"),
    ("initial.broker.registration.timeout.ms", "int", "60000", "", "medium", "read-only"),
    ("broker.heartbeat.interval.ms", "int", "2000", "", "medium", "read-only"),
    ("broker.session.timeout.ms", "int", "9000", "", "medium", "read-only"),
    ("controller.listener.names", "string", None, "", "high", "read-only"),
    ("sasl.mechanism.controller.protocol", "string", "GSSAPI", "", "high", "read-only"),
    ("metadata.log.dir", "string", None, "", "high", "read-only"),
    ("metadata.log.segment.bytes", "int", "1073741824", "12..", "high", "read-only"),
    ("metadata.log.segment.min.bytes", "int", "8388608", "12..", "high", "read-only", True),
    ("metadata.log.segment.ms", "long", "604800000", "", "high", "read-only"),
    ("metadata.max.retention.bytes", "long", "104857600", "", "high", "read-only"),
    ("metadata.max.retention.ms", "long", "604800000", "", "high", "read-only"),
    ("metadata.max.idle.interval.ms", "int", "500", "0..", "low", "read-only"),
    (
        "server.max.startup.time.ms",
        "long",
        "9223372036854775807",
        "0..",
        "medium",
        "read-only",
        True,
    ),
    ("zookeeper.metadata.migration.enable", "boolean", "false", "", "high", "read-only"),
    ("eligible.leader.replicas.enable", "boolean", "false", "", "high", "read-only"),
    (
        "zookeeper.metadata.migration.min.batch.size",
        "int",
        "200",
        "1..",
        "medium",
        "read-only",
        True,
    ),
    ("controller.quorum.voters", "list", "", "", "high", "read-only"),
    ("controller.quorum.bootstrap.servers", "list", "", "", "high", "read-only"),
    ("controller.quorum.election.timeout.ms", "int", "1000", "", "high", "read-only"),
    ("controller.quorum.fetch.timeout.ms", "int", "2000", "", "high", "read-only"),
    ("controller.quorum.election.backoff.max.ms", "int", "1000", "", "high", "read-only"),
    ("controller.quorum.append.linger.ms", "int", "25", "", "medium", "read-only"),
    ("controller.quorum.request.timeout.ms", "int", "2000", "", "medium", "read-only"),
    ("controller.quorum.retry.backoff.ms", "int", "20", "", "low", "read-only"),
)
