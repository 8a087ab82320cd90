"""ListConfigResources: client metrics alone in version 0, the wanted kinds in version 1."""

from __future__ import annotations

from minibroker.broker.handlers.list_config_resources import handle
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tests.unit.broker.handlers.config_services import make_context


def ask(version: int, *kinds: int) -> ListConfigResourcesResponse:
    context = make_context(version)
    context.services.cluster.image.configs = {
        "client-metrics": {"my%20apps": {"interval.ms": "5"}, "emptied": {}},
        "groups": {"g": {"consumer.session.timeout.ms": "50000"}},
    }
    return handle(context, ListConfigResourcesRequest(resource_types=list(kinds)))


def listed(response: ListConfigResourcesResponse) -> list[tuple[int, str]]:
    return [(found.resource_type, found.resource_name) for found in response.config_resources]


def test_version_0_lists_client_metrics() -> None:
    assert listed(ask(0)) == [(16, "my apps")]


def test_version_1_lists_everything_or_the_wanted_kinds() -> None:
    everything = [(32, "g"), (16, "my apps"), (8, "0"), (4, "0"), (2, "t"), (2, "u")]
    assert listed(ask(1)) == everything
    assert listed(ask(1, 2, 4)) == [(4, "0"), (2, "t"), (2, "u")]


def test_an_unknown_kind_is_an_unsupported_version() -> None:
    response = ask(1, 2, 3)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert listed(response) == []
