"""Paths about this API itself: what the console may show, and what programs may call."""

from __future__ import annotations

from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from minibroker import __version__
from minibroker.control import shapes
from minibroker.control.bodies import answer
from minibroker.control.messages import JSON, Response
from minibroker.control.operations import ControlOperation

if TYPE_CHECKING:
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope
    from minibroker.rig.node import Node

VIEWS: Final = (
    "topics",
    "records",
    "groups",
    "transactions",
    "clients",
    "requests",
    "faults",
    "clock",
    "quotas",
    "metrics",
    "cluster",
)


async def views(scope: ControlScope, call: ControlCall) -> Response:
    """Return the views that there are, and what the caller may do."""
    reason = scope.access.why_read_only(call.request)
    cluster_id = scope.node.app.cluster.image.cluster_id if scope.node.is_running else None
    return answer(
        shapes.ConsoleView(
            kind="broker",
            version=__version__,
            cluster_id=cluster_id,
            broker=scope.node.broker_id,
            views=[*VIEWS, *(["schemas"] if scope.registry.is_shown else [])],
            may_write=reason is None,
            why_not=reason,
            may_read_records=scope.access.may_read_data(),
            brokers=[_broker(node) for node in scope.nodes.all],
        )
    )


def _broker(node: Node) -> shapes.MemberBroker:
    is_running = node.is_running
    return shapes.MemberBroker(
        id=node.broker_id,
        address="{}:{}".format(*node.address) if is_running else None,
        state=("paused" if node.is_paused else "running") if is_running else "killed",
        is_controller=is_running and node.app.cluster.is_controller,
    )


async def openapi(_: ControlScope, _call: ControlCall) -> Response:
    """Return the description for programs."""
    text = files("minibroker.control").joinpath("openapi.json").read_bytes()
    return Response(HTTPStatus.OK, text, JSON)


OPERATIONS: Final = (
    ControlOperation(
        "views",
        "GET",
        "/views",
        "The views of the console that this server has, and what the caller may do",
        views,
        shapes.ConsoleView,
    ),
    ControlOperation("openapi", "GET", "/openapi.json", "This API for programs", openapi, dict),
)
