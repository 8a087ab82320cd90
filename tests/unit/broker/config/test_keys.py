"""Keys: the rows of `key_rows.py`, synonyms, sentences, and texts that become values.

Names and defaults stand beside Kafka's in `tests/compat/test_config_tables.py`. A text is a value
of its key's type inside its range, or a complaint in Kafka's shape.
"""

from __future__ import annotations

import pytest

from minibroker.broker.config.key_rows import BROKER_SYNONYMS, SYNONYMS
from minibroker.broker.config.keys import (
    BROKER_KEYS,
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    _sentences,
    sentence_of,
)
from minibroker.kafka.config_keys import (
    CLUSTER_WIDE,
    PER_BROKER,
    READ_ONLY,
    ConfigKey,
    parse_value,
    to_text,
)
from minibroker.kafka.errors import ConfigError

SCOPES = {
    "broker": BROKER_KEYS,
    "topic": TOPIC_KEYS,
    "group": GROUP_KEYS,
    "client-metrics": CLIENT_METRICS_KEYS,
}


def test_one_development_node_works_without_settings() -> None:
    """Design: replication factors 1, no rebalance delay, auto-creation, broker 0, loopback."""
    defaults = {name: key.default for name, key in BROKER_KEYS.items()}
    assert defaults["broker.id"] == defaults["node.id"] == "0"
    assert defaults["group.initial.rebalance.delay.ms"] == "0"
    assert defaults["auto.create.topics.enable"] == "true"
    assert defaults["listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert {
        name: default
        for name, default in defaults.items()
        if name.endswith(("replication.factor", ".min.isr"))
    } == {
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def test_update_modes_and_secrets() -> None:
    assert BROKER_KEYS["log.segment.bytes"].update_mode == CLUSTER_WIDE
    assert BROKER_KEYS["max.connections"].update_mode == CLUSTER_WIDE
    assert BROKER_KEYS["advertised.listeners"].update_mode == PER_BROKER
    assert BROKER_KEYS["listeners"].update_mode == PER_BROKER
    assert BROKER_KEYS["ssl.keystore.location"].update_mode == READ_ONLY
    assert BROKER_KEYS["broker.id"].update_mode == READ_ONLY
    assert BROKER_KEYS["sasl.jaas.config"].is_sensitive
    assert not BROKER_KEYS["log.dirs"].is_sensitive


def test_synonyms_name_keys_that_exist() -> None:
    for topic_key, synonyms in SYNONYMS.items():
        assert topic_key in TOPIC_KEYS
        assert all(name in BROKER_KEYS for name, _ in synonyms)
    for name, synonyms_of in BROKER_SYNONYMS.items():
        assert name in synonyms_of
        assert all(synonym in BROKER_KEYS for synonym in synonyms_of)
    without_default = {name for name, key in TOPIC_KEYS.items() if not key.is_hidden} - set(
        SYNONYMS
    )
    assert without_default == {
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "remote.storage.enable",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
    }


def test_units_of_synonyms_lead_to_the_topics_unit() -> None:
    """The factor times the broker key's default is the topic key's default."""
    for name, synonyms in SYNONYMS.items():
        defaults = [(BROKER_KEYS[key].default, factor) for key, factor in synonyms]
        default, factor = next((text, factor) for text, factor in defaults if text is not None)
        expected = str(int(default) * factor) if factor > 1 else default
        assert TOPIC_KEYS[name].default == expected, name


def test_every_key_has_a_sentence() -> None:
    missing = [
        (scope, key)
        for scope, keys in SCOPES.items()
        for key in keys
        if not sentence_of(scope, key)
    ]
    assert missing == []
    assert sentence_of("broker", "nobody.knows") is None


def test_every_sentence_has_a_key_and_ends_with_a_full_stop() -> None:
    for (scope, name), sentence in _sentences().items():
        assert name in SCOPES[scope], name
        assert sentence.endswith("."), name
        assert sentence[0].isupper() or sentence.startswith(("min.", "gzip", "lz4", "zstd")), name


def test_a_topics_key_has_the_sentence_of_its_broker_key() -> None:
    assert sentence_of("topic", "retention.ms") == sentence_of("broker", "log.retention.ms")


def key(kind: str, allowed: str = "", default: str | None = None) -> ConfigKey:
    return ConfigKey("some.key", kind, default, allowed, "high")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("boolean", " TRUE ", True),
        ("boolean", "false", False),
        ("int", "+5", 5),
        ("int", " -2147483648 ", -2147483648),
        ("short", "32767", 32767),
        ("long", "9223372036854775807", 9223372036854775807),
        ("double", "1e3", 1000.0),
        ("double", " 0.5d ", 0.5),
        ("double", "0x1p-1", 0.5),
        ("double", "Infinity", float("inf")),
        ("int", "\x01+5\x1f", 5),
        ("int", "\u0665", 5),
        ("boolean", "\ttrue\0", True),
        ("list", "a, b ,c", ["a", "b", "c"]),
        ("list", "  ", []),
        ("string", " x y ", "x y"),
        ("class", "a.B", "a.B"),
        ("password", "secret", "secret"),
    ],
)
def test_text_becomes_a_value_of_the_keys_type(kind: str, text: str, value: object) -> None:
    parsed_value = parse_value(key(kind), text)
    assert parsed_value == value
    assert type(parsed_value) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("boolean", "yes", "Expected value to be either true or false"),
        ("int", "2147483648", "Not a number of type INT"),
        ("int", "1_000", "Not a number of type INT"),
        ("int", "1.5", "Not a number of type INT"),
        ("int", "", "Not a number of type INT"),
        ("int", "9" * 5000, "Not a number of type INT"),
        ("short", "32768", "Not a number of type SHORT"),
        ("long", "9223372036854775808", "Not a number of type LONG"),
        ("double", "1_0", "Not a number of type DOUBLE"),
        ("double", "inf", "Not a number of type DOUBLE"),
        ("double", "nan", "Not a number of type DOUBLE"),
        ("int", "\xa05", "Not a number of type INT"),
        ("boolean", "\u2003true", "Expected value to be either true or false"),
        ("double", "many", "Not a number of type DOUBLE"),
    ],
)
def test_wrong_type_is_refused_with_key_value_and_type(kind: str, text: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_value(key(kind), text)
    assert str(caught.value) == f"Invalid value {text} for configuration some.key: {why}"


@pytest.mark.parametrize(
    ("allowed", "good", "bad", "why"),
    [
        ("1..", "1", "0", "Value must be at least 1"),
        ("0..9", "9", "10", "Value must be no more than 9"),
        ("-2..", "-2", "-3", "Value must be at least -2"),
        ("-1|1..9", "-1", "0", "Value must be between 1 and 9 or equal to -1"),
        ("-1|1..", "-1", "0", "Value must be at least 1 or equal to -1"),
    ],
)
def test_numbers_out_of_range_are_refused(allowed: str, good: str, bad: str, why: str) -> None:
    assert parse_value(key("int", allowed), good) == int(good)
    with pytest.raises(ConfigError, match=f"Invalid value {bad} for .*: {why}"):
        parse_value(key("int", allowed), bad)


def test_words_are_taken_from_the_list_only() -> None:
    policy = key("list", "compact|delete")
    assert parse_value(policy, "delete,compact") == ["delete", "compact"]
    with pytest.raises(ConfigError, match="String must be one of: compact, delete"):
        parse_value(policy, "delete,shred")
    assert parse_value(key("string", "~A|B"), "a") == "a"
    with pytest.raises(ConfigError, match=r"one of .case insensitive.: A, B"):
        parse_value(key("string", "~A|B"), "c")
    with pytest.raises(ConfigError, match="must not be empty"):
        parse_value(key("string", "non-empty"), "  ")


def test_a_missing_value_is_refused_where_there_is_a_range() -> None:
    assert parse_value(key("int"), None) is None
    with pytest.raises(ConfigError, match=r"Invalid value null .* must be non-null"):
        parse_value(key("int", "1.."), None)


@pytest.mark.parametrize(
    "release", ["0.8.2", "0.10.2.1", "0.11.0-IV2", "2.8", "3.0-IV1", "3.9", "4.4"]
)
def test_releases_of_kafka_are_versions(release: str) -> None:
    assert parse_value(key("string", "version"), release) == release


@pytest.mark.parametrize("text", ["0.7", "0.9", "2", "2.9", "1.2", "5.0", "3.x", "new", ""])
def test_other_texts_are_no_versions(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid version"):
        parse_value(key("string", "version"), text)


def test_throttled_replicas_are_pairs_or_a_star() -> None:
    throttled = key("list", "throttled")
    assert parse_value(throttled, "*") == ["*"]
    assert parse_value(throttled, "0:1, 2:3") == ["0:1", "2:3"]
    for text in ("1", "0:a", "0:1,*"):
        with pytest.raises(ConfigError, match=r"\[partitionId\]:\[brokerId\]"):
            parse_value(throttled, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (12, "12"),
        (["a", "b"], "a,b"),
        ([], ""),
        (None, None),
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1e7, "1.0E7"),
        (123456789.5, "1.234567895E8"),
        (0.0001, "1.0E-4"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
    ],
)
def test_values_are_printed_as_java_prints_them(value: object, text: str | None) -> None:
    assert to_text(value) == text  # type: ignore[arg-type]


def test_every_default_in_the_tables_is_a_legal_value_and_prints_as_it_stands() -> None:
    for table in (BROKER_KEYS, TOPIC_KEYS):
        for name, entry in table.items():
            if entry.default is not None:
                assert to_text(parse_value(entry, entry.default)) == entry.default, name
