"""The layers that could give a setting its value, the strongest first.

Pure; DescribeConfigs and CreateTopics (which answers with the new topic's settings) call this.
Source: Kafka ConfigHelper.createTopicConfigEntry, createBrokerConfigEntry, createGroupConfigEntry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.entries import ConfigEntry, Layer
from minibroker.broker.config.key_rows import BROKER_SYNONYMS, GROUP_SYNONYMS, SYNONYMS
from minibroker.broker.config.keys import (
    BROKER_KEYS,
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    sentence_of,
)
from minibroker.broker.config.unserved import key_name, note_on
from minibroker.kafka.config_keys import READ_ONLY, default_value, parse_value, to_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.kafka.config_keys import ConfigKey

TOPIC_SOURCE: Final = 1
DYNAMIC_BROKER_SOURCE: Final = 2
DYNAMIC_DEFAULT_BROKER_SOURCE: Final = 3
STATIC_BROKER_SOURCE: Final = 4
DEFAULT_SOURCE: Final = 5
BROKER_LOGGER_SOURCE: Final = 6
CLIENT_METRICS_SOURCE: Final = 7
GROUP_SOURCE: Final = 8


def topic_entries(
    dynamic: DynamicConfig, overrides: Mapping[str, str], keys: Iterable[str] | None = None
) -> list[ConfigEntry]:
    """Return every setting of a topic whose own values are `overrides`, or only the wanted ones.

    The list of a topic without values of its own is remembered (CreateTopics answers it each time):
    read only.
    """
    if overrides or keys is not None:
        return _topic_entries(dynamic, overrides, keys)
    remembered = dynamic.plain_topic_entries
    if remembered is None:
        remembered = dynamic.plain_topic_entries = _topic_entries(dynamic, overrides, keys)
    return remembered


def _topic_entries(
    dynamic: DynamicConfig, overrides: Mapping[str, str], keys: Iterable[str] | None
) -> list[ConfigEntry]:
    defaults = dynamic.topic_default.values
    entries = []
    for name, key in _selected(TOPIC_KEYS, overrides, keys):
        if key is None:
            entries.append(_unknown(name, Layer(name, None, TOPIC_SOURCE), read_only=False))
            continue
        own = overrides.get(name)
        value = to_text(defaults[name] if own is None else parse_value(key, own))
        layers = [] if own is None else [Layer(name, value, TOPIC_SOURCE)]
        synonyms = SYNONYMS.get(name)
        if synonyms is not None:
            layers += broker_layers(dynamic, synonyms[0][0])
        entries.append(_entry(key, value, layers, read_only=False))
    return entries


def broker_entries(dynamic: DynamicConfig, keys: Iterable[str] | None = None) -> list[ConfigEntry]:
    """Return every setting of this broker, or only the wanted ones. Unknown keys that are set count
    too.
    """
    config = dynamic.broker
    entries = []
    for name, key in _selected(BROKER_KEYS, config.originals, keys):
        layers = broker_layers(dynamic, name)
        base = BROKER_KEYS.get(key_name(name)) if key is None else None
        if base is not None:
            text = config.originals[name]
            value = None if base.is_sensitive else to_text(parse_value(base, text))
            entries.append(_entry(base, value, layers, read_only=True)._replace(name=name))
            continue
        if key is None:
            entries.append(_unknown(name, layers[0], read_only=True, layers=layers))
            continue
        value = None if key.is_sensitive else to_text(config.get(name))
        entries.append(_entry(key, value, layers, read_only=key.update_mode == READ_ONLY))
    return entries


def cluster_default_entries(
    dynamic: DynamicConfig, keys: Iterable[str] | None = None
) -> list[ConfigEntry]:
    """Return the settings that are set for all brokers at run time, and nothing else."""
    values = dynamic.cluster_default
    entries = []
    for name, text in values.items():
        if keys is not None and name not in keys:
            continue
        key = BROKER_KEYS.get(name)
        layer = Layer(name, text, DYNAMIC_DEFAULT_BROKER_SOURCE)
        if key is None:
            layer = layer._replace(value=None)
            entries.append(_unknown(name, layer, read_only=True, layers=[layer]))
            continue
        value = None if key.is_sensitive else text
        layers = [layer._replace(value=value)]
        entries.append(_entry(key, value, layers, read_only=key.update_mode == READ_ONLY))
    return entries


def group_entries(
    dynamic: DynamicConfig, overrides: Mapping[str, str], keys: Iterable[str] | None = None
) -> list[ConfigEntry]:
    """Return every setting of a group; where it sets nothing, the broker's."""
    entries = []
    for name, key in _selected(GROUP_KEYS, {}, keys):
        assert key is not None
        own = overrides.get(name)
        broker_name = GROUP_SYNONYMS.get(name)
        if own is not None:
            value = to_text(parse_value(key, own))
        elif broker_name is None:
            value = key.default
        elif name == "streams.assignor.name":
            value = next(iter(dynamic.broker.words(broker_name)), None)
        else:
            value = to_text(dynamic.broker.get(broker_name))
        layers = [] if own is None else [Layer(name, value, GROUP_SOURCE)]
        if broker_name is not None:
            layers += broker_layers(dynamic, broker_name)
        elif key.default is not None:
            layers.append(Layer(name, key.default, DEFAULT_SOURCE))
        entries.append(_entry(key, value, layers, read_only=False))
    return entries


