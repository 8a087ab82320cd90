"""Set, delete, append, subtract; and what may be altered on a running broker."""

from __future__ import annotations

import pytest

from minibroker.broker.config.alterations import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    Change,
    apply_changes,
    as_changes,
    check_broker_values,
)
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.config.keys import TOPIC_KEYS
from minibroker.kafka.errors import ConfigError


def alter(current: dict[str, str], *changes: tuple[str, int, str | None]) -> dict[str, str]:
    return apply_changes(current, [Change(*change) for change in changes], TOPIC_KEYS)


def test_set_and_delete() -> None:
    current = {"a": "1", "b": "2"}
    assert alter(current, ("a", SET, "3"), ("b", DELETE, None), ("c", DELETE, None)) == {"a": "3"}
    assert current == {"a": "1", "b": "2"}


def test_append_starts_from_the_default_and_adds_an_item_once() -> None:
    assert alter({}, ("cleanup.policy", APPEND, "compact")) == {"cleanup.policy": "delete,compact"}
    assert alter({}, ("cleanup.policy", APPEND, "delete")) == {"cleanup.policy": "delete"}
    throttled = {"leader.replication.throttled.replicas": ""}
    assert alter(throttled, ("leader.replication.throttled.replicas", APPEND, "0:1,0:2")) == {
        "leader.replication.throttled.replicas": "0:1,0:2"
    }


def test_subtract_takes_items_away() -> None:
    current = {"cleanup.policy": "delete,compact"}
    assert alter(current, ("cleanup.policy", SUBTRACT, "delete,x")) == {"cleanup.policy": "compact"}
    assert alter(current, ("cleanup.policy", SUBTRACT, "delete,compact")) == {"cleanup.policy": ""}


@pytest.mark.parametrize(("operation", "verb"), [(APPEND, "append"), (SUBTRACT, "subtract")])
def test_only_lists_are_appended_to(operation: int, verb: str) -> None:
    for name in ("retention.ms", "nobody.knows"):
        with pytest.raises(ConfigError, match=f"Config value {verb} is not allowed .*: {name}"):
            alter({}, (name, operation, "1"))


def test_the_difference_names_what_goes_and_what_is_new() -> None:
    assert as_changes({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9", "d": "4"}) == {
        "b": "9",
        "c": None,
        "d": "4",
    }


@pytest.mark.parametrize(
    ("values", "per_broker", "sentence"),
    [
        ({"broker.id": "1"}, True, "Cannot update these configs dynamically: [broker.id]"),
        (
            {"ssl.provider": "/k"},
            True,
            "ssl.provider=/k (allowed: no value): minibroker does not serve",
        ),
        (
            {"ssl.keystore.type": "JKS"},
            True,
            "only per-listener using the listener prefix: [ssl.keystore.type]",
        ),
        ({"log.segment.bytes": "x"}, True, "Invalid value x for configuration log.segment.bytes"),
        ({"sasl.jaas.config": "x"}, True, "sasl.jaas.config=[hidden] (allowed: no value)"),
        (
            {"listener.name.a.ssl.keystore.type": "JKS"},
            False,
            "Cannot update these configs at default cluster level, broker id must be specified",
        ),
        (
            {"sasl.enabled.mechanisms": "PLAIN"},
            False,
            "Cannot update these configs dynamically: [sasl.enabled.mechanisms]",
        ),
        (
            {"listener.name.a.plain.sasl.jaas.config": "x"},
            False,
            "broker id must be specified: [listener.name.a.plain.sasl.jaas.config]",
        ),
        ({"advertised.listeners": "PLAINTEXT://a:1"}, False, "broker id must be specified"),
        ({"advertised.listeners": "SSL://a:1"}, True, "advertised.listeners has SSL"),
        ({"listeners": "PLAINTEXT://a:1"}, False, "broker id must be specified: [listeners]"),
        ({"listeners": "SSL://a:1"}, True, "set inter.broker.listener.name=SSL"),
        (
            {"listener.security.protocol.map": "SSL:SSL"},
            True,
            "no security protocol is defined for listener PLAINTEXT",
        ),
        ({"num.io.threads": "3"}, False, "at least half the current value 8"),
        ({"num.io.threads": "17"}, False, "not be greater than double the current value 8"),
        ({"log.retention.ms": "0"}, False, "log.retention.ms=0"),
    ],
)
def test_settings_that_a_running_broker_refuses(
    values: dict[str, str], per_broker: bool, sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check_broker_values(DynamicConfig(BrokerConfig()), values, per_broker=per_broker)
    assert sentence in str(caught.value)


def test_settings_of_a_listener_that_act_with_its_next_start_are_taken() -> None:
    settings = {
        "listener.name.a.plain.sasl.jaas.config": "x",
        "listener.name.a.ssl.client.auth": "required",
    }
    check_broker_values(DynamicConfig(BrokerConfig()), settings, per_broker=True)


@pytest.mark.parametrize("per_broker", [True, False])
def test_settings_that_a_running_broker_takes(per_broker: bool) -> None:
    settings = {
        "log.segment.bytes": "2000",
        "num.io.threads": "16",
        "listener.name.a.num.network.threads": "5",
        "a.plugins.key": "x",
    }
    dynamic = DynamicConfig(BrokerConfig())
    check_broker_values(dynamic, settings, per_broker=per_broker)
    assert dynamic.broker is dynamic.static
