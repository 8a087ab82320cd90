"""Paths of faults. A proxy serves them, too: they need no broker."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from minibroker.control import shapes
from minibroker.control.bodies import answer
from minibroker.control.messages import HttpError
from minibroker.control.operations import NOT_RUNNING, ControlOperation, list_of

if TYPE_CHECKING:
    from minibroker.control.fault_rules import FaultRules, FaultTarget
    from minibroker.control.messages import Response
    from minibroker.control.operations import ControlCall


class FaultScope(Protocol):
    """The parts that these operations use."""

    faults: FaultRules

    def find(self, broker_id: int | None) -> FaultTarget:
        """Return the target of this id, None: the one behind this API. Raises HttpError(404)."""

    def check_running(self) -> None:
        """Raise HttpError(503) while there is nothing that a fault could happen to."""


async def list_faults(scope: FaultScope, _: ControlCall) -> Response:
    """Return the faults of this API."""
    return answer(scope.faults.views())


async def add_fault(scope: FaultScope, call: ControlCall) -> Response:
    """Add a fault."""
    return await _add(scope, call, scope.find(None))


async def add_fault_to(scope: FaultScope, call: ControlCall) -> Response:
    """Add a fault to another broker."""
    if not (call.part.isdecimal() and len(call.part) < 11):
        raise HttpError(HTTPStatus.NOT_FOUND, f"there is no broker {call.part:.100}")
    return await _add(scope, call, scope.find(int(call.part)))


async def _add(scope: FaultScope, call: ControlCall, target: FaultTarget) -> Response:
    scope.check_running()
    number, view = await scope.faults.add(call.body, target)
    response = answer(view, HTTPStatus.CREATED)
    return response._replace(headers=(("Location", f"/faults/{number}"),))


async def list_fault_fields(_: FaultScope, _call: ControlCall) -> Response:
    """Return the fields of a fault."""
    return answer(shapes.fault_fields())


async def show_fault(scope: FaultScope, call: ControlCall) -> Response:
    """Return a fault."""
    return answer(scope.faults.show(call.part))


async def remove_fault(scope: FaultScope, call: ControlCall) -> Response:
    """Remove a fault."""
    return answer(await scope.faults.remove(call.part))


async def clear_faults(scope: FaultScope, _: ControlCall) -> Response:
    """Remove all faults."""
    await scope.faults.clear(scope.find(None))
    return answer([])


OPERATIONS: Final = (
    ControlOperation(
        "list_faults",
        "GET",
        "/faults",
        "The faults that were added here",
        list_faults,
        list_of(shapes.FaultView),
    ),
    ControlOperation(
        "add_fault",
        "POST",
        "/faults",
        "Add a fault",
        add_fault,
        shapes.FaultView,
        body=shapes.FaultRule,
        status=HTTPStatus.CREATED,
        failures=(HTTPStatus.CONFLICT, *NOT_RUNNING),
    ),
    ControlOperation(
        "clear_faults",
        "DELETE",
        "/faults",
        "Remove all faults",
        clear_faults,
        list_of(shapes.FaultView),
    ),
    ControlOperation(
        "fault_fields",
        "GET",
        "/faults/fields",
        "The fields of a fault, and the names that each may be",
        list_fault_fields,
        list_of(shapes.FaultField),
    ),
    ControlOperation(
        "show_fault",
        "GET",
        "/faults/{id}",
        "One fault, and how many requests it has met",
        show_fault,
        shapes.FaultView,
        failures=(HTTPStatus.NOT_FOUND,),
    ),
    ControlOperation(
        "remove_fault",
        "DELETE",
        "/faults/{id}",
        "Remove a fault; what it held goes on",
        remove_fault,
        shapes.FaultView,
        failures=(HTTPStatus.NOT_FOUND,),
    ),
)
OF_BROKERS: Final = (
    ControlOperation(
        "add_fault_to",
        "POST",
        "/brokers/{id}/faults",
        "Add a fault to a broker of this process",
        add_fault_to,
        shapes.FaultView,
        body=shapes.FaultRule,
        status=HTTPStatus.CREATED,
        failures=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, *NOT_RUNNING),
    ),
)
"""Operations of a cluster, which a proxy has not."""
