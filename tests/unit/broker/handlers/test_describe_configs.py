"""DescribeConfigs: groups, metrics, loggers, refusals, turns. Values: tests/compat."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.handlers import describe_configs
from minibroker.broker.handlers.describe_configs import handle
from minibroker.broker.slices import run_all, run_with_pauses
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.support.message_bytes import copy_of
from tests.support.turns import Turns
from tests.unit.broker.handlers.config_services import make_context

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import Services


def ask(
    context: object,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    *,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsResult:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    response = run_all(handle(context, request))  # type: ignore[arg-type]
    (result,) = response.results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def config_of(result: DescribeConfigsResult, name: str) -> DescribeConfigsResourceResult:
    assert result.error_code == 0, result.error_message
    (config,) = [config for config in result.configs if config.name == name]
    return config


def test_loggers_groups_and_client_metrics() -> None:
    logging.getLogger("tests.describe").setLevel(logging.ERROR)
    context = make_context(4)
    config = config_of(ask(context, 8, "0", ["tests.describe"]), "tests.describe")
    assert (config.value, config.config_source, config.config_type) == ("ERROR", 6, 0)
    group = config_of(ask(context, 32, "g", documentation=True), "consumer.session.timeout.ms")
    assert (group.value, group.config_source) == ("45000", 5)
    assert group.documentation
    metrics = config_of(ask(context, 16, "s", documentation=True), "interval.ms")
    assert (metrics.value, metrics.config_source) == ("300000", 5)
    assert metrics.documentation


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (2, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (4, "one", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: one"),
        (8, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (8, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (16, "", ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (32, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
        (1, "x", ErrorCode.INVALID_REQUEST, "Unsupported resource type: 1"),
    ],
)
def test_unknown_resources_are_refused(
    kind: int, name: str, code: ErrorCode, message: str | None
) -> None:
    result = ask(make_context(4), kind, name)
    assert (result.error_code, result.error_message, result.configs) == (code, message, [])


def test_another_brokers_settings_are_not_here() -> None:
    result = ask(make_context(4), 4, "3")
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message is not None
    assert result.error_message.startswith("Unexpected broker id, expected 0")


def read_by_client(response: object, version: int) -> DescribeConfigsResponse:
    """Return what a client reads."""
    assert isinstance(response, DescribeConfigsResponse)
    return copy_of(response, version)


@pytest.mark.parametrize("version", range(5))
async def test_many_resources_are_described_once_each_and_in_turns(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is repeated costs its bytes in the answer, as with Kafka, and no more."""
    context = make_context(version)
    described = []
    describe = describe_configs._describe

    def counted(services: Services, *wish: Any) -> DescribeConfigsResult:
        described.append(wish)
        return describe(services, *wish)

    monkeypatch.setattr(describe_configs, "_describe", counted)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    wishes = [("t", None), ("nowhere", None), ("t", ["retention.ms"]), ("a b", [])]
    resources = [
        DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=keys)
        for name, keys in wishes * 20
    ]
    turns = Turns()
    many = run_with_pauses(handle(context, DescribeConfigsRequest(resources=resources)))
    results = read_by_client(await many, version).results
    assert turns.stop() >= len(resources)
    assert len(described) == len(wishes)
    few = read_by_client(
        run_all(handle(context, DescribeConfigsRequest(resources=resources[:4]))), version
    ).results
    assert [repr(result) for result in results] == [repr(result) for result in few * 20]
    assert [result.error_code for result in few] == [0, 3, 0, 17]
