"""Paths of the clock, and of the reset, which puts it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.control import bodies, shapes
from minibroker.control.bodies import answer
from minibroker.control.operations import ControlOperation

if TYPE_CHECKING:
    from minibroker.control.messages import Response
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope


async def clock(scope: ControlScope, _: ControlCall) -> Response:
    """Return the broker's time."""
    return answer(shapes.ClockView(now_ms=scope.node.clock.now_ms()))


async def advance(scope: ControlScope, call: ControlCall) -> Response:
    """Move the clock on."""
    scope.node.clock.move(bodies.advance_ms(call.body))
    return await clock(scope, call)


async def reset(scope: ControlScope, call: ControlCall) -> Response:
    """Return to the state after the start."""
    scope.faults.forget()
    await (scope.nodes.reset() if len(scope.nodes.all) > 1 else scope.node.reset())
    return await clock(scope, call)


OPERATIONS: Final = (
    ControlOperation("clock", "GET", "/clock", "The broker's clock", clock, shapes.ClockView),
    ControlOperation(
        "advance_clock",
        "POST",
        "/clock",
        "Move the clock on",
        advance,
        shapes.ClockView,
        body=shapes.Advance,
    ),
    ControlOperation(
        "reset",
        "POST",
        "/reset",
        "Back to the state after the start: no faults, no data, the machine's time",
        reset,
        shapes.ClockView,
    ),
)
