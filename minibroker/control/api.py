"""The control API: the paths and their methods. `openapi.json` beside it describes them for
programs.

    HttpRequest ─► ControlApi.handle: Access.check, the route ─► a method ─► Response
"""

from __future__ import annotations

from http import HTTPStatus
from importlib.resources import files
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.exposition import CONTENT_TYPE_LATEST

from minibroker.control import bodies, views
from minibroker.control.access import Access
from minibroker.control.families import ProcessMetrics, families
from minibroker.control.health import reasons_not_ready
from minibroker.control.messages import JSON, HttpError, Response, json_response
from minibroker.control.slices import Slices
from minibroker.kafka.errors import MinibrokerError
from minibroker.rig.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from minibroker.control.messages import HttpRequest
    from minibroker.rig.faults import Fault
    from minibroker.rig.node import Node

JSON_LINES: Final = "application/x-ndjson"


class ControlApi:
    """The control API of one node. The loop owns it."""

    def __init__(
        self, node: Node, access: Access | None = None, nodes: Nodes | None = None
    ) -> None:
        """`access`: who may ask; None: programs on this machine. `nodes`: all nodes of the cluster
        in this process; None: this one is alone.
        """
        self._node = node
        if nodes is None:
            nodes = Nodes()
            nodes.add(node)
        self._nodes = nodes
        self._access = access or Access()
        self._faults: dict[int, Fault] = {}
        self._numbers = count(1)
        self._process = ProcessMetrics()
        self._slices = Slices()
        self._routes: dict[str, dict[str, Callable[[HttpRequest], Awaitable[Response]]]] = {
            "/health/live": {"GET": self._live},
            "/health/ready": {"GET": self._ready},
            "/metrics": {"GET": self._metrics},
            "/topics": {"GET": self._topics},
            "/groups": {"GET": self._groups},
            "/requests": {"GET": self._requests},
            "/faults": {
                "GET": self._list_faults,
                "POST": self._add_fault,
                "DELETE": self._clear_faults,
            },
            "/faults/{id}": {"GET": self._show_fault, "DELETE": self._remove_fault},
            "/clock": {"GET": self._clock, "POST": self._advance},
            "/reset": {"POST": self._reset},
            "/cluster": {"GET": self._cluster},
            "/cluster/controller": {"POST": self._become_controller},
            "/cluster/leader": {"POST": self._make_leader},
            "/openapi.json": {"GET": self._openapi},
        }

    @property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """Return path → methods."""
        return {path: tuple(methods) for path, methods in self._routes.items()}

    async def handle(self, request: HttpRequest) -> Response:
        """Return the response. Raises HttpError."""
        self._access.check(request)
        path = request.path
        if not path.startswith("/"):
            raise HttpError(
                HTTPStatus.BAD_REQUEST,
                f"the target is no path: {path:.100}; expected one from / on",
            )
        if path.startswith("/faults/") and path.count("/") == 2:
            path = "/faults/{id}"
        methods = self._routes.get(path)
        if methods is None:
            raise HttpError(
                HTTPStatus.NOT_FOUND, f"there is no {request.path:.100}; see /openapi.json"
            )
        method = methods.get(request.method)
        if method is None:
            allowed = ", ".join(methods)
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                f"{request.method} {path}: expected {allowed}",
                (("Allow", allowed),),
            )
        return await method(request)

    def _check_running(self) -> None:
        if not self._node.is_running:
            reason = reasons_not_ready(self._node)[0]
            raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, f"{reason}: see /faults")

    # Health and views.

    async def _live(self, _: HttpRequest) -> Response:
        return json_response({"live": True})

    async def _ready(self, _: HttpRequest) -> Response:
        reasons = reasons_not_ready(self._node)
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        return json_response({"ready": not reasons, "reasons": reasons}, status)

    async def _metrics(self, _: HttpRequest) -> Response:
        running = self._node.app if self._node.is_running else None
        pieces = chain([await self._process.text()], families(running))
        return Response(HTTPStatus.OK, await self._slices.join(pieces), CONTENT_TYPE_LATEST)

    async def _topics(self, _: HttpRequest) -> Response:
        self._check_running()
        return Response(HTTPStatus.OK, await self._slices.join(views.topics_of(self._node.app)))

    async def _groups(self, _: HttpRequest) -> Response:
        self._check_running()
        return Response(HTTPStatus.OK, await self._slices.join(views.groups_of(self._node.app)))

    async def _requests(self, request: HttpRequest) -> Response:
        lines = await self._slices.join(views.requests_of(self._node, request.query))
        return Response(HTTPStatus.OK, lines, JSON_LINES)

    async def _openapi(self, _: HttpRequest) -> Response:
        text = files("minibroker.control").joinpath("openapi.json").read_bytes()
        return Response(HTTPStatus.OK, text, JSON)

    # Faults.

    async def _list_faults(self, _: HttpRequest) -> Response:
        # A reset of the cluster ends them behind this API.
        self._faults = {n: fault for n, fault in self._faults.items() if not fault.is_removed}
        return json_response([bodies.show_fault(*fault) for fault in self._faults.items()])

    async def _add_fault(self, request: HttpRequest) -> Response:
        fault = bodies.parse_fault(request.body)
        self._check_running()
        try:
            await self._node.add(fault)
        except MinibrokerError as error:
            raise HttpError(HTTPStatus.CONFLICT, str(error)) from None
        number = next(self._numbers)
        if not fault.is_removed:
            self._faults[number] = fault
        response = json_response(bodies.show_fault(number, fault), HTTPStatus.CREATED)
        return response._replace(headers=(("Location", f"/faults/{number}"),))

    def _find(self, request: HttpRequest) -> int:
        text = request.path.removeprefix("/faults/")
        if not (text.isdecimal() and len(text) < 19 and int(text) in self._faults):
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no fault {text:.100}; see GET /faults")
        return int(text)

    async def _show_fault(self, request: HttpRequest) -> Response:
        number = self._find(request)
        return json_response(bodies.show_fault(number, self._faults[number]))

    async def _remove_fault(self, request: HttpRequest) -> Response:
        number = self._find(request)
        fault = self._faults.pop(number)
        await self._node.remove(fault)
        return json_response(bodies.show_fault(number, fault))

    async def _clear_faults(self, _: HttpRequest) -> Response:
        self._faults.clear()
        await self._node.clear()
        return json_response([])

    # The clock, and the reset.

    async def _clock(self, _: HttpRequest) -> Response:
        return json_response({"now_ms": self._node.clock.now_ms()})

    async def _advance(self, request: HttpRequest) -> Response:
        self._node.clock.move(bodies.parse_advance_ms(request.body))
        return json_response({"now_ms": self._node.clock.now_ms()})

    async def _reset(self, _: HttpRequest) -> Response:
        self._faults.clear()
        await (self._nodes.reset() if len(self._nodes.all) > 1 else self._node.reset())
        return json_response({"now_ms": self._node.clock.now_ms()})

    # The cluster.

    async def _cluster(self, _: HttpRequest) -> Response:
        self._check_running()
        return json_response(views.cluster_of(self._node.app))

    async def _become_controller(self, request: HttpRequest) -> Response:
        bodies.parse_object(request.body, {})
        await self._change_cluster(self._nodes.make_controller(self._node.broker_id))
        return await self._cluster(request)

    async def _make_leader(self, request: HttpRequest) -> Response:
        topic, partition, broker_id = bodies.parse_leader(request.body, self._node.broker_id)
        await self._change_cluster(self._nodes.make_leader(topic, partition, broker_id))
        return await self._cluster(request)

    async def _change_cluster(self, change: Coroutine[Any, Any, None]) -> None:
        """Do a change of the cluster. Raises HttpError(409) with the reason why it cannot be."""
        try:
            await change
        except (MinibrokerError, ValueError, TimeoutError, RuntimeError) as error:
            raise HttpError(HTTPStatus.CONFLICT, str(error)) from None
