"""The values after an alteration, and whether it is allowed.

Pure: texts in, texts out. The handlers of AlterConfigs and IncrementalAlterConfigs call this.
Source: Kafka ConfigAdminManager.prepareIncrementalConfigs, DynamicBrokerConfig.validate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.config.keys import BROKER_KEYS
from minibroker.broker.config.settings import LISTENER_LIMITS, LISTENER_PREFIX
from minibroker.broker.config.unserved import TLS_STORE_KEYS, check_served
from minibroker.kafka.config_keys import PER_BROKER, READ_ONLY, parse_value
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.kafka.config_keys import ConfigKey

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3

_CLUSTER_LEVEL_LISTENER_KEYS: Final = frozenset({*LISTENER_LIMITS, "num.network.threads"})
_THREAD_COUNTS: Final = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
)


class Change(NamedTuple):
    """One wish about one key; `value` is None where the operation needs none."""

    name: str
    operation: int
    value: str | None


def apply_changes(
    current: Mapping[str, str], changes: Iterable[Change], keys: Mapping[str, ConfigKey]
) -> dict[str, str]:
    """Return `current` with the changes applied. Raises ConfigError where a list is needed and is
    none.
    """
    values = dict(current)
    for name, operation, value in changes:
        if operation == DELETE:
            values.pop(name, None)
        elif value is not None and operation == SET:
            values[name] = value
        elif value is not None:
            values[name] = _change_list(values, name, operation, value, keys)
    return values


def _change_list(
    values: Mapping[str, str],
    name: str,
    operation: int,
    value: str,
    keys: Mapping[str, ConfigKey],
) -> str:
    """Return a list with the change applied. It starts from its default, not from what the broker
    says; each item is there once.
    """
    key = keys.get(name)
    if key is None or key.type != "list":
        verb = "append" if operation == APPEND else "subtract"
        raise ConfigError(f"Config value {verb} is not allowed for config key: {name}")
    text = values.get(name, key.default or "")
    items = text.split(",") if text else []
    if operation == APPEND:
        items += [item for item in value.split(",") if item not in items]
    else:
        for item in value.split(","):
            if item in items:
                items.remove(item)
    return ",".join(items)


def as_changes(current: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str | None]:
    """Return the changes from the present values to the wanted ones: key → new text, None to take
    it away.
    """
    changes: dict[str, str | None] = {name: None for name in current if name not in values}
    changes.update((name, text) for name, text in values.items() if current.get(name) != text)
    return changes


def check_broker_values(
    dynamic: DynamicConfig, values: Mapping[str, str], *, per_broker: bool
) -> None:
    """Check all dynamic values of this broker, or of the cluster. Raises ConfigError.

    Names that no release knows are let through, as Kafka does: a plug-in may read them.
    """
    check_served(values)
    _refuse(
        "These security configs can be dynamically updated only per-listener using the listener"
        " prefix",
        [name for name in values if name in TLS_STORE_KEYS],
    )
    _refuse(
        "Cannot update these configs dynamically",
        [
            name
            for name in values
            if (key := BROKER_KEYS.get(name)) and key.update_mode == READ_ONLY
        ],
    )
    for name, text in values.items():
        key = BROKER_KEYS.get(_base_name(name))
        if key is not None:
            parse_value(key, text)
    if not per_broker:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            [name for name in values if _is_per_broker(name)],
        )
    _check_result(dynamic, values, per_broker=per_broker)


def _check_result(dynamic: DynamicConfig, values: Mapping[str, str], *, per_broker: bool) -> None:
    """Check the rules between keys on what would be in force; thread counts at most halve or
    double.
    """
    config = dynamic.with_layers(
        values if per_broker else dynamic.per_broker,
        dynamic.cluster_default if per_broker else values,
    )
    dynamic.check(config)
    for name in _THREAD_COUNTS:
        old, new = dynamic.broker.integer(name), config.integer(name)
        why = f"Dynamic thread count update validation failed for {name}={new}, value should"
        if new < old // 2:
            raise ConfigError(f"{why} be at least half the current value {old}")
        if new > old * 2:
            raise ConfigError(f"{why} not be greater than double the current value {old}")


def _refuse(complaint: str, names: list[str]) -> None:
    if names:
        raise ConfigError(f"{complaint}: [{', '.join(names)}]")


def _base_name(name: str) -> str:
    """Return the key behind a listener's prefix: `listener.name.NAME.key` → `key`."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    return name[len(LISTENER_PREFIX) :].partition(".")[2]


def _is_per_broker(name: str) -> bool:
    base = _base_name(name)
    if base != name:
        return base not in _CLUSTER_LEVEL_LISTENER_KEYS
    key = BROKER_KEYS.get(name)
    return key is not None and key.update_mode == PER_BROKER
