"""Keys of sockets, listeners, connections and request limits, with the broker's name and place.

Rows as `definition.ConfigKey` reads them.
Source: Kafka 3.9, SocketServerConfigs, ServerConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from minibroker.broker.config.definition import Row

KEYS: Final[tuple[Row, ...]] = (
    ("broker.id.generation.enable", "boolean", "true", "", "medium", "read-only"),
    ("reserved.broker.max.id", "int", "1000", "0..", "medium", "read-only"),
    ("broker.id", "int", "0", "", "high", "read-only"),
    ("num.io.threads", "int", "8", "1..", "high", "cluster-wide"),
    ("request.timeout.ms", "int", "30000", "", "high", "read-only"),
    ("socket.connection.setup.timeout.ms", "long", "10000", "", "medium", "read-only"),
    ("socket.connection.setup.timeout.max.ms", "long", "30000", "", "medium", "read-only"),
    ("broker.rack", "string", None, "", "medium", "read-only"),
    ("max.incremental.fetch.session.cache.slots", "int", "1000", "0..", "medium", "read-only"),
    ("fetch.max.bytes", "int", "57671680", "1024..", "medium", "read-only"),
    ("max.request.partition.size.limit", "int", "2000", "1..", "medium", "read-only"),
    ("listeners", "string", "PLAINTEXT://127.0.0.1:9092", "", "high", "per-broker"),
    ("advertised.listeners", "string", None, "", "high", "per-broker"),
    (
        "listener.security.protocol.map",
        "string",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "",
        "low",
        "per-broker",
    ),
    ("control.plane.listener.name", "string", None, "", "high", "read-only"),
    ("socket.send.buffer.bytes", "int", "102400", "", "high", "read-only"),
    ("socket.receive.buffer.bytes", "int", "102400", "", "high", "read-only"),
    ("socket.request.max.bytes", "int", "104857600", "1..", "high", "read-only"),
    ("socket.listen.backlog.size", "int", "50", "1..", "medium", "read-only"),
    ("max.connections.per.ip", "int", "2147483647", "0..", "medium", "cluster-wide"),
    ("max.connections.per.ip.overrides", "string", "", "", "medium", "cluster-wide"),
    ("max.connections", "int", "2147483647", "0..", "medium", "cluster-wide"),
    ("max.connection.creation.rate", "int", "2147483647", "0..", "medium", "cluster-wide"),
    ("connections.max.idle.ms", "long", "600000", "", "medium", "read-only"),
    ("connection.failed.authentication.delay.ms", "int", "100", "0..", "low", "read-only"),
    ("queued.max.requests", "int", "500", "1..", "high", "read-only"),
    ("queued.max.request.bytes", "long", "-1", "", "medium", "read-only"),
    ("num.network.threads", "int", "3", "1..", "high", "cluster-wide"),
)
