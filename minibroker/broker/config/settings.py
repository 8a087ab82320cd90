"""`ConfigValues`: texts under keys, read as values of the keys' types.

`BrokerValues` is one, with all of the broker's settings. `of_listener` gives another: the settings
as one listener sees them, where `listener.name.NAME.key` stands over `key`.

Source: Kafka AbstractConfig.valuesWithPrefixOverride, KafkaConfig.
"""

from __future__ import annotations

from typing import Final

from minibroker.broker.config.keys import BROKER_KEYS
from minibroker.kafka.config_keys import TypedSettings

LISTENER_PREFIX: Final = "listener.name."
LISTENER_LIMITS: Final = ("max.connections", "max.connection.creation.rate")
"""Keys that limit the broker, and behind a listener's prefix this listener."""


class ConfigValues(TypedSettings):
    """Settings of a broker, constant after construction."""

    __slots__ = ()
    KEYS = BROKER_KEYS

    def of_listener(self, name: str) -> ConfigValues:
        """Return the settings of one listener: its own stand over those of all listeners.

        Keys that begin with a SASL mechanism stand without the listener's prefix, too:
        `listener.name.x.plain.sasl.jaas.config` is `plain.sasl.jaas.config` here.
        """
        prefix = f"{LISTENER_PREFIX}{name.lower()}."
        own = {
            key[len(prefix) :]: text
            for key, text in self.originals.items()
            if key.startswith(prefix)
        }
        return ConfigValues({**self.originals, **own})

    def of_mechanism(self, listener: str, mechanism: str) -> ConfigValues:
        """Return the settings of a mechanism of one listener: `listener.name.x.plain.key` stands
        over `listener.name.x.key`.
        """
        prefix = f"{LISTENER_PREFIX}{listener.lower()}.{mechanism.lower()}."
        own = {
            key[len(prefix) :]: text
            for key, text in self.originals.items()
            if key.startswith(prefix)
        }
        return ConfigValues({**self.of_listener(listener).originals, **own})
