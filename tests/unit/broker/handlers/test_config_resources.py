"""Shared code of the config handlers: names in the tree, repeated resources, ids of brokers."""

from __future__ import annotations

import pytest

from minibroker.broker.handlers.configs.resources import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    check_broker_id,
    current_values,
    entity_of,
    repeated,
)
from minibroker.broker.handlers.list_config_resources import handle
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tests.unit.broker.handlers.config_services import make_context


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


@pytest.mark.parametrize("text", ["", "-", "one", "1.0", "2147483648", "-2147483649", "9" * 30_000])
def test_a_number_that_java_does_not_parse_is_no_broker_id(text: str) -> None:
    with pytest.raises(KafkaError, match="no integer: ") as refused:
        check_broker_id(make_context().services, text, "no integer: ")
    assert refused.value.code == ErrorCode.INVALID_REQUEST


def test_resources_named_more_than_once() -> None:
    resources = [(2, "a"), (2, "b"), (4, "a"), (2, "a"), (2, "a")]
    assert repeated(resources) == {(2, "a")}


def ask(version: int, *kinds: int) -> ListConfigResourcesResponse:
    context = make_context(version)
    context.services.cluster.image.configs = {
        "client-metrics": {"my%20apps": {"interval.ms": "5"}, "emptied": {}},
        "groups": {"g": {"consumer.session.timeout.ms": "50000"}},
    }
    return handle(context, ListConfigResourcesRequest(resource_types=list(kinds)))


def resources_in(response: ListConfigResourcesResponse) -> list[tuple[int, str]]:
    return [
        (resource.resource_type, resource.resource_name) for resource in response.config_resources
    ]


def test_version_0_lists_client_metrics() -> None:
    assert resources_in(ask(0)) == [(16, "my apps")]


def test_version_1_lists_everything_or_the_wanted_kinds() -> None:
    everything = [(32, "g"), (16, "my apps"), (8, "0"), (4, "0"), (2, "t"), (2, "u")]
    assert resources_in(ask(1)) == everything
    assert resources_in(ask(1, 2, 4)) == [(4, "0"), (2, "t"), (2, "u")]


def test_an_unknown_kind_is_an_unsupported_version() -> None:
    response = ask(1, 2, 3)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert resources_in(response) == []
