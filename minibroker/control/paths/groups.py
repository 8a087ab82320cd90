"""Paths of groups."""

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


async def groups(scope: ControlScope, _: ControlCall) -> Response:
    """Return the groups."""
    return Response(HTTPStatus.OK, await scope.slices.join(views.groups_of(scope.brokers)))


async def wait_until_ready(scope: ControlScope, call: ControlCall) -> Response:
    """Wait until a group is ready."""
    query: shapes.ReadyQuery = call.query
    waits = scope.nodes.waits.for_group(call.part, query.members, query.timeout_ms / 1000)
    members = await scope.waiting.result(call.request, waits)
    return answer([views.member_of(member) for member in members])


async def wait_until_read(scope: ControlScope, call: ControlCall) -> Response:
    """Wait until a group has read everything."""
    query: shapes.ReadQuery = call.query
    waits = scope.nodes.waits.until_read(
        call.part, fetched=query.fetched, timeout_s=query.timeout_ms / 1000
    )
    return answer(views.offsets_of(await scope.waiting.result(call.request, waits)))


OPERATIONS: Final = (
    ControlOperation(
        "groups",
        "GET",
        "/groups",
        "Groups of this coordinator, with their committed offsets",
        groups,
        list_of(shapes.GroupView),
        failures=NOT_RUNNING,
    ),
    ControlOperation(
        "wait_until_ready",
        "GET",
        "/groups/{group}/ready",
        "Wait until a group is stable, each member has its partitions and has fetched from them",
        wait_until_ready,
        list_of(shapes.MemberView),
        query=shapes.ReadyQuery,
        failures=OF_WAITS,
    ),
    ControlOperation(
        "wait_until_read",
        "GET",
        "/groups/{group}/read",
        "Wait until a group has read every record of its topics",
        wait_until_read,
        list_of(shapes.CommittedView),
        query=shapes.ReadQuery,
        failures=OF_WAITS,
    ),
)
