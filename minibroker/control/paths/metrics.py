"""Paths of the metrics."""

from __future__ import annotations

from http import HTTPStatus
from itertools import chain
from typing import TYPE_CHECKING, Final

from prometheus_client.exposition import CONTENT_TYPE_LATEST

from minibroker.control.families import families
from minibroker.control.messages import EVENT_STREAM, Response
from minibroker.control.operations import ControlOperation

if TYPE_CHECKING:
    from minibroker.control.messages import EventStream
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope


async def metrics(scope: ControlScope, _: ControlCall) -> Response:
    """Return the families of Prometheus."""
    running = scope.node.app if scope.node.is_running else None
    pieces = chain([await scope.process.text()], families(running))
    return Response(HTTPStatus.OK, await scope.slices.join(pieces), CONTENT_TYPE_LATEST)


async def live_samples(scope: ControlScope, _: ControlCall) -> EventStream:
    """Stream the figures of each second."""
    return scope.streams.open("samples", scope.samples.pieces())


OPERATIONS: Final = (
    ControlOperation(
        "metrics",
        "GET",
        "/metrics",
        "Prometheus' text format",
        metrics,
        None,
        media_type="text/plain",
    ),
    ControlOperation(
        "live_samples",
        "GET",
        "/live/samples",
        "Figures of each second for plots, the lag of groups, the hits of faults, as a stream",
        live_samples,
        None,
        media_type=EVENT_STREAM,
        failures=(HTTPStatus.TOO_MANY_REQUESTS,),
    ),
)
