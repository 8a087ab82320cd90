"""What the config handlers share: names in the tree, repeated resources, errors to codes."""

from __future__ import annotations

import pytest

from minibroker.error_codes import ErrorCode
from minibroker.errors import CoordinationError, KafkaError, StorageError
from minibroker.handlers.config_resources import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    check_broker_id,
    current_values,
    entity_of,
    failure,
    repeated,
)
from tests.unit.handlers.config_services import make_context


@pytest.mark.parametrize(
    ("kind", "name", "entity"),
    [
        (TOPIC, "t", ("topics", "t")),
        (BROKER, "0", ("brokers", "0")),
        (BROKER, "", ("brokers", "<default>")),
        (CLIENT_METRICS, "<default>", ("client-metrics", "%3Cdefault%3E")),
        (GROUP, "a/b", ("groups", "a%2Fb")),
    ],
)
def test_where_a_resource_is_kept(kind: int, name: str, entity: tuple[str, str]) -> None:
    assert entity_of(kind, name) == entity


def test_current_values_are_a_copy() -> None:
    services = make_context().services
    services.cluster.image.configs = {"topics": {"t": {"flush.ms": "1"}}}
    values = current_values(services, TOPIC, "t")
    values.clear()
    assert current_values(services, TOPIC, "t") == {"flush.ms": "1"}


@pytest.mark.parametrize("text", ["", "-", "0x0", "1.0", "\u0663x"])
def test_a_broker_id_is_a_number(text: str) -> None:
    with pytest.raises(KafkaError, match="not a number: "):
        check_broker_id(make_context().services, text, "not a number: ")


def test_only_this_brokers_id_is_taken() -> None:
    services = make_context().services
    check_broker_id(services, "0", "")
    check_broker_id(services, "-0", "")
    for text in ("1", "-1"):
        with pytest.raises(KafkaError, match="Unexpected broker id, expected 0"):
            check_broker_id(services, text, "")


def test_resources_named_more_than_once() -> None:
    asked = [(2, "a"), (2, "b"), (4, "a"), (2, "a"), (2, "a")]
    assert repeated(asked) == {(2, "a")}


def test_errors_become_codes_and_only_those_of_the_request_and_the_tree() -> None:
    refused = KafkaError(ErrorCode.INVALID_CONFIG, "why")
    assert failure(refused) == (int(ErrorCode.INVALID_CONFIG), "why")
    assert failure(CoordinationError("away")) == (int(ErrorCode.REQUEST_TIMED_OUT), "away")
    with pytest.raises(StorageError):
        failure(StorageError("full"))
