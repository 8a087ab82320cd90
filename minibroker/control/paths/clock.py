"""Paths of the clock, and of the reset, which puts it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.control import bodies, shapes
from minibroker.control.bodies import answer
from minibroker.control.operations import NOT_RUNNING, ControlOperation, list_of

if TYPE_CHECKING:
    from minibroker.control.messages import Response
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope


async def clock(scope: ControlScope, _: ControlCall) -> Response:
    """Return the broker's time."""
    node_clock = scope.node.clock
    return answer(shapes.ClockView(now_ms=node_clock.now_ms(), ahead_ms=node_clock.ahead_ms))


async def upcoming(scope: ControlScope, call: ControlCall) -> Response:
    """Return the calls that come next."""
    from minibroker.rig.upcoming import upcoming_calls  # noqa: PLC0415  few starts need it

    scope.check_running()
    query: shapes.TimersQuery = call.query
    now_ms = scope.node.clock.now_ms()
    calls = [
        (upcoming_call.in_ms, node.broker_id, upcoming_call.text)
        for node in scope.running
        for upcoming_call in upcoming_calls(node.app, query.limit)
    ]
    views: dict[tuple[int, int, str], shapes.TimerView] = {}
    for in_ms, broker_id, text in sorted(calls):
        view = views.setdefault(
            (broker_id, int(in_ms // 1000), text),
            shapes.TimerView(
                broker_id=broker_id,
                in_ms=int(in_ms),
                at_ms=now_ms + int(in_ms),
                text=text,
                count=0,
            ),
        )
        view.count += 1
    return answer(list(views.values())[: query.limit])


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
        "upcoming",
        "GET",
        "/clock/timers",
        "The calls that the clock makes next: time-outs, checks, the ends of delays",
        upcoming,
        list_of(shapes.TimerView),
        query=shapes.TimersQuery,
        failures=NOT_RUNNING,
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
