"""An event loop on simulated time, and machines: all code of one broker, which stops at once.

The loop is asyncio's own. Where that would wait for the system, the time jumps to the next call.
So a run needs no time to wait, and the same seed gives the same run.

A call belongs to the machine in whose context it was made; tasks and calls inherit it. When a
machine stops, none of its code runs any more, as at a kill or a power cut.

Calls for the same time run in the order in which they were made. A session and a connection count
on that: what may not overtake something before it arrives at the same time. asyncio keeps its calls
in a heap, which has no order of equal times.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar, copy_context
from heapq import heappush
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextvars import Context

    from tests.simulation.network import Network

CLIENT = -1
"""The place of all clients in the network; they are cut off from nobody."""
TURN_S = 0.000_001
"""The time that one turn of the loop takes: who looks at the clock again and again sees it move."""
START_MS = 1_700_000_000_000
MACHINE: ContextVar[Machine | None] = ContextVar("machine", default=None)


class StalledError(Exception):
    """No call is left: everything waits for something that nobody does."""


class Machine:
    """The place of one broker's process, from start to stop."""

    def __init__(self, broker_id: int, network: Network) -> None:
        self.broker_id = broker_id
        self.network = network
        self.is_stopped = False
        self.tasks: list[object] = []
        """Work of its threads that is not done yet, in order."""
        self.context: Context = copy_context()
        self.context.run(MACHINE.set, self)


class _Call(asyncio.TimerHandle):
    """A call for a time, behind the calls for the same time that were made before."""

    __slots__ = ("_order",)

    def __init__(self, order: int, when: float, *parts: Any) -> None:
        super().__init__(when, *parts)
        self._order = order

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, _Call):
            return NotImplemented
        return (self.when(), self._order) < (other.when(), other._order)


class SimulatedLoop(asyncio.BaseEventLoop):
    """Time in seconds from 0. `on_turn` is called between two turns."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._orders = count()
        self._selector = self
        self.on_turn: Callable[[], None] = lambda: None
        self.turns = 0
        self.network: Network

    def time(self) -> float:
        return self._now_s

    def select(self, timeout_s: float | None) -> list[object]:
        """Let the time pass to the next call. Called by asyncio once a turn."""
        self.on_turn()
        self.turns += 1
        self._now_s += TURN_S
        if self._ready:  # type: ignore[attr-defined]
            return []
        if timeout_s is None:
            raise StalledError
        scheduled = self._scheduled  # type: ignore[attr-defined]
        if scheduled:
            self._now_s = max(self._now_s, scheduled[0].when())
        return []

    def _process_events(self, _events: list[object]) -> None:
        """Do nothing: no file descriptor is watched."""

    def _write_to_self(self) -> None:
        """Do nothing: nobody wakes this loop from a thread."""

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        handle = super().call_soon(callback, *args, context=context)
        if _is_stopped(handle):
            handle.cancel()
        return handle

    def call_at(
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        handle = _Call(next(self._orders), when, callback, args, self, context)
        heappush(self._scheduled, handle)  # type: ignore[attr-defined]
        handle._scheduled = True  # type: ignore[attr-defined]
        if _is_stopped(handle):
            handle.cancel()
        return handle

    async def pass_time(self, seconds: float) -> None:
        """Return when so much simulated time has passed."""
        over = self.create_future()
        timer = self.call_later(seconds, over.set_result, None)
        try:
            await over
        finally:
            timer.cancel()

    def stop_machine(self, machine: Machine) -> None:
        """Have no code of this machine run any more."""
        machine.is_stopped = True
        machine.tasks.clear()
        for handle in (*self._ready, *self._scheduled):  # type: ignore[attr-defined]
            if _machine_of(handle) is machine:
                handle.cancel()

    async def create_connection(  # type: ignore[override]
        self, factory: Any, host: str, port: int, *, ssl: None = None
    ) -> Any:
        """Connect to a broker, from the machine of this code or from a client."""
        assert ssl is None
        machine = MACHINE.get()
        place = machine.broker_id if machine is not None else CLIENT
        return await self.network.connect(factory, place, port)

    def abandon(self) -> None:
        """End: tasks that wait are dropped without a word."""
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._ready.clear()  # type: ignore[attr-defined]
        self._scheduled.clear()  # type: ignore[attr-defined]
        self.set_exception_handler(lambda _loop, _context: None)
        self.close()

    def _check_closed(self) -> None:
        """Do nothing: what is left of stopped machines may still call, and nothing comes of it."""


def _machine_of(handle: Any) -> Machine | None:
    return handle._context.get(MACHINE)  # type: ignore[no-any-return]


def _is_stopped(handle: Any) -> bool:
    machine = _machine_of(handle)
    return machine is not None and machine.is_stopped


class SimulatedClock:
    """The clock of the brokers: the loop's time."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return START_MS + int(self._loop.time() * 1000)

    def monotonic_s(self) -> float:
        return self._loop.time()

    def on_move(self, listener: Callable[[float], None]) -> None:
        """Do nothing: nobody moves this clock by hand."""


class SimulatedWorker:
    """`minibroker.broker.worker.Worker` whose tasks run on the loop a little later, in order.

    Its two methods stand in the place of the real ones. A machine that stops loses its open tasks.
    """

    @staticmethod
    def submit(worker: Any, task: Callable[[], None]) -> None:
        """Run a task when the thread would come to it."""
        machine = MACHINE.get()
        assert machine is not None
        queue = worker.__dict__.setdefault("simulated", [])
        queue.append(task)

        def run() -> None:
            if queue and not machine.is_stopped:
                worker._run(queue.pop(0))

        machine.network.loop.call_later(machine.network.disk_delay_s(), run)

    @staticmethod
    def close(worker: Any) -> None:
        """Run what is left, and take no more."""
        worker._loop = None
        worker._is_closed = True
        queue = worker.__dict__.get("simulated", [])
        while queue:
            worker._run(queue.pop(0))


class OrderedSet(dict[Any, None]):
    """A set with the order of insertion, in the place of one whose order is chance."""

    def add(self, value: object) -> None:
        self[value] = None

    def discard(self, value: object) -> None:
        self.pop(value, None)

    def update(self, values: Iterable[object]) -> None:  # type: ignore[override]
        for value in values:
            self[value] = None

    def difference_update(self, values: Iterable[object]) -> None:
        for value in list(values):
            self.pop(value, None)
