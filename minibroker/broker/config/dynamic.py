"""Settings that are altered at run time, over those that the broker started with.

    per broker     /config/brokers/<id>        strongest
    cluster-wide   /config/brokers/<default>
    static         file, variables, --set
    default        Kafka's (or ours)           weakest

Topic values (/config/topics/T) stand over all of these. This module holds the layers and answers
with resolved values. The follower of the metadata tree feeds it (`set_broker`,
`set_cluster_default`, `set_topic`), and it tells its listeners the result. No I/O.

Source: Kafka DynamicBrokerConfig (order of precedence), ConfigHandler.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.topic import TopicConfig, broker_topic_values, topic_config
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.broker.config.entries import ConfigEntry

    class ConfigListener(Protocol):
        """A listener for changes. Called at once, on the loop."""

        def on_broker_config(self, config: BrokerConfig, changed: frozenset[str]) -> None:
            """Hear that broker keys changed their value; `config` has the new ones."""

        def on_topic_config(self, topic: str | None) -> None:
            """Hear that this topic's values changed; None: those of every topic (a broker default
            did).
            """


PASSWORD_KEYS: Final = (
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
)
"""Settings that may be altered and that the metadata tree keeps encoded."""
_SHARED_MAX: Final = 256  # different sets of topic values that are remembered
logger = logging.getLogger(__name__)


def is_password(name: str) -> bool:
    """Return whether the tree keeps an altered setting encoded, whatever stands before its key.

    Source: Kafka DynamicBrokerConfig.isPasswordConfig.
    """
    return name.endswith(PASSWORD_KEYS)


class DynamicConfig:
    """The four layers and the topics' own values, resolved on demand and remembered."""

    def __init__(self, static: BrokerConfig) -> None:
        self.static = static
        self.broker = static
        """The values in force now."""
        self.per_broker: dict[str, str] = {}
        self.cluster_default: dict[str, str] = {}
        self._topics: dict[str, dict[str, str]] = {}
        self._resolved: dict[str, TopicConfig] = {}
        self._shared: dict[tuple[tuple[str, str], ...], TopicConfig] = {}
        self.topic_default = TopicConfig(broker_topic_values(static))
        """The values of a topic that sets nothing."""
        self.plain_topic_entries: list[ConfigEntry] | None = None
        """Cached answer of `describe.topic_entries` for a topic without own values, None if not
        asked yet.
        """
        self._listeners: list[ConfigListener] = []
        self.checks: list[Callable[[BrokerConfig], None]] = []
        """Called before a configuration is accepted or applied; each raises ConfigError where its
        part of the broker could not work with it.
        """
        self.reloads: list[Callable[[BrokerConfig], None]] = []
        """Called after an alteration of the broker's configuration, even if no value changed."""

    def subscribe(self, listener: ConfigListener) -> None:
        self._listeners.append(listener)

    def topic(self, name: str) -> TopicConfig:
        """Return the resolved values of one topic; topics that set nothing share one instance."""
        if name not in self._topics:
            return self.topic_default
        resolved = self._resolved.get(name)
        if resolved is None:
            resolved = self._resolve(name)
            self._resolved[name] = resolved
        return resolved

    def topic_overrides(self, name: str) -> dict[str, str]:
        """Return what the topic sets itself, as text."""
        return self._topics.get(name, {})

    def set_topic(self, name: str, overrides: Mapping[str, str]) -> None:
        """Take all of a topic's own values; an empty mapping if it has none or is gone."""
        if dict(overrides) == self._topics.get(name, {}):
            return
        self._resolved.pop(name, None)
        if overrides:
            self._topics[name] = dict(overrides)
        else:
            del self._topics[name]
        for listener in self._listeners:
            listener.on_topic_config(name)

    def set_broker(self, values: Mapping[str, str]) -> None:
        """Take the whole content of /config/brokers/<id>."""
        self._apply(dict(values), self.cluster_default)

    def set_cluster_default(self, values: Mapping[str, str]) -> None:
        """Take the whole content of /config/brokers/<default>."""
        self._apply(self.per_broker, dict(values))

    def with_layers(
        self, per_broker: Mapping[str, str], cluster_default: Mapping[str, str]
    ) -> BrokerConfig:
        """Return the config that these dynamic layers would give. Raises ConfigError if they cannot
        be.
        """
        return self.static.with_overrides({**cluster_default, **per_broker})

    def reload(self) -> None:
        """Have files read again that settings name and that were replaced in place. Raises
        ConfigError.
        """
        for reload in self.reloads:
            reload(self.broker)

    def check(self, config: BrokerConfig) -> None:
        """Raise ConfigError if a part of the broker could not work with these settings."""
        for check in self.checks:
            check(config)

    def _apply(self, per_broker: dict[str, str], cluster_default: dict[str, str]) -> None:
        """Apply the layers. As in Kafka, a wrong value is logged and the values in force stay."""
        try:
            config = self.with_layers(per_broker, cluster_default)
            self.check(config)
        except ConfigError as error:
            logger.error(
                "the dynamic broker configuration is not applied, the values in force stay: %s",
                error,
            )
            return
        changed = frozenset(
            name
            for name in config.originals.keys() | self.broker.originals.keys()
            if config.get(name) != self.broker.get(name)
        )
        self.per_broker, self.cluster_default = per_broker, cluster_default
        self.plain_topic_entries = None  # the layers changed, though maybe no value
        ineffective = set(config.without_effect) - set(self.broker.without_effect)
        if ineffective:
            logger.warning("these settings have no effect: %s", ", ".join(sorted(ineffective)))
        if not changed:
            return
        self.broker = config
        topic_values = broker_topic_values(config)
        topics_changed = topic_values != self.topic_default.values
        if topics_changed:
            self.topic_default = TopicConfig(topic_values)
            self._resolved.clear()
            self._shared.clear()
        for listener in self._listeners:
            listener.on_broker_config(config, changed)
            if topics_changed:
                listener.on_topic_config(None)

    def _resolve(self, name: str) -> TopicConfig:
        """Return a topic's values. Topics that set the same share one instance: 1.2 KB each is a
        lot for thousands.
        """
        overrides = self._topics[name]
        key = tuple(sorted(overrides.items()))
        resolved = self._shared.get(key)
        if resolved is not None:
            return resolved
        try:
            resolved = topic_config(overrides, self.topic_default)
        except ConfigError as error:
            logger.error(
                "topic %s uses the broker's defaults, because its configuration is wrong: %s",
                name,
                error,
            )
            return self.topic_default
        if len(self._shared) >= _SHARED_MAX:
            self._shared.clear()
        self._shared[key] = resolved
        return resolved
