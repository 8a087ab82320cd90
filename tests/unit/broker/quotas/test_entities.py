"""Entities, keys, values and filters of the quota APIs."""

from __future__ import annotations

import pytest

from minibroker.broker.quotas.entities import (
    ANY,
    CLIENT_ID,
    DEFAULT,
    EXACT,
    IP,
    USER,
    Component,
    Entity,
    changes_of,
    matching_entities,
    node_of,
    text_of,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError


@pytest.mark.parametrize(
    ("entity", "entity_type", "name"),
    [
        ({USER: "a b"}, "users", "a%20b"),
        ({USER: None}, "users", "<default>"),
        ({CLIENT_ID: "c"}, "clients", "c"),
        ({CLIENT_ID: "c", USER: "u"}, "users", "u/clients/c"),
        ({USER: None, CLIENT_ID: None}, "users", "<default>/clients/<default>"),
        ({USER: "<default>"}, "users", "%3Cdefault%3E"),
        ({IP: "::1"}, "ips", "%3A%3A1"),
        ({IP: None}, "ips", "<default>"),
    ],
)
def test_node_of_an_entity(entity: Entity, entity_type: str, name: str) -> None:
    assert node_of(entity)[:2] == (entity_type, name)


@pytest.mark.parametrize(
    ("entity", "detail"),
    [
        ({}, "empty"),
        ({"host": "x"}, "Unhandled"),
        ({USER: ""}, "Empty user"),
        ({USER: "u", IP: "10.0.0.1"}, "combination"),
    ],
)
def test_entities_that_cannot_be(entity: Entity, detail: str) -> None:
    with pytest.raises(KafkaError, match=detail) as refused:
        node_of(entity)
    assert refused.value.code == ErrorCode.INVALID_REQUEST


def test_values_are_stored_as_kafka_writes_them() -> None:
    types = node_of({USER: "u"}).key_types
    operations = [("producer_byte_rate", 1e7), ("request_percentage", 200.0)]
    assert changes_of([*operations, ("consumer_byte_rate", None), ("nonsense", None)], types) == {
        "producer_byte_rate": "10000000",
        "request_percentage": "200.0",
        "consumer_byte_rate": None,
        "nonsense": None,
    }


@pytest.mark.parametrize(
    ("key", "value", "detail"),
    [
        ("nonsense", 1.0, "Invalid configuration key nonsense"),
        ("connection_creation_rate", 1.0, "Invalid configuration key"),
        ("producer_byte_rate", -1.0, "greater than 0"),
        ("producer_byte_rate", 0.0, "greater than 0"),
        ("request_percentage", float("nan"), "greater than 0"),
        ("producer_byte_rate", 1.5, "must be a LONG"),
        ("producer_byte_rate", 1e19, "too large"),
    ],
)
def test_values_that_cannot_be(key: str, value: float, detail: str) -> None:
    with pytest.raises(KafkaError, match=detail) as refused:
        changes_of([(key, value)], node_of({USER: "u"}).key_types)
    assert refused.value.code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0005, "5.0E-4"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (9999999.0, "9999999.0"),
        (float("inf"), "Infinity"),
    ],
)
def test_doubles_as_java_writes_them(value: float, text: str) -> None:
    types = node_of({USER: "u"}).key_types
    assert text_of("request_percentage", value, types) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (-2.0, "-2"), (2.0**63, "9223372036854775807")]
)
def test_whole_quotas_that_kafka_may_have_stored(value: float, text: str) -> None:
    assert text_of("producer_byte_rate", value, node_of({USER: "u"}).key_types) == text


CONFIGS = {
    "users": {
        "u": {"producer_byte_rate": "1", "SCRAM-SHA-256": "secret"},
        "<default>": {"producer_byte_rate": "2"},
        "u/clients/c": {"producer_byte_rate": "3"},
        "<default>/clients/<default>": {"producer_byte_rate": "4"},
        "scram-only": {"SCRAM-SHA-256": "secret"},
    },
    "clients": {"c": {"producer_byte_rate": "5"}, "<default>": {"producer_byte_rate": "6"}},
    "ips": {"10.0.0.1": {"connection_creation_rate": "7"}},
}


def values_of(*components: Component, strict: bool) -> list[int]:
    return sorted(
        int(value)
        for _, quotas in matching_entities(CONFIGS, components, strict=strict)
        for value in quotas.values()
    )


@pytest.mark.parametrize(
    ("components", "strict", "values"),
    [
        ([], False, [1, 2, 3, 4, 5, 6, 7]),
        ([], True, []),
        ([Component(USER, ANY, None)], False, [1, 2, 3, 4]),
        ([Component(USER, ANY, None)], True, [1, 2]),
        ([Component(USER, EXACT, "u")], False, [1, 3]),
        ([Component(USER, EXACT, "u")], True, [1]),
        ([Component(USER, DEFAULT, None)], True, [2]),
        ([Component(CLIENT_ID, ANY, None)], True, [5, 6]),
        ([Component(CLIENT_ID, EXACT, "c")], False, [3, 5]),
        ([Component(USER, EXACT, "u"), Component(CLIENT_ID, EXACT, "c")], True, [3]),
        ([Component(USER, ANY, None), Component(CLIENT_ID, ANY, None)], True, [3, 4]),
        ([Component(USER, DEFAULT, None), Component(CLIENT_ID, DEFAULT, None)], False, [4]),
        ([Component(IP, ANY, None)], True, [7]),
        ([Component(IP, EXACT, "10.0.0.2")], True, []),
    ],
)
def test_filters(components: list[Component], strict: bool, values: list[int]) -> None:
    assert values_of(*components, strict=strict) == values


def test_default_entities_have_no_name() -> None:
    ((entity, quotas),) = matching_entities(CONFIGS, [Component(USER, DEFAULT, None)], strict=True)
    assert entity == {USER: None}
    assert quotas == {"producer_byte_rate": 2.0}


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([Component("", EXACT, "x")], ErrorCode.INVALID_REQUEST),
        ([Component("host", EXACT, "x")], ErrorCode.UNSUPPORTED_VERSION),
        ([Component(USER, ANY, None)] * 2, ErrorCode.INVALID_REQUEST),
        ([Component(USER, ANY, None), Component(IP, ANY, None)], ErrorCode.INVALID_REQUEST),
        ([Component(USER, 3, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_filters_that_cannot_be(components: list[Component], code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refused:
        values_of(*components, strict=False)
    assert refused.value.code == code


def test_a_value_in_the_tree_that_is_no_number_is_said() -> None:
    broken = {"clients": {"c": {"producer_byte_rate": "much"}}}
    with pytest.raises(KafkaError, match="producer_byte_rate -> much"):
        list(matching_entities(broken, [], strict=False))
