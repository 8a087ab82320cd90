"""The control API: its operations, and the work of each one.

    HttpRequest ─► ControlApi.begin: Access.check, the operation, its query
                ─► Work: the body ─► a method ─► Response

`openapi.json` beside it describes the operations for programs; `description` makes it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.exposition import CONTENT_TYPE_LATEST

from minibroker.control import bodies, shapes, views
from minibroker.control.access import Access
from minibroker.control.bodies import answer
from minibroker.control.families import ProcessMetrics, families
from minibroker.control.health import reasons_not_ready
from minibroker.control.messages import JSON, HttpError, Response, Work
from minibroker.control.operations import ControlCall, ControlOperation, Routes, list_of
from minibroker.control.overview import overview_of
from minibroker.control.records import (
    TopicReading,
    TopicWriting,
    as_http,
    records_lines,
    records_text,
)
from minibroker.control.seeding import BODY_TYPES, JSON_LINES, load_body
from minibroker.control.slices import Slices
from minibroker.control.waiting import WaitingRequests
from minibroker.kafka.errors import KafkaError, MinibrokerError
from minibroker.rig.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from minibroker.control.messages import HttpRequest
    from minibroker.rig.faults import Fault
    from minibroker.rig.node import Node

RECORDS_BYTES_MAX: Final = 256 << 10
SEED_BYTES_MAX: Final = 16 << 20


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
        self._waiting = WaitingRequests()

    def begin(self, request: HttpRequest) -> Work:
        """Return the work for a request whose body is not read yet. Raises HttpError."""
        self._access.check(request)
        operation, part = _ROUTES.find(request)
        if operation.has_data:
            self._access.check_data(request)
        query = bodies.parse_query(request.query, operation.query)
        return Work(operation.body_bytes_max, partial(self._run, operation, request, part, query))

    async def _run(
        self,
        operation: ControlOperation,
        request: HttpRequest,
        part: str,
        query: Any,
        body: bytearray,
    ) -> Response:
        checked: Any = body
        if operation.raw_body is not None:
            checked = bodies.parse_raw_body(body, operation.raw_body)
        elif operation.body not in (None, str):
            checked = bodies.parse_body(body, operation.body)
        try:
            return await operation.run(self, ControlCall(request, part, query, checked))
        except KafkaError as error:
            raise as_http(error) from None

    def _check_running(self) -> None:
        if not self._node.is_running:
            reason = reasons_not_ready(self._node)[0]
            raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, f"{reason}: see /faults")

    # Health and views.

    async def overview(self, call: ControlCall) -> Response:
        """List the operations."""
        return overview_of(OPERATIONS, call.request.headers.get("accept", ""))

    async def live(self, _: ControlCall) -> Response:
        """Say that the process answers."""
        return answer(shapes.Live(live=True))

    async def ready(self, _: ControlCall) -> Response:
        """Say whether a client would succeed."""
        reasons = reasons_not_ready(self._node)
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        return answer(shapes.Ready(ready=not reasons, reasons=reasons), status)

    async def metrics(self, _: ControlCall) -> Response:
        """Return the families of Prometheus."""
        running = self._node.app if self._node.is_running else None
        pieces = chain([await self._process.text()], families(running))
        return Response(HTTPStatus.OK, await self._slices.join(pieces), CONTENT_TYPE_LATEST)

    async def topics(self, _: ControlCall) -> Response:
        """Return the topics."""
        self._check_running()
        return Response(HTTPStatus.OK, await self._slices.join(views.topics_of(self._node.app)))

    async def groups(self, _: ControlCall) -> Response:
        """Return the groups."""
        self._check_running()
        return Response(HTTPStatus.OK, await self._slices.join(views.groups_of(self._node.app)))

    async def requests(self, call: ControlCall) -> Response:
        """Return the last requests."""
        lines = await self._slices.join(views.requests_of(self._node, call.query))
        return Response(HTTPStatus.OK, lines, JSON_LINES)

    async def openapi(self, _: ControlCall) -> Response:
        """Return the description for programs."""
        text = files("minibroker.control").joinpath("openapi.json").read_bytes()
        return Response(HTTPStatus.OK, text, JSON)

    # Records, waits and seeds.

    async def read_records(self, call: ControlCall) -> Response:
        """Return records of a topic."""
        self._check_running()
        reading = TopicReading(self._nodes, call.part, call.query)
        if call.query.wait_ms:
            records, positions = await self._waiting.run(call.request, reading.run())
        else:
            records, positions = await reading.run()
        if JSON_LINES in call.request.headers.get("accept", ""):
            lines = await asyncio.to_thread(records_lines, records)
            return Response(HTTPStatus.OK, lines, JSON_LINES)
        text = await asyncio.to_thread(records_text, records, positions)
        return Response(HTTPStatus.OK, text)

    async def write_records(self, call: ControlCall) -> Response:
        """Write records of a topic."""
        self._check_running()
        return answer(await TopicWriting(self._nodes, call.part).run(call.body))

    async def wait_until_ready(self, call: ControlCall) -> Response:
        """Wait until a group is ready."""
        query: shapes.ReadyQuery = call.query
        waits = self._nodes.waits.for_group(call.part, query.members, query.timeout_ms / 1000)
        members = await self._wait(call, waits)
        return answer([views.member_of(member) for member in members])

    async def wait_until_read(self, call: ControlCall) -> Response:
        """Wait until a group has read everything."""
        query: shapes.ReadQuery = call.query
        waits = self._nodes.waits.until_read(
            call.part, fetched=query.fetched, timeout_s=query.timeout_ms / 1000
        )
        return answer(views.offsets_of(await self._wait(call, waits)))

    async def wait_for_consumer(self, call: ControlCall) -> Response:
        """Wait until consumers fetch from a topic."""
        query: shapes.ConsumerQuery = call.query
        waits = self._nodes.waits.for_consumer(
            call.part,
            partitions=None if query.partition is None else [query.partition],
            client_id=query.client_id,
            timeout_s=query.timeout_ms / 1000,
        )
        return answer(views.offsets_of(await self._wait(call, waits)))

    async def _wait(self, call: ControlCall, wait: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of a wait. Raises HttpError."""
        try:
            return await self._waiting.run(call.request, wait)
        except TimeoutError as error:
            raise HttpError(HTTPStatus.GATEWAY_TIMEOUT, str(error)) from None
        except ValueError as error:
            raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None

    async def load_seed(self, call: ControlCall) -> Response:
        """Load a seed."""
        self._check_running()
        kind = call.request.headers.get("content-type", JSON_LINES).partition(";")[0].strip()
        loaded = await load_body(call.body, kind, [node.app for node in self._nodes.active])
        return answer(
            shapes.LoadedView(
                topics=list(loaded.topics), records=loaded.records, groups=list(loaded.groups)
            )
        )

    # Faults.

    async def list_faults(self, _: ControlCall) -> Response:
        """Return the faults of this API."""
        # A reset of the cluster ends them behind this API.
        self._faults = {n: fault for n, fault in self._faults.items() if not fault.is_removed}
        return answer([bodies.fault_view(*fault) for fault in self._faults.items()])

    async def add_fault(self, call: ControlCall) -> Response:
        """Add a fault."""
        fault = bodies.fault_of(call.body)
        self._check_running()
        try:
            await self._node.add(fault)
        except MinibrokerError as error:
            raise HttpError(HTTPStatus.CONFLICT, str(error)) from None
        number = next(self._numbers)
        if not fault.is_removed:
            self._faults[number] = fault
        response = answer(bodies.fault_view(number, fault), HTTPStatus.CREATED)
        return response._replace(headers=(("Location", f"/faults/{number}"),))

    def _find(self, text: str) -> int:
        if not (text.isdecimal() and len(text) < 19 and int(text) in self._faults):
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no fault {text:.100}; see GET /faults")
        return int(text)

    async def show_fault(self, call: ControlCall) -> Response:
        """Return a fault."""
        number = self._find(call.part)
        return answer(bodies.fault_view(number, self._faults[number]))

    async def remove_fault(self, call: ControlCall) -> Response:
        """Remove a fault."""
        number = self._find(call.part)
        fault = self._faults.pop(number)
        await self._node.remove(fault)
        return answer(bodies.fault_view(number, fault))

    async def clear_faults(self, _: ControlCall) -> Response:
        """Remove all faults."""
        self._faults.clear()
        await self._node.clear()
        return answer([])

    # The clock, and the reset.

    async def clock(self, _: ControlCall) -> Response:
        """Return the broker's time."""
        return answer(shapes.ClockView(now_ms=self._node.clock.now_ms()))

    async def advance(self, call: ControlCall) -> Response:
        """Move the clock on."""
        self._node.clock.move(bodies.advance_ms(call.body))
        return await self.clock(call)

    async def reset(self, call: ControlCall) -> Response:
        """Return to the state after the start."""
        self._faults.clear()
        await (self._nodes.reset() if len(self._nodes.all) > 1 else self._node.reset())
        return await self.clock(call)

    # The cluster.

    async def cluster(self, _: ControlCall) -> Response:
        """Return the cluster."""
        self._check_running()
        return answer(views.cluster_of(self._node.app))

    async def become_controller(self, call: ControlCall) -> Response:
        """Make this broker the controller."""
        await self._change_cluster(self._nodes.make_controller(self._node.broker_id))
        return await self.cluster(call)

    async def make_leader(self, call: ControlCall) -> Response:
        """Make a broker the leader of a partition."""
        leader: shapes.LeaderChoice = call.body
        broker_id = self._node.broker_id if leader.broker is None else leader.broker
        await self._change_cluster(
            self._nodes.make_leader(leader.topic, leader.partition, broker_id)
        )
        return await self.cluster(call)

    async def _change_cluster(self, change: Coroutine[Any, Any, None]) -> None:
        """Do a change of the cluster. Raises HttpError(409) with the reason why it cannot be."""
        try:
            await change
        except (MinibrokerError, ValueError, TimeoutError, RuntimeError) as error:
            raise HttpError(HTTPStatus.CONFLICT, str(error)) from None


