"""Checks of the settings of groups and of client metrics subscriptions, which are set at run time.

A group's value stands over the broker key that limits or supplies it (`GROUP_SYNONYMS`); a
subscription stands alone. Loaded when a request asks for either.

Source: Kafka 4.4 GroupConfig, GroupConfigManager, ClientMetricsConfigs (KIP-714, KIP-848, KIP-932).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from minibroker.broker.config.key_rows import GROUP_SYNONYMS
from minibroker.broker.config.keys import CLIENT_METRICS_KEYS, GROUP_KEYS
from minibroker.kafka.config_keys import parse_value
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.kafka.config_keys import Value

_LIMITS: Final = {
    f"{kind}.{name}": (f"group.{kind}.min.{name}", f"group.{kind}.max.{name}")
    for kind in ("consumer", "share", "streams")
    for name in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
} | {
    "share.record.lock.duration.ms": (
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    "share.delivery.count.limit": (
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    "share.partition.max.record.locks": (
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
}
"""Group key → broker keys of its least and greatest value."""

_MATCH_PARAMETERS: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
_PUSH_INTERVAL_MS: Final = (100, 3_600_000)


def validate_group_config(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """Check all values that a group would have of its own. Raises ConfigError."""
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        key = GROUP_KEYS.get(name)
        if key is None:
            raise ConfigError(f"Unknown group config name: {name}")
        values[name] = parse_value(key, text)
    for name, value in values.items():
        if name in _LIMITS and isinstance(value, int):
            lowest, highest = _LIMITS[name]
            if value < broker.integer(lowest):
                raise ConfigError(
                    f"{name} must be greater than or equal to {lowest}: "
                    f"{value} is less than {broker.integer(lowest)}"
                )
            if value > broker.integer(highest):
                raise ConfigError(
                    f"{name} must be less than or equal to {highest}: "
                    f"{value} is more than {broker.integer(highest)}"
                )
    for kind in ("consumer", "share", "streams"):
        session = _effective(values, broker, f"{kind}.session.timeout.ms")
        heartbeat = _effective(values, broker, f"{kind}.heartbeat.interval.ms")
        if session <= heartbeat:
            raise ConfigError(
                f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms: "
                f"{session} and {heartbeat}"
            )


def _effective(values: Mapping[str, Value], broker: BrokerConfig, name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else broker.integer(GROUP_SYNONYMS[name])


def parse_match(items: list[str]) -> dict[str, re.Pattern[str]]:
    """Return parameter → pattern for the `client_id=regex` items of a subscription. Raises
    ConfigError.
    """
    patterns: dict[str, re.Pattern[str]] = {}
    for item in items:
        name, equals, expression = item.partition("=")
        try:
            if not equals or not expression or name.strip() not in _MATCH_PARAMETERS:
                raise ValueError(item)
            patterns[name.strip()] = re.compile(expression.strip())
        except (ValueError, re.error):
            raise ConfigError(f"Illegal client matching pattern: {item}") from None
    return patterns


def check_push_interval(overrides: Mapping[str, str]) -> str | None:
    """Return the complaint about `interval.ms`, None if it is right."""
    text = overrides.get("interval.ms")
    if text is None:
        return None
    value = parse_value(CLIENT_METRICS_KEYS["interval.ms"], text)
    low, high = _PUSH_INTERVAL_MS
    if isinstance(value, int) and low <= value <= high:
        return None
    return (
        f"Invalid value {value} for interval.ms, interval must be between {low} and {high} (1 hour)"
    )
