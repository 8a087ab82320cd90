"""AlterConfigs: nodes of the tree, and why a resource is refused. Values: tests/compat."""

from __future__ import annotations

import pytest

from minibroker.broker.handlers.alter_configs import handle
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from tests.unit.broker.handlers.config_services import make_context


def resource(kind: int, name: str, *configs: tuple[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in configs],
    )


async def alter(
    context: object, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[tuple[ErrorCode, str | None]]:
    request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    response = await handle(context, request)  # type: ignore[arg-type]
    names = [(r.resource_type, r.resource_name) for r in resources]
    assert [(r.resource_type, r.resource_name) for r in response.responses] == names
    return [(ErrorCode(r.error_code), r.error_message) for r in response.responses]


async def test_broker_and_cluster_wide_values() -> None:
    context = make_context()
    answers = await alter(
        context,
        resource(4, "0", ("log.segment.bytes", "1000")),
        resource(4, "", ("log.retention.ms", "5")),
    )
    assert answers == [(ErrorCode.NONE, None)] * 2
    assert [change[:2] for change in context.services.cluster.written] == [
        ("brokers", "0"),
        ("brokers", "<default>"),
    ]
    assert context.services.dynamic.topic("t").retention_ms == 5


async def test_names_of_groups_and_subscriptions_are_sanitized_in_the_tree() -> None:
    context = make_context()
    answers = await alter(
        context,
        resource(16, "all clients", ("interval.ms", "1000")),
        resource(32, "a/b", ("consumer.session.timeout.ms", "50000")),
    )
    assert answers == [(ErrorCode.NONE, None)] * 2
    assert [change[:2] for change in context.services.cluster.written] == [
        ("client-metrics", "all%20clients"),
        ("groups", "a%2Fb"),
    ]


@pytest.mark.parametrize(
    ("bad", "code", "message"),
    [
        (
            resource(2, "t", ("retention.ms", None), ("flush.ms", None)),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms, flush.ms",
        ),
        (
            resource(2, "t", ("flush.ms", "1"), ("flush.ms", "2")),
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            resource(2, "nowhere", ("flush.ms", "1")),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'nowhere' does not exist.",
        ),
        (resource(2, ""), ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        (
            resource(2, "t", ("colour", "red")),
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: colour",
        ),
        (
            resource(2, "t", ("retention.ms", "x")),
            ErrorCode.INVALID_CONFIG,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (
            resource(4, "one"),
            ErrorCode.INVALID_REQUEST,
            "Node id must be an integer, but it is: one",
        ),
        (
            resource(4, "1"),
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 0, but received 1",
        ),
        (
            resource(4, "0", ("broker.id", "1")),
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: [broker.id]",
        ),
        (resource(8, "0"), ErrorCode.INVALID_REQUEST, "Unknown resource type 8"),
        (resource(0, "x"), ErrorCode.INVALID_REQUEST, "Unknown resource type 0"),
        (resource(16, ""), ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
        (
            resource(16, "s", ("colour", "red")),
            ErrorCode.INVALID_REQUEST,
            "Unknown client metrics configuration: colour",
        ),
        (
            resource(16, "s", ("match", "colour=red")),
            ErrorCode.INVALID_CONFIG,
            "Illegal client matching pattern: colour=red",
        ),
        (resource(32, ""), ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
        (
            resource(32, "g", ("colour", "red")),
            ErrorCode.INVALID_CONFIG,
            "Unknown group config name: colour",
        ),
    ],
)
async def test_a_refused_resource_changes_nothing_and_spares_the_others(
    bad: AlterConfigsResource, code: ErrorCode, message: str
) -> None:
    context = make_context()
    good = resource(2, "u", ("flush.ms", "9"))
    assert await alter(context, bad, good) == [(code, message), (ErrorCode.NONE, None)]
    assert context.services.cluster.written == [("topics", "u", {"flush.ms": "9"})]


async def test_a_push_interval_out_of_range_is_an_invalid_request() -> None:
    ((code, message),) = await alter(make_context(), resource(16, "s", ("interval.ms", "99")))
    assert code == ErrorCode.INVALID_REQUEST
    assert message is not None
    assert message.startswith("Invalid value 99 for interval.ms")


async def test_a_resource_named_twice_is_refused_both_times() -> None:
    context = make_context()
    answers = await alter(context, resource(2, "t"), resource(2, "u"), resource(2, "t"))
    twice = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert answers == [twice, (ErrorCode.NONE, None), twice]


async def test_a_tree_that_is_away_is_retriable() -> None:
    context = make_context()
    context.services.cluster.failure = CoordinationError("ZooKeeper is away")
    ((code, _),) = await alter(context, resource(2, "t", ("flush.ms", "1")))
    assert code == ErrorCode.REQUEST_TIMED_OUT
    assert code.retriable
