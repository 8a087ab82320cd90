"""The keys of brokers, topics, groups and client metrics subscriptions, and the reading of values.

`keys.json` has a row for each key: name, type, default, allowed values, importance, how it may be
altered, and a sentence. Keys that Kafka 4 brought have `since`, so that its server.properties start
here; they and the keys that Kafka keeps to itself (`hidden`) are described only where they are set.
`broker` names the broker keys that give the default of a topic's or group's key, with the factor to
its unit. Defaults are texts as Kafka prints them, and a value is read when somebody asks for it,
because a start needs some eighty of five hundred keys (`kafka.config_keys`). Sentences are read
again when somebody asks for one: no start does, and in memory they are the larger half.

Our defaults differ from Kafka's only where one development node needs it:

    key                                         Kafka                 here
    listeners                                   PLAINTEXT://:9092     PLAINTEXT://127.0.0.1:9092
    log.dir                                     /tmp/kafka-logs       minibroker-data
    broker.id, node.id                          -1 (generated)        0
    group.initial.rebalance.delay.ms            3000                  0
    offsets.topic.replication.factor            3                     1
    transaction.state.log.replication.factor    3                     1
    transaction.state.log.min.isr               2                     1
    share.coordinator.state.topic.*             3 and 2               1

Ours, under a prefix of our own: `minibroker.advertised.kafka.version` (the release that ApiVersions
pretends to be), `minibroker.cluster.id` (the id of a cluster that has none yet: the one that
`kafka-storage format` is told), `minibroker.log.cleaner.idle.ms` (how soon a quiet compacted log is
cleaned), `minibroker.log.sync.interval.ms` (how soon an append is synced, so that a start checks
little) and `minibroker.users` (names and passwords for SASL). Without it, as Kafka's
StorageTool names them: `transaction.version`, `group.version` and
`eligible.leader.replicas.version`, levels of features in a new cluster. Named as properties of Java
that Kafka reads: `java.security.auth.login.config`, `java.security.krb5.conf` and
`org.apache.kafka.sasl.oauthbearer.allowed.urls`.

Source: Kafka 3.9 and 4.4: KafkaConfig, LogConfig, ServerTopicConfigSynonyms,
DynamicBrokerConfig, GroupConfig, ClientMetricsConfigs.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.config_keys import ConfigKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def _rows() -> dict[str, list[dict[str, Any]]]:
    """Return scope → rows of `keys.json`."""
    # A start does without pathlib.
    with open(f"{__file__.rpartition('.')[0]}.json", "rb") as file:  # noqa: PTH123
        scopes: dict[str, Any] = json.load(file)
    scopes["broker"] = [row for group in scopes["broker"].values() for row in group]
    return scopes


def _table(rows: Iterable[Mapping[str, Any]]) -> dict[str, ConfigKey]:
    """Return name → key, in the order of the rows."""
    return {row["name"]: ConfigKey(row) for row in rows}


_ROWS = _rows()
BROKER_KEYS: Final = _table(_ROWS["broker"])
TOPIC_KEYS: Final = _table(_ROWS["topic"])
GROUP_KEYS: Final = _table(_ROWS["group"])
CLIENT_METRICS_KEYS: Final = _table(_ROWS["client-metrics"])

SYNONYMS: Final[dict[str, tuple[tuple[str, int], ...]]] = {
    row["name"]: tuple(row["broker"].items()) for row in _ROWS["topic"] if "broker" in row
}
"""Topic key → broker keys that give its default, the strongest first, each with the factor to the
topic key's unit. A key without an entry has no default of the broker.
"""
BROKER_SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    row["name"]: tuple(row["units"]) for row in _ROWS["broker"] if "units" in row
}
"""Broker key → all keys of this setting in their units, the strongest first."""
GROUP_SYNONYMS: Final[dict[str, str]] = {
    row["name"]: next(iter(row["broker"])) for row in _ROWS["group"] if "broker" in row
}
"""Group key → broker key that gives its default."""
del _ROWS
FEATURE_KEYS: Final = (
    "transaction.version",
    "group.version",
    "eligible.leader.replicas.version",
)
"""Levels of features in a cluster where they were never changed (Kafka: set at formatting)."""


@cache
def _sentences() -> dict[tuple[str, str], str]:
    """Return (scope, key) → sentence."""
    return {
        (scope, row["name"]): row["doc"]
        for scope, rows in _rows().items()
        for row in rows
        if "doc" in row
    }


def sentence_of(scope: str, name: str) -> str | None:
    """Return the sentence about one key of one scope, None for an unknown key.

    A topic's or group's key without a sentence of its own has that of the broker key that gives its
    default. `keys.json` is read at the first request for a sentence.
    """
    sentences = _sentences()
    sentence = sentences.get((scope, name))
    if sentence is None and scope == "topic" and name in SYNONYMS:
        sentence = sentences.get(("broker", SYNONYMS[name][0][0]))
    if sentence is None and scope == "group":
        sentence = sentences.get(("broker", f"group.{name}"))
    return sentence