_NOT_RUNNING: Final = (HTTPStatus.SERVICE_UNAVAILABLE,)
_OF_WAITS: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.GATEWAY_TIMEOUT)
OPERATIONS: Final = (
    ControlOperation(
        "overview",
        "GET",
        "/",
        "What there is; HTML for a browser",
        ControlApi.overview,
        shapes.Overview,
    ),
    ControlOperation(
        "live",
        "GET",
        "/health/live",
        "The process answers",
        ControlApi.live,
        shapes.Live,
        is_open=True,
    ),
    ControlOperation(
        "ready",
        "GET",
        "/health/ready",
        "Whether a client would succeed now",
        ControlApi.ready,
        shapes.Ready,
        failures=_NOT_RUNNING,
        is_open=True,
    ),
    ControlOperation(
        "metrics",
        "GET",
        "/metrics",
        "Prometheus' text format",
        ControlApi.metrics,
        None,
        media_type="text/plain",
    ),
    ControlOperation(
        "topics",
        "GET",
        "/topics",
        "Topics with their partitions and offsets",
        ControlApi.topics,
        list_of(shapes.TopicView),
        failures=_NOT_RUNNING,
    ),
    ControlOperation(
        "read_records",
        "GET",
        "/topics/{topic}/records",
        "Records of a topic, from an offset or a time on, or the last ones",
        ControlApi.read_records,
        shapes.RecordsView,
        query=shapes.RecordsQuery,
        failures=(
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            HTTPStatus.TOO_MANY_REQUESTS,
            *_NOT_RUNNING,
        ),
        has_data=True,
    ),
    ControlOperation(
        "write_records",
        "POST",
        "/topics/{topic}/records",
        "Write records, each as a client with acks=all",
        ControlApi.write_records,
        shapes.WrittenRecords,
        body=shapes.NewRecords,
        raw_body=shapes.RawRecords,
        failures=(
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            *_NOT_RUNNING,
            HTTPStatus.GATEWAY_TIMEOUT,
        ),
        body_bytes_max=RECORDS_BYTES_MAX,
    ),
    ControlOperation(
        "wait_for_consumer",
        "GET",
        "/topics/{topic}/consumer",
        "Wait until consumers fetch from a topic's partitions, with a group or without",
        ControlApi.wait_for_consumer,
        list_of(shapes.CommittedView),
        query=shapes.ConsumerQuery,
        failures=_OF_WAITS,
    ),
    ControlOperation(
        "groups",
        "GET",
        "/groups",
        "Groups of this coordinator, with their committed offsets",
        ControlApi.groups,
        list_of(shapes.GroupView),
        failures=_NOT_RUNNING,
    ),
    ControlOperation(
        "wait_until_ready",
        "GET",
        "/groups/{group}/ready",
        "Wait until a group is stable, each member has its partitions and has fetched from them",
        ControlApi.wait_until_ready,
        list_of(shapes.MemberView),
        query=shapes.ReadyQuery,
        failures=_OF_WAITS,
    ),
    ControlOperation(
        "wait_until_read",
        "GET",
        "/groups/{group}/read",
        "Wait until a group has read every record of its topics",
        ControlApi.wait_until_read,
        list_of(shapes.CommittedView),
        query=shapes.ReadQuery,
        failures=_OF_WAITS,
    ),
    ControlOperation(
        "load_seed",
        "POST",
        "/seeds",
        "Load a seed: topics, records and offsets, in JSON lines or YAML",
        ControlApi.load_seed,
        shapes.LoadedView,
        body=str,
        body_types=BODY_TYPES,
        failures=(
            HTTPStatus.CONFLICT,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            *_NOT_RUNNING,
        ),
        body_bytes_max=SEED_BYTES_MAX,
    ),
    ControlOperation(
        "requests",
        "GET",
        "/requests",
        "The last requests, a JSON object per line, oldest first",
        ControlApi.requests,
        shapes.RequestView,
        query=shapes.RequestsQuery,
        media_type=JSON_LINES,
    ),
    ControlOperation(
        "list_faults",
        "GET",
        "/faults",
        "The faults that were added here",
        ControlApi.list_faults,
        list_of(shapes.FaultView),
    ),
    ControlOperation(
        "add_fault",
        "POST",
        "/faults",
        "Add a fault",
        ControlApi.add_fault,
        shapes.FaultView,
        body=shapes.FaultRule,
        status=HTTPStatus.CREATED,
        failures=(HTTPStatus.CONFLICT, *_NOT_RUNNING),
    ),
    ControlOperation(
        "clear_faults",
        "DELETE",
        "/faults",
        "Remove all faults",
        ControlApi.clear_faults,
        list_of(shapes.FaultView),
    ),
    ControlOperation(
        "show_fault",
        "GET",
        "/faults/{id}",
        "One fault, and how many requests it has met",
        ControlApi.show_fault,
        shapes.FaultView,
        failures=(HTTPStatus.NOT_FOUND,),
    ),
    ControlOperation(
        "remove_fault",
        "DELETE",
        "/faults/{id}",
        "Remove a fault; what it held goes on",
        ControlApi.remove_fault,
        shapes.FaultView,
        failures=(HTTPStatus.NOT_FOUND,),
    ),
    ControlOperation(
        "clock", "GET", "/clock", "The broker's clock", ControlApi.clock, shapes.ClockView
    ),
    ControlOperation(
        "advance_clock",
        "POST",
        "/clock",
        "Move the clock on",
        ControlApi.advance,
        shapes.ClockView,
        body=shapes.Advance,
    ),
    ControlOperation(
        "reset",
        "POST",
        "/reset",
        "Back to the state after the start: no faults, no data, the machine's time",
        ControlApi.reset,
        shapes.ClockView,
    ),
    ControlOperation(
        "cluster",
        "GET",
        "/cluster",
        "The cluster as this broker knows it, and the partitions that lack a replica",
        ControlApi.cluster,
        shapes.ClusterView,
        failures=_NOT_RUNNING,
    ),
    ControlOperation(
        "become_controller",
        "POST",
        "/cluster/controller",
        "Make this broker the controller",
        ControlApi.become_controller,
        shapes.ClusterView,
        body=shapes.Nothing,
        failures=(HTTPStatus.CONFLICT, *_NOT_RUNNING),
    ),
    ControlOperation(
        "make_leader",
        "POST",
        "/cluster/leader",
        "Make a broker the leader of a partition",
        ControlApi.make_leader,
        shapes.ClusterView,
        body=shapes.LeaderChoice,
        failures=(HTTPStatus.CONFLICT, *_NOT_RUNNING),
    ),
    ControlOperation(
        "openapi", "GET", "/openapi.json", "This API for programs", ControlApi.openapi, dict
    ),
)
"""Every operation, in the order of the reference page."""
_ROUTES: Final = Routes(OPERATIONS)
