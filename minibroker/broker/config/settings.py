"""`ConfigValues`: texts under keys, read as values of the keys' types.

`BrokerValues` is one, with all of the broker's settings. `of_listener` gives another: the settings
as one listener sees them, where `listener.name.NAME.key` stands over `key`.

Source: Kafka AbstractConfig.valuesWithPrefixOverride, KafkaConfig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.keys import BROKER_KEYS, default_value, parse_value

if TYPE_CHECKING:
    from minibroker.broker.config.keys import Value

LISTENER_PREFIX: Final = "listener.name."
LISTENER_LIMITS: Final = ("max.connections", "max.connection.creation.rate")
"""Keys that limit the broker, and behind a listener's prefix this listener."""


class ConfigValues:
    """Settings of a broker, constant after construction."""

    __slots__ = ("originals",)

    def __init__(self, originals: dict[str, str]) -> None:
        self.originals = originals
        """Key → text, as the user gave it."""

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

    def get(self, name: str) -> Value:
        """Return the typed value of any key; of an unknown key the given text, or None."""
        key = BROKER_KEYS.get(name)
        text = self.originals.get(name)
        if key is None:
            return text
        return parse_value(key, text) if text is not None else default_value(key)

    def integer(self, name: str) -> int:
        """Return a whole number that has a default. For keys without an attribute."""
        value = self.get(name)
        assert isinstance(value, int), name
        return value

    def number(self, name: str) -> float:
        """Return a fraction that has a default."""
        value = self.get(name)
        assert isinstance(value, (int, float)), name
        return float(value)

    def boolean(self, name: str) -> bool:
        """Return a switch."""
        return self.get(name) is True

    def text(self, name: str) -> str | None:
        """Return a text, None where neither the user nor Kafka gives one."""
        value = self.get(name)
        return None if value is None else str(value)

    def words(self, name: str) -> list[str]:
        """Return a list, empty where there is none."""
        value = self.get(name)
        return value if isinstance(value, list) else []

    def first_given(self, *names_and_factors: tuple[str, int]) -> int:
        """Return the first value that several keys have, times its factor to the smallest unit."""
        for name, factor in names_and_factors:
            value = self.get(name)
            if isinstance(value, int):
                return value * factor
        raise AssertionError(names_and_factors)
