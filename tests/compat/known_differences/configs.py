"""Known differences of configurations: the keys and defaults of 3.9 and 4.4.

minibroker's tables are those of 3.9.1 (`test_config_tables.py` holds every key against it), since
its files and znodes are 3.9's, too.
"""

from __future__ import annotations

from typing import Any

from tests.compat.known_differences.config_keys import (
    BROKER_KEYS_OF_39,
    BROKER_KEYS_OF_44,
    TOPIC_KEYS_OF_39,
    TOPIC_KEYS_OF_44,
    UNSERVED_SECURITY,
)
from tests.compat.verdict import KAFKA_39, KAFKA_44, Difference, KnownDifference, Lacking

_KEYS_39 = "keys that 4.0 removed are still read, as in 3.9"
_KEYS_44 = "keys of features of Kafka 4 that minibroker does not have; the table is that of 3.9"
_DEFAULTS_39 = "the default is that of 3.9; Kafka 4 has another one"
_TYPES_39 = "the type is that of 3.9; Kafka 4 has another one"
_ELR = "3.9 and minibroker leave the default; 4.4 sets it for the cluster when ELR comes in force"
_NOT_SERVED = "a security setting that is not served cannot be set, so it is shown as read-only"
_ONE_NODE = "defaults for a single node (config/broker_keys.py lists them)"

_DYNAMIC_39 = "what may change while the broker runs is that of 3.9; Kafka 4 changed it"

DEFAULT, CLUSTER = 5, 3
"""Sources of a value: the default, and what is set for the whole cluster."""
STRING, INT, SHORT, LIST = 2, 3, 4, 7
"""Types of a value."""
FOREVER, HOUR = "9223372036854775807", "3600000"


def _keys_of_one(
    scenario: str, keys: dict[str, tuple[str, ...]], since: int
) -> list[KnownDifference]:
    """Return the differences of keys that only one Kafka has; `keys` is release → places of its
    keys.
    """
    return [
        Lacking(scenario, keys[KAFKA_39], _KEYS_39, KAFKA_44, KAFKA_39, since),
        Lacking(scenario, keys[KAFKA_44], _KEYS_44, KAFKA_39, KAFKA_39, since),
    ]


def _topic(scenario: str, *results: str, since: int = 5) -> list[KnownDifference]:
    """Return the differences that every table of a topic's configurations shows."""
    tables = [f"{result}.configs" for result in results]
    keys = {
        KAFKA_39: tuple(f"{table}.{key}" for table in tables for key in TOPIC_KEYS_OF_39),
        KAFKA_44: tuple(f"{table}.{key}" for table in tables for key in TOPIC_KEYS_OF_44),
    }
    return [
        *_keys_of_one(scenario, keys, since),
        Difference(
            scenario,
            tuple(f"{table}.min.insync.replicas.config_source:" for table in tables),
            _ELR,
            ours=DEFAULT,
            kafka_44=CLUSTER,
            since=since,
        ),
        Difference(
            scenario,
            tuple(f"{table}.message.timestamp.after.max.ms.value:" for table in tables),
            _DEFAULTS_39,
            ours=FOREVER,
            kafka_44=HOUR,
            since=since,
        ),
    ]


def _cluster_min_isr(scenario: str, table: str) -> list[KnownDifference]:
    """Return the layer below `min.insync.replicas` that 4.4 has with ELR."""
    return [
        Difference(scenario, (f"{table}.synonyms.length",), _ELR, ours=1, kafka_44=2, since=1),
        Difference(
            scenario,
            (f"{table}.synonyms[0].source:",),
            _ELR,
            ours=DEFAULT,
            kafka_44=CLUSTER,
            since=1,
        ),
        Lacking(
            scenario,
            (f"{table}.synonyms[1]",),
            _ELR,
            lacked_by=KAFKA_39,
            followed=KAFKA_39,
            since=1,
        ),
    ]


_TOPICS: list[KnownDifference] = [
    *_topic("create_topics_good", "create.topics[0]"),
    *_topic("create_topics_defaults", "create.topics[0]"),
    *_topic("create_topics_assignments", "good.topics[0]"),
    *_topic("create_topics_configs", "good.topics[0]", "key twice.topics[0]"),
    *_topic("create_topics_validate_only", "good.topics[0]"),
    *_topic("create_topics_several", "sorted[1]", "sorted[2]"),
    *_topic("describe_configs_topic", "all.results[0]", "none.results[0]", since=1),
    *_topic("describe_configs_synonyms", "all.results[0]", since=1),
    *_topic("describe_configs_documentation", "all.results[0]", since=3),
    *_cluster_min_isr("describe_configs_synonyms", "all.results[0].configs.min.insync.replicas"),
    Difference(
        "describe_configs_synonyms",
        ("all.results[0].configs.message.timestamp.after.max.ms.synonyms[0].value:",),
        _DEFAULTS_39,
        ours=FOREVER,
        kafka_44=HOUR,
        since=1,
    ),
]

_BROKER = "broker.results[0].configs"


def _broker(
    key: str, field: str, reason: str, ours: Any, *, kafka_44: Any, since: int = 1
) -> KnownDifference:
    """Return a difference in one field of one key of the broker; 3.9 answers as minibroker does."""
    place = f"{_BROKER}.{key}.{field}:"
    return Difference(
        "describe_configs_broker", (place,), reason, ours, kafka_44=kafka_44, since=since
    )


