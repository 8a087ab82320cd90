"""Applies faults to what one broker sends to others: links that are cut, slow fetches, a pause.

    PeerClient.call ─► PeerFaults.call ─► cut off? ─ yes ─► ConnectionError
                                      └─► paused, slow? ─► wait ─► sent, and its answer

Only the sender's side acts. So a link is cut in one way or in both, and it makes no difference
whether the other broker is a minibroker.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from minibroker.kafka.protocol.api_keys import FETCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.broker.cluster.cluster import Send
    from minibroker.broker.timers import Timers
    from minibroker.rig.faults import Fault, FaultSet


class PeerFaults:
    """The `PeerInterceptor` of one broker under test. Belongs to its loop."""

    def __init__(self, broker_id: int, faults: FaultSet, timers: Timers) -> None:
        """`timers`: of the broker, for what is delayed."""
        # Constant after construction.
        self._broker_id = broker_id
        self._faults = faults
        self._timers = timers
        self._broker_by_task: dict[asyncio.Task[Any], int] = {}
        """Request on its way → the broker that it goes to."""
        self._cut: set[asyncio.Task[Any]] = set()
        """Requests whose answer is lost, because a link was cut meanwhile."""
        self._resumed: asyncio.Event | None = None
        """Set at the end of a pause; None while there is none."""

    def hold(self, *, is_held: bool) -> None:
        """Send nothing and take no answer while held, like a stopped process."""
        if is_held and self._resumed is None:
            self._resumed = asyncio.Event()
        elif not is_held and self._resumed is not None:
            self._resumed.set()
            self._resumed = None

    def note(self, fault: Fault) -> None:
        """Take a new rule into account: what is on its way over a link that is cut gets lost."""
        if fault.broker != "cut_off":
            return
        for task, receiver in list(self._broker_by_task.items()):
            if fault.blocks(self._broker_id, receiver):
                self._cut.add(task)
                task.cancel()

    async def call(self, broker_id: int, request: Any, send: Send) -> Any:
        """Send a request and return its answer, as the rules say. Raises OSError."""
        await self._until_resumed(broker_id)
        if request.API_KEY == FETCH:
            for fault in self._rules("slow_follower", broker_id):
                fault.count()
                await self._pass(fault.delay_ms)
        self._check_link(broker_id)
        answer = await self._answer(broker_id, send)
        await self._until_resumed(broker_id)
        return answer

    async def _answer(self, broker_id: int, send: Send) -> Any:
        task = asyncio.get_running_loop().create_task(send())
        self._broker_by_task[task] = broker_id
        try:
            return await task
        except asyncio.CancelledError:
            if task in self._cut:
                self._check_link(broker_id)
                raise ConnectionError(
                    f"the link to broker {broker_id} was cut by a fault"
                ) from None
            raise
        finally:
            del self._broker_by_task[task]
            self._cut.discard(task)

    def _check_link(self, broker_id: int) -> None:
        """Raise ConnectionError if the link to this broker is cut now."""
        for fault in self._rules("cut_off", broker_id):
            fault.count()
            raise ConnectionError(f"the link to broker {broker_id} is cut by a fault")

    def _rules(self, kind: str, receiver: int) -> Iterator[Fault]:
        for fault in self._faults:
            if fault.broker == kind and fault.blocks(self._broker_id, receiver):
                yield fault

    async def _pass(self, delay_ms: float) -> None:
        """Wait for so long, by the broker's clock."""
        passed = asyncio.Event()
        timer = self._timers.after(delay_ms, passed.set)
        try:
            await passed.wait()
        finally:
            timer.cancel()

    async def _until_resumed(self, broker_id: int) -> None:
        """Wait for the end of a pause; a request of this broker that waits is a hit."""
        if self._resumed is not None:
            for fault in self._rules("paused", broker_id):
                fault.count()
        while self._resumed is not None:
            await self._resumed.wait()
