"""IncrementalAlterConfigs: writes at once, refusals, lists, loggers. Values: tests/compat."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.handlers.incremental_alter_configs import handle
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.in_process import TIMEOUT_S, InProcessBroker
from tests.support.waiting import eventually
from tests.unit.broker.handlers.config_services import make_context

if TYPE_CHECKING:
    from pathlib import Path

SET, DELETE, APPEND, SUBTRACT = range(4)


def resource(kind: int, name: str, *configs: tuple[str, int, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in configs
        ],
    )


async def alter(
    context: object, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[tuple[ErrorCode, str | None]]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    response = await handle(context, request)  # type: ignore[arg-type]
    return [(ErrorCode(r.error_code), r.error_message) for r in response.responses]


async def test_nothing_is_written_where_nothing_changes() -> None:
    context = make_context()
    assert await alter(context, resource(2, "t", ("flush.ms", DELETE, None))) == [
        (ErrorCode.NONE, None)
    ]
    assert context.services.cluster.written == []


async def test_values_are_checked_together_with_those_there_are() -> None:
    context = make_context()
    await context.services.cluster.alter_config("topics", "t", {"max.compaction.lag.ms": "10"})
    ((code, message),) = await alter(
        context, resource(2, "t", ("min.compaction.lag.ms", SET, "20"))
    )
    assert code == ErrorCode.INVALID_CONFIG
    assert message is not None
    assert "conflict topic config setting" in message


async def test_appends_that_come_at_once_are_all_kept(tmp_path: Path) -> None:
    """They wait for the cluster's lock together, so none of them knows of the others."""
    key = "follower.replication.throttled.replicas"
    async with InProcessBroker(tmp_path) as running, AsyncExitStack() as clients:
        cluster = running.broker.cluster
        await cluster.create_topic("t")
        connections = [await clients.enter_async_context(await running.connect()) for _ in "ab"]
        async with cluster._context.lock:
            appends = [
                asyncio.ensure_future(client.call(append(key, f"{number}:0"), 1))
                for number, client in enumerate(connections)
            ]
            async with asyncio.timeout(TIMEOUT_S):
                while len(cluster._context.lock._waiters or ()) < len(appends):  # noqa: ASYNC110  nobody is told
                    await asyncio.sleep(0)
        for answer in await asyncio.gather(*appends):
            assert [response.error_code for response in answer.responses] == [0]
        assert sorted(cluster.config_of("topics", "t")[key].split(",")) == ["0:0", "1:0"]


def append(key: str, value: str) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(resources=[resource(2, "t", (key, APPEND, value))])


@pytest.mark.parametrize(
    ("bad", "code", "message"),
    [
        (
            resource(2, "t", ("flush.ms", SET, None)),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : flush.ms",
        ),
        (
            resource(2, "t", ("flush.ms", SET, "1"), ("flush.ms", DELETE, None)),
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            resource(2, "t", ("flush.ms", APPEND, "1")),
            ErrorCode.INVALID_CONFIG,
            "Config value append is not allowed for config key: flush.ms",
        ),
        (resource(2, "t", ("flush.ms", 4, "1")), ErrorCode.UNKNOWN_SERVER_ERROR, None),
        (
            resource(2, "nowhere", ("flush.ms", SET, "1")),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'nowhere' does not exist.",
        ),
        (
            resource(4, "0", ("num.io.threads", SET, "100")),
            ErrorCode.INVALID_REQUEST,
            "Dynamic thread count update validation failed for num.io.threads=100, value should "
            "not be greater than double the current value 8",
        ),
        (resource(99, "x"), ErrorCode.INVALID_REQUEST, "Unknown resource type 99"),
        (
            resource(8, "7", ("root", SET, "INFO")),
            ErrorCode.INVALID_REQUEST,
            "Unexpected node id. Expected 0, but received 7",
        ),
    ],
)
async def test_a_refused_request_changes_nothing(
    bad: AlterConfigsResource, code: ErrorCode, message: str | None
) -> None:
    context = make_context()
    assert await alter(context, bad) == [(code, message)]
    assert context.services.cluster.written == []


async def test_group_and_client_metrics_lists_can_be_appended_to() -> None:
    context = make_context()
    answers = await alter(
        context,
        resource(16, "s", ("metrics", APPEND, "a.b."), ("match", SET, "client_id=x")),
        resource(32, "g", ("streams.rack.aware.assignment.tags", APPEND, "zone")),
    )
    assert answers == [(ErrorCode.NONE, None)] * 2
    assert context.services.cluster.config_of("client-metrics", "s") == {
        "metrics": "a.b.",
        "match": "client_id=x",
    }


async def test_loggers_change_their_level_and_nothing_is_stored() -> None:
    logger = logging.getLogger("tests.incremental")
    context = make_context()
    assert await alter(
        context, resource(8, "0", ("tests.incremental", SET, "DEBUG")), validate_only=True
    ) == [(ErrorCode.NONE, None)]
    assert logger.level == logging.NOTSET
    await alter(context, resource(8, "0", ("tests.incremental", SET, "DEBUG")))
    assert logger.level == logging.DEBUG
    await alter(context, resource(8, "0", ("tests.incremental", DELETE, None)))
    assert logger.level == logging.NOTSET
    assert context.services.cluster.written == []


async def test_a_topic_that_is_deleted_meanwhile_leaves_no_setting_to_the_next_of_its_name(
    tmp_path: Path,
) -> None:
    """The request comes while the deletion waits for its turn. Both are answered as if one came
    behind the other.
    """
    async with InProcessBroker(tmp_path) as running, await running.connect() as client:
        await running.create_topic("t")
        cluster = running.broker.cluster
        setting = resource(2, "t", ("retention.ms", SET, "1"))
        async with cluster._context.lock:
            deletion = asyncio.create_task(cluster.delete_topic("t"))
            await asyncio.sleep(0)
            client.send(IncrementalAlterConfigsRequest(resources=[setting]), 1)
            await eventually(lambda: len(cluster._context.lock._waiters or ()) == 2)
        (answer,) = (await client.receive()).responses
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await deletion
        await running.create_topic("t")
        assert cluster.config_of("topics", "t") == {}
