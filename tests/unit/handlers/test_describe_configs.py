"""DescribeConfigs at every version; what the values are is tested with config/describe."""

from __future__ import annotations

import logging

import pytest

from minibroker.error_codes import ErrorCode
from minibroker.handlers.describe_configs import handle
from minibroker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from minibroker.protocol.primitives import Reader, Writer
from tests.unit.handlers.config_services import make_context


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
    response = handle(context, request)  # type: ignore[arg-type]
    (result,) = response.results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def found(result: DescribeConfigsResult, name: str) -> DescribeConfigsResourceResult:
    assert result.error_code == 0, result.error_message
    (config,) = [config for config in result.configs if config.name == name]
    return config


def test_a_topics_setting() -> None:
    context = make_context(4)
    context.services.cluster.image.configs = {"topics": {"t": {"cleanup.policy": "compact"}}}
    config = found(ask(context, 2, "t", synonyms=True, documentation=True), "cleanup.policy")
    assert (config.value, config.config_source, config.config_type) == ("compact", 1, 7)
    assert not config.read_only
    assert [(s.name, s.value, s.source) for s in config.synonyms] == [
        ("cleanup.policy", "compact", 1),
        ("log.cleanup.policy", "delete", 5),
    ]
    assert config.documentation is not None


def test_layers_and_texts_come_only_when_asked_for() -> None:
    config = found(ask(make_context(4), 2, "t"), "cleanup.policy")
    assert config.synonyms == []
    assert config.documentation is None


@pytest.mark.parametrize("keys", [None, []])
def test_null_and_an_empty_list_ask_for_all_keys(keys: list[str] | None) -> None:
    assert len(ask(make_context(4), 2, "t", keys).configs) == 36


def test_the_broker_answers_for_itself() -> None:
    """D15: clients look for these keys, and for read-only and sensitive ones."""
    result = ask(make_context(4, {"ssl.key.password": ""}), 4, "0")
    for name in ("min.insync.replicas", "default.replication.factor", "num.partitions"):
        assert found(result, name).value == "1"
    assert found(result, "auto.create.topics.enable").value == "true"
    assert found(result, "broker.id").read_only
    secret = found(result, "ssl.key.password")
    assert (secret.value, secret.is_sensitive, secret.config_type) == (None, True, 9)


def test_cluster_wide_values_are_those_set_at_run_time() -> None:
    context = make_context(4)
    assert ask(context, 4, "").configs == []
    context.services.dynamic.set_cluster_default({"log.segment.bytes": "1000"})
    config = found(ask(context, 4, ""), "log.segment.bytes")
    assert (config.value, config.config_source, config.read_only) == ("1000", 3, False)


def test_loggers_groups_and_client_metrics() -> None:
    logging.getLogger("tests.describe").setLevel(logging.ERROR)
    context = make_context(4)
    config = found(ask(context, 8, "0", ["tests.describe"]), "tests.describe")
    assert (config.value, config.config_source, config.config_type) == ("ERROR", 6, 0)
    group = found(ask(context, 32, "g", documentation=True), "consumer.session.timeout.ms")
    assert (group.value, group.config_source) == ("45000", 5)
    assert group.documentation
    metrics = found(ask(context, 16, "s", documentation=True), "interval.ms")
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
def test_what_cannot_be_described(
    kind: int, name: str, code: ErrorCode, message: str | None
) -> None:
    result = ask(make_context(4), kind, name)
    assert (result.error_code, result.error_message, result.configs) == (code, message, [])


def test_another_brokers_settings_are_not_here() -> None:
    result = ask(make_context(4), 4, "3")
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message is not None
    assert result.error_message.startswith("Unexpected broker id, expected 0")


def test_an_illegal_topic_name_is_told_from_an_unknown_one() -> None:
    assert ask(make_context(4), 2, "a b").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("version", range(5))
def test_every_version_carries_the_answer(version: int) -> None:
    context = make_context(version, {"num.partitions": "3"})
    context.services.cluster.image.configs = {"topics": {"t": {"retention.ms": "5"}}}
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            for kind, name in ((2, "t"), (4, "0"), (8, "0"), (4, "9"))
        ],
        include_synonyms=version >= 1,
        include_documentation=version >= 3,
    )
    writer = Writer()
    handle(context, request).write(writer, version)
    read = DescribeConfigsResponse.read(Reader(b"".join(writer.parts())), version)
    topic = found(read.results[0], "retention.ms")
    assert topic.value == "5"
    assert [result.error_code for result in read.results] == [0, 0, 0, 42]
    if version == 0:
        assert not any(config.is_default for result in read.results for config in result.configs)
    else:
        assert topic.config_source == 1
