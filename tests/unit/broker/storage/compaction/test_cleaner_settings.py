"""The cleaner's settings of the broker's configuration, and its metrics."""

from __future__ import annotations

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.storage.compaction.cleaner_settings import (
    CleanerMetrics,
    CleanerSettings,
    cleaner_settings,
)


def test_kafkas_defaults() -> None:
    assert cleaner_settings(BrokerConfig()) == CleanerSettings(
        True, 134217728, 0.9, 524288, 1.7976931348623157e308, 15000, 1000, 300000
    )


def test_it_is_off_without_threads_too() -> None:
    assert not cleaner_settings(BrokerConfig({"log.cleaner.threads": "0"})).is_enabled
    assert not cleaner_settings(BrokerConfig({"log.cleaner.enable": "false"})).is_enabled


def test_metrics_have_kafkas_names() -> None:
    metrics = CleanerMetrics(1000)
    metrics.map_utilization, metrics.recopy_ratio, metrics.dirty_ratio_max = 0.5, 0.25, 0.75
    metrics.last_round_s, metrics.max_delay_ms = 3.9, 2500
    assert metrics.by_name(1234) == {
        "max-buffer-utilization-percent": 50,
        "cleaner-recopy-percent": 25,
        "max-clean-time-secs": 3,
        "max-compaction-delay-secs": 2,
        "max-dirty-percent": 75,
        "time-since-last-run-ms": 234,
        "DeadThreadCount": 0,
    }
