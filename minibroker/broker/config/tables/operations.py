"""Keys of metrics, telemetry, quotas and the housekeeping of waiting requests.

Rows as `definition.ConfigKey` reads them. Source: Kafka 3.9, MetricConfigs, QuotaConfig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from minibroker.broker.config.definition import Row

KEYS: Final[tuple[Row, ...]] = (
    ("fetch.purgatory.purge.interval.requests", "int", "1000", "", "medium", "read-only"),
    ("producer.purgatory.purge.interval.requests", "int", "1000", "", "medium", "read-only"),
    ("delete.records.purgatory.purge.interval.requests", "int", "1", "", "medium", "read-only"),
    ("metrics.num.samples", "int", "2", "1..", "low", "read-only"),
    ("metrics.sample.window.ms", "long", "30000", "1..", "low", "read-only"),
    ("metric.reporters", "list", "", "", "low", "cluster-wide"),
    ("metrics.recording.level", "string", "INFO", "", "low", "read-only"),
    ("auto.include.jmx.reporter", "boolean", "true", "", "low", "read-only"),
    ("kafka.metrics.reporters", "list", "", "", "low", "read-only"),
    ("kafka.metrics.polling.interval.secs", "int", "10", "1..", "low", "read-only"),
    ("telemetry.max.bytes", "int", "1048576", "1..", "low", "read-only"),
    ("quota.window.num", "int", "11", "1..", "low", "read-only"),
    ("replication.quota.window.num", "int", "11", "1..", "low", "read-only"),
    ("alter.log.dirs.replication.quota.window.num", "int", "11", "1..", "low", "read-only"),
    ("controller.quota.window.num", "int", "11", "1..", "low", "read-only"),
    ("quota.window.size.seconds", "int", "1", "1..", "low", "read-only"),
    ("replication.quota.window.size.seconds", "int", "1", "1..", "low", "read-only"),
    ("alter.log.dirs.replication.quota.window.size.seconds", "int", "1", "1..", "low", "read-only"),
    ("controller.quota.window.size.seconds", "int", "1", "1..", "low", "read-only"),
    ("client.quota.callback.class", "class", None, "", "low", "read-only"),
)