def _broker_default(key: str, ours: str, kafka_44: str) -> KnownDifference:
    """Return a difference in a default of the broker: in its value and in the layer below."""
    places = (f"{_BROKER}.{key}.value:", f"{_BROKER}.{key}.synonyms[0].value:")
    return Difference(
        "describe_configs_broker", places, _DEFAULTS_39, ours, kafka_44=kafka_44, since=1
    )


_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor"

_BROKERS: list[KnownDifference] = [
    *_keys_of_one(
        "describe_configs_broker",
        {
            KAFKA_39: tuple(f"{_BROKER}.{key}" for key in BROKER_KEYS_OF_39),
            KAFKA_44: tuple(f"{_BROKER}.{key}" for key in BROKER_KEYS_OF_44),
        },
        since=1,
    ),
    *(
        _broker_default(key, ours, kafka_44)
        for key, ours, kafka_44 in (
            ("remote.log.manager.thread.pool.size", "10", "2"),
            ("remote.log.manager.copier.thread.pool.size", "-1", "10"),
            ("remote.log.manager.expiration.thread.pool.size", "-1", "10"),
            ("num.recovery.threads.per.data.dir", "1", "2"),
            ("log.message.timestamp.after.max.ms", FOREVER, HOUR),
            ("group.coordinator.threads", "1", "4"),
            ("group.coordinator.append.linger.ms", "10", "-1"),
            (
                "group.consumer.assignors",
                f"{_ASSIGNORS}.UniformAssignor,{_ASSIGNORS}.RangeAssignor",
                "uniform,range",
            ),
            ("group.share.partition.max.record.locks", "200", "2000"),
            ("metric.reporters", "", "org.apache.kafka.common.metrics.JmxReporter"),
        )
    ),
    *(
        _broker(key, "read_only", _DYNAMIC_39, ours, kafka_44=not ours)
        for key, ours in (
            ("advertised.listeners", False),
            ("remote.log.manager.copier.thread.pool.size", True),
            ("remote.log.manager.expiration.thread.pool.size", True),
            ("remote.log.reader.threads", True),
        )
    ),
    Difference(
        "describe_configs_broker",
        tuple(f"{_BROKER}.{key}.read_only:" for key in UNSERVED_SECURITY),
        _NOT_SERVED,
        ours=True,
        kafka_39=False,
        kafka_44=False,
        since=1,
    ),
    *(
        _broker(key, "config_type", _TYPES_39, STRING, kafka_44=LIST, since=3)
        for key in (
            "listeners",
            "advertised.listeners",
            "log.dir",
            "log.dirs",
            "early.start.listeners",
            "controller.listener.names",
        )
    ),
    _broker("group.share.max.size", "config_type", _TYPES_39, SHORT, kafka_44=INT, since=3),
    _broker("min.insync.replicas", "config_source", _ELR, DEFAULT, kafka_44=CLUSTER),
    *_cluster_min_isr("describe_configs_broker", f"{_BROKER}.min.insync.replicas"),
    _broker("sasl.oauthbearer.expected.audience", "value", _DEFAULTS_39, None, kafka_44=""),
    Difference(
        "describe_configs_broker",
        (f"{_BROKER}.sasl.oauthbearer.expected.audience.synonyms.length",),
        _DEFAULTS_39,
        ours=0,
        kafka_44=1,
        since=1,
    ),
    Lacking(
        "describe_configs_broker",
        (f"{_BROKER}.sasl.oauthbearer.expected.audience.synonyms[0]",),
        _DEFAULTS_39,
        lacked_by=KAFKA_39,
        followed=KAFKA_39,
        since=1,
    ),
    Difference(
        "describe_configs_broker",
        (
            f"{_BROKER}.group.coordinator.rebalance.protocols.value:",
            f"{_BROKER}.group.coordinator.rebalance.protocols.synonyms[0].value:",
        ),
        "consumer groups are served by default, as in Kafka 4, groups of streams are not",
        ours="classic,consumer",
        kafka_39="classic",
        kafka_44="classic,consumer,streams",
        since=1,
    ),
    *(
        Difference(
            "describe_configs_broker",
            (f"{_BROKER}.{key}.synonyms[1].value:",),
            _ONE_NODE,
            ours,
            kafka_39=kafka,
            kafka_44=kafka,
            since=1,
        )
        for key, ours, kafka in (
            ("group.initial.rebalance.delay.ms", "0", "3000"),
            ("offsets.topic.replication.factor", "1", "3"),
            ("transaction.state.log.min.isr", "1", "2"),
            ("transaction.state.log.replication.factor", "1", "3"),
        )
    ),
]

_NO_SUCH_TOPIC = "a topic that cannot exist does not, as in 3.9; 4.4 names the illegal name"

_CHANGES: list[KnownDifference] = [
    *(
        Difference(
            f"{api}_refused",
            ("illegal topic.responses[0].error_code:",),
            _NO_SUCH_TOPIC,
            ours=3,
            kafka_44=17,
        )
        for api in ("alter_configs", "incremental_alter_configs")
    )
]

LINES: list[KnownDifference] = [*_TOPICS, *_BROKERS, *_CHANGES]
