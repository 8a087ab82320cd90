"""The changes of listeners that a running broker takes over, and those that it refuses.

The handlers of AlterConfigs and IncrementalAlterConfigs come here through `DynamicConfig.check`.
Pure. Source: Kafka DynamicListenerConfig.validateReconfiguration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.config.settings import LISTENER_PREFIX
from minibroker.config.unserved import TLS_STORE_KEYS
from minibroker.errors import ConfigError

if TYPE_CHECKING:
    from minibroker.config.broker import BrokerConfig

ADDRESS_KEYS: Final = frozenset(
    {"advertised.listeners", "listener.security.protocol.map", "listeners"}
)
"""Keys that say which listeners there are, and where."""
_CHANGING: Final = TLS_STORE_KEYS | {
    "max.connection.creation.rate",
    "max.connections",
    "num.network.threads",
}
"""Keys of a listener that may change while it is open."""
_CAUSES: Final = ADDRESS_KEYS | (_CHANGING - TLS_STORE_KEYS)
"""Keys whose change has all listeners checked."""


def check_listener_changes(
    static: BrokerConfig, present: BrokerConfig, wanted: BrokerConfig
) -> None:
    """Raise ConfigError if a listener that stays would get other settings or another protocol.

    As in Kafka the settings behind a listener's prefix are compared with those of the start. So
    where they were altered since, `listeners` can be altered after the next start with them only.
    """
    if all(present.originals.get(key) == wanted.originals.get(key) for key in _CAUSES):
        return
    protocols = {listener.name: listener.security_protocol for listener in present.listeners}
    for listener in wanted.listeners:
        if listener.name not in protocols:
            continue
        if _fixed(static, listener.name) != _fixed(wanted, listener.name):
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


def _fixed(config: BrokerConfig, name: str) -> dict[str, str]:
    """Return the settings of a listener that stay while it is open."""
    prefix = f"{LISTENER_PREFIX}{name.lower()}."
    return {
        key: text
        for key, text in config.originals.items()
        if key.startswith(prefix) and key.removeprefix(prefix) not in _CHANGING
    }