def client_metrics_entries(
    overrides: Mapping[str, str], keys: Iterable[str] | None = None
) -> list[ConfigEntry]:
    """Return the three settings of a client metrics subscription, set or not."""
    entries = []
    for name, key in _selected(CLIENT_METRICS_KEYS, {}, keys):
        assert key is not None
        own = overrides.get(name)
        value = to_text(default_value(key) if own is None else parse_value(key, own))
        layers = [] if own is None else [Layer(name, value, CLIENT_METRICS_SOURCE)]
        entries.append(_entry(key, value, layers, read_only=False))
    return entries


def broker_layers(dynamic: DynamicConfig, name: str) -> list[Layer]:
    """Return the layers of one broker key and of its synonyms, the strongest first.

    A key before the key itself in that order is left out, even if only a weaker unit is set:
    `log.retention.ms` has no layer at all while `log.retention.hours` alone is given (so Kafka).
    """
    names = BROKER_SYNONYMS.get(name) or _listener_synonyms(name)
    key = BROKER_KEYS.get(names[-1])
    is_sensitive = key is None or key.is_sensitive
    layers = []
    for values, source in (
        (dynamic.per_broker, DYNAMIC_BROKER_SOURCE),
        (dynamic.cluster_default, DYNAMIC_DEFAULT_BROKER_SOURCE),
        (dynamic.static.originals, STATIC_BROKER_SOURCE),
    ):
        layers += [
            Layer(synonym, None if is_sensitive else values[synonym], source)
            for synonym in names
            if synonym in values
        ]
    for synonym in names:
        key_of_release = dynamic.static.keys.get(synonym)
        default = key_of_release.default if key_of_release is not None else None
        if default is not None:
            layers.append(Layer(synonym, None if is_sensitive else default, DEFAULT_SOURCE))
    for position, layer in enumerate(layers):
        if layer.name == name:
            return layers[position:]
    return []


def _listener_synonyms(name: str) -> tuple[str, ...]:
    """Return the names that a key falls back to: `listener.name.NAME.key` to `key`."""
    base = key_name(name)
    return (name,) if base == name else (name, base)


def _selected(
    keys: Mapping[str, ConfigKey], values: Mapping[str, str], chosen_keys: Iterable[str] | None
) -> list[tuple[str, ConfigKey | None]]:
    """Return names to describe with their keys: all that are not hidden, and all that are set."""
    chosen: list[tuple[str, ConfigKey | None]] = [
        (name, key) for name, key in keys.items() if not key.is_hidden or name in values
    ]
    chosen += [(name, None) for name in values if name not in keys]
    if chosen_keys is None:
        return chosen
    names = set(chosen_keys)
    return [(name, key) for name, key in chosen if name in names]


def _entry(
    key: ConfigKey, value: str | None, layers: list[Layer], *, read_only: bool
) -> ConfigEntry:
    source = layers[0].source if layers else DEFAULT_SOURCE
    return ConfigEntry(key.name, value, key.type, source, key.is_sensitive, read_only, layers)


def _unknown(
    name: str, layer: Layer, *, read_only: bool, layers: list[Layer] | None = None
) -> ConfigEntry:
    """Return the entry of an unknown key. As in Kafka it is treated as a secret."""
    return ConfigEntry(name, None, "", layer.source, True, read_only, layers or [layer])


def documentation_of(scope: str, name: str) -> str | None:
    """Return the sentence about a key; `scope` is broker, topic, group or client-metrics."""
    sentence = sentence_of(scope, name)
    return sentence if sentence is None or scope != "broker" else sentence + note_on(name)
