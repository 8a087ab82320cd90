"""Paths of requests: the last ones, and those that come. A proxy serves them, too."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from minibroker.control import shapes, views
from minibroker.control.messages import EVENT_STREAM, Response
from minibroker.control.operations import ControlOperation
from minibroker.control.request_feed import RequestFeed
from minibroker.control.seeding import JSON_LINES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.control.messages import EventStream
    from minibroker.control.operations import ControlCall
    from minibroker.control.slices import Slices
    from minibroker.control.streams import Streams
    from minibroker.rig.request_log import RequestLog


class RequestScope(Protocol):
    """The parts that these operations use."""

    slices: Slices
    streams: Streams

    def request_logs(
        self, broker_id: int | None, *, all_brokers: bool
    ) -> Mapping[int | None, RequestLog]:
        """Return broker → its log; that of this one where no id is given, or of all. A proxy has
        one log, under None. Raises HttpError(404).
        """


async def requests(scope: RequestScope, call: ControlCall) -> Response:
    """Return the last requests."""
    query: shapes.RequestsQuery = call.query
    logs = scope.request_logs(query.broker_id, all_brokers=query.all_brokers)
    lines = await scope.slices.join(views.requests_of(logs, query))
    return Response(HTTPStatus.OK, lines, JSON_LINES)


async def live_requests(scope: RequestScope, call: ControlCall) -> EventStream:
    """Stream the requests that come."""
    query: shapes.FeedQuery = call.query
    logs = scope.request_logs(query.broker_id, all_brokers=query.broker_id is None)
    return scope.streams.open("requests", RequestFeed(logs, query).pieces())


OPERATIONS: Final = (
    ControlOperation(
        "requests",
        "GET",
        "/requests",
        "The last requests, a JSON object per line, oldest first",
        requests,
        shapes.RequestView,
        query=shapes.RequestsQuery,
        media_type=JSON_LINES,
    ),
    ControlOperation(
        "live_requests",
        "GET",
        "/live/requests",
        "The requests that come, as a stream of events",
        live_requests,
        None,
        query=shapes.FeedQuery,
        media_type=EVENT_STREAM,
        failures=(HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS),
    ),
)
