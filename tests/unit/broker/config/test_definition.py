"""Texts become values of a key's type, inside its range, or a complaint in Kafka's shape."""

from __future__ import annotations

import pytest

from minibroker.broker.config.broker_keys import BROKER_KEYS
from minibroker.broker.config.definition import ConfigKey, key_table, parse_value, to_text
from minibroker.broker.config.topic_keys import TOPIC_KEYS
from minibroker.kafka.errors import ConfigError


def key(kind: str, allowed: str = "", default: str | None = None) -> ConfigKey:
    return ConfigKey("some.key", kind, default, allowed, "high", "read-only")


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
    parsed = parse_value(key(kind), text)
    assert parsed == value
    assert type(parsed) is type(value)


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


def test_rows_of_several_tables_keep_their_order() -> None:
    table = key_table(
        (("b", "int", None, "", "low", "read-only"),),
        (("a", "int", "1", "", "low", "read-only", True),),
    )
    assert list(table) == ["b", "a"]
    assert table["a"].is_hidden
    assert not table["b"].is_hidden
