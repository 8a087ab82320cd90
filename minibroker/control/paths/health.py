"""Paths of the health check, which everybody may ask."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control import shapes
from minibroker.control.bodies import answer
from minibroker.control.health import reasons_not_ready
from minibroker.control.operations import NOT_RUNNING, ControlOperation

if TYPE_CHECKING:
    from minibroker.control.messages import Response
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope


async def live(scope: ControlScope, _: ControlCall) -> Response:
    """Say that the process answers."""
    return answer(shapes.Live(live=True))


async def ready(scope: ControlScope, _: ControlCall) -> Response:
    """Say whether a client would succeed."""
    reasons = reasons_not_ready(scope.node)
    status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
    return answer(shapes.Ready(ready=not reasons, reasons=reasons), status)


OPERATIONS: Final = (
    ControlOperation(
        "live",
        "GET",
        "/health/live",
        "The process answers",
        live,
        shapes.Live,
        is_open=True,
    ),
    ControlOperation(
        "ready",
        "GET",
        "/health/ready",
        "Whether a client would succeed now",
        ready,
        shapes.Ready,
        failures=NOT_RUNNING,
        is_open=True,
    ),
)
