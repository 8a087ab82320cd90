"""Paths of topics."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control import shapes, views
from minibroker.control.bodies import answer
from minibroker.control.messages import Response
from minibroker.control.operations import NOT_RUNNING, OF_WAITS, ControlOperation, list_of

if TYPE_CHECKING:
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope


async def topics(scope: ControlScope, _: ControlCall) -> Response:
    """Return the topics."""
    return Response(HTTPStatus.OK, await scope.slices.join(views.topics_of(scope.brokers)))


async def wait_for_consumer(scope: ControlScope, call: ControlCall) -> Response:
    """Wait until consumers fetch from a topic."""
    query: shapes.ConsumerQuery = call.query
    waits = scope.nodes.waits.for_consumer(
        call.part,
        partitions=None if query.partition is None else [query.partition],
        client_id=query.client_id,
        timeout_s=query.timeout_ms / 1000,
    )
    return answer(views.offsets_of(await scope.waiting.result(call.request, waits)))


OPERATIONS: Final = (
    ControlOperation(
        "topics",
        "GET",
        "/topics",
        "Topics with their partitions and offsets",
        topics,
        list_of(shapes.TopicView),
        failures=NOT_RUNNING,
    ),
    ControlOperation(
        "wait_for_consumer",
        "GET",
        "/topics/{topic}/consumer",
        "Wait until consumers fetch from a topic's partitions, with a group or without",
        wait_for_consumer,
        list_of(shapes.CommittedView),
        query=shapes.ConsumerQuery,
        failures=OF_WAITS,
    ),
)
