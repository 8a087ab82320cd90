"""The keys of brokers, topics, groups and client metrics subscriptions, and the reading of values.

`key_rows.py` has a row for each key. Keys that Kafka 4 brought are there too, so that its
server.properties start here. Defaults are texts as Kafka prints them, and a value is read when
somebody asks for it, because a start needs some eighty of five hundred keys (`kafka.config_keys`).
`key_sentences.json` has the sentences. They are read when somebody asks for one: no start does, and
in memory they are the larger half.

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

from functools import cache
from typing import TYPE_CHECKING, Final

from minibroker.broker.config import key_rows
from minibroker.broker.config.key_rows import SYNONYMS
from minibroker.kafka.config_keys import ConfigKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.broker.config.key_rows import Row


def _table(rows: Iterable[Row]) -> dict[str, ConfigKey]:
    """Return name → key, in the order of the rows."""
    return {row[0]: ConfigKey(*row) for row in rows}


BROKER_KEYS: Final = _table(key_rows.BROKER)
TOPIC_KEYS: Final = _table(key_rows.TOPIC)
GROUP_KEYS: Final = _table(key_rows.GROUP)
CLIENT_METRICS_KEYS: Final = _table(key_rows.CLIENT_METRICS)

FEATURE_KEYS: Final = (
    "transaction.version",
    "group.version",
    "eligible.leader.replicas.version",
)
"""Levels of features in a cluster where they were never changed (Kafka: set at formatting)."""


@cache
def _sentences() -> dict[tuple[str, str], str]:
    """Return (scope, key) → sentence."""
    import json  # noqa: PLC0415  no start needs a sentence
    from pathlib import Path  # noqa: PLC0415  as above

    path = Path(__file__).with_name("key_sentences.json")
    scopes: dict[str, dict[str, str]] = json.loads(path.read_bytes())
    return {(scope, name): text for scope, part in scopes.items() for name, text in part.items()}


def sentence_of(scope: str, name: str) -> str | None:
    """Return the sentence about one key of one scope, None for an unknown key.

    A topic's or group's key without a sentence of its own has that of the broker key that gives its
    default. The file of sentences is read at the first call.
    """
    sentences = _sentences()
    sentence = sentences.get((scope, name))
    if sentence is None and scope == "topic" and name in SYNONYMS:
        sentence = sentences.get(("broker", SYNONYMS[name][0][0]))
    if sentence is None and scope == "group":
        sentence = sentences.get(("broker", f"group.{name}"))
    return sentence
