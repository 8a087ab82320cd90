"""The changes of listeners that a running broker takes over, and those that it refuses.

The handlers of AlterConfigs and IncrementalAlterConfigs come here through `DynamicConfig.check`.
Pure. Source: Kafka DynamicListenerConfig.validateReconfiguration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.settings import LISTENER_LIMITS, LISTENER_PREFIX
from minibroker.broker.config.unserved import TLS_STORE_KEYS
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from minibroker.broker.config.broker import BrokerConfig

ADDRESS_KEYS: Final = frozenset(
    {"advertised.listeners", "listener.security.protocol.map", "listeners"}
)
"""Keys that say which listeners there are, and where."""
_CHANGING: Final = TLS_STORE_KEYS | {*LISTENER_LIMITS, "num.network.threads"}
"""Keys of a listener that may change while it is open."""
_CAUSES: Final = ADDRESS_KEYS | (_CHANGING - TLS_STORE_KEYS)
"""Keys whose change has all listeners checked."""


def check_listener_changes(
    static: BrokerConfig, present: BrokerConfig, proposed: BrokerConfig
) -> None:
    """Raise ConfigError if a listener that stays would get other settings or another protocol, or
    would let nobody in.

    As in Kafka the settings behind a listener's prefix are compared with those of the start. So
    where they were altered since, `listeners` can be altered after the next start with them only.
    """
    _check_limits(present, proposed)
    if all(present.originals.get(key) == proposed.originals.get(key) for key in _CAUSES):
        return
    protocols = {listener.name: listener.security_protocol for listener in present.listeners}
    for listener in proposed.listeners:
        if listener.name not in protocols:
            continue
        if _fixed(static, listener.name) != _fixed(proposed, listener.name):
            raise ConfigError(
                "Configs cannot be updated dynamically for existing listener"
                f" ListenerName({listener.name}), restart broker or create a new listener for"
                " update"
            )
        if protocols[listener.name] is not listener.security_protocol:
            raise ConfigError(
                "Security protocol cannot be updated for existing listener"
                f" ListenerName({listener.name})"
            )


def _check_limits(present: BrokerConfig, proposed: BrokerConfig) -> None:
    """Raise ConfigError if a listener would get a limit of 0, from the broker's or its own number.

    Source: Kafka ListenerConnectionQuota.validateReconfiguration. A file may have it.
    """
    for listener in present.listeners:
        old, new = present.of_listener(listener.name), proposed.of_listener(listener.name)
        if all(old.integer(key) == new.integer(key) for key in LISTENER_LIMITS):
            continue
        for key in LISTENER_LIMITS:
            if (limit := new.integer(key)) <= 0:
                raise ConfigError(f"Invalid {key} {limit}")


def _fixed(config: BrokerConfig, name: str) -> dict[str, str]:
    """Return the settings of a listener that stay while it is open."""
    prefix = f"{LISTENER_PREFIX}{name.lower()}."
    return {
        key: text
        for key, text in config.originals.items()
        if key.startswith(prefix) and key.removeprefix(prefix) not in _CHANGING
    }
