"""The `log.cleaner.*` keys as the cleaner reads them, and what it shows of itself.

Source: Kafka CleanerConfig; metrics of LogCleaner and LogCleanerManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from minibroker.broker.config.broker import BrokerConfig


class CleanerSettings(NamedTuple):
    """Read anew for every look. `idle_ms`: 0, the active segment is never closed for compaction."""

    is_enabled: bool
    dedupe_buffer_bytes: int
    load_factor: float
    io_buffer_bytes: int
    io_max_bytes_per_second: float
    backoff_ms: int
    idle_ms: int
    retention_check_ms: int


def cleaner_settings(broker: BrokerConfig) -> CleanerSettings:
    """Return the settings of compaction from the broker's configuration."""
    return CleanerSettings(
        broker.log_cleaner_enable and broker.log_cleaner_threads > 0,
        broker.integer("log.cleaner.dedupe.buffer.size"),
        broker.number("log.cleaner.io.buffer.load.factor"),
        broker.integer("log.cleaner.io.buffer.size"),
        broker.number("log.cleaner.io.max.bytes.per.second"),
        broker.log_cleaner_backoff_ms,
        broker.log_cleaner_idle_ms,
        broker.log_retention_check_interval_ms,
    )


class CleanerMetrics:
    """Kafka's metrics of the cleaner, of the last round and of all.

    `LogCleaner.uncleanable` knows the logs that were set aside.
    """

    __slots__ = (
        "dirty_ratio_max",
        "last_round_s",
        "last_run_ms",
        "map_utilization",
        "max_delay_ms",
        "recopy_ratio",
        "round_count",
    )

    def __init__(self, now_ms: int) -> None:
        self.map_utilization = self.recopy_ratio = self.dirty_ratio_max = 0.0
        self.last_round_s = 0.0
        self.max_delay_ms = self.round_count = 0
        self.last_run_ms = now_ms

    def by_name(self, now_ms: int) -> dict[str, int]:
        """Kafka's names (`kafka.log:type=LogCleaner` and `LogCleanerManager`) → values."""
        return {
            "max-buffer-utilization-percent": int(100 * self.map_utilization),
            "cleaner-recopy-percent": int(100 * self.recopy_ratio),
            "max-clean-time-secs": int(self.last_round_s),
            "max-compaction-delay-secs": self.max_delay_ms // 1000,
            "max-dirty-percent": int(100 * self.dirty_ratio_max),
            "time-since-last-run-ms": now_ms - self.last_run_ms,
            "DeadThreadCount": 0,
        }
