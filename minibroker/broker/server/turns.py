"""Data requests give way to those of the controller: the loop looks at its sockets in between.

Beside the stations of a request. A broker that is busy finds many sockets with bytes in one turn of
its loop. While a controller is connected, requests of other connections are handled in parts of
`DATA_PART_MS`. If a part is over and the loop has not turned since it began, connections queue, and
go on when the loop has looked at its sockets. A request of the controller is handled as soon as its
bytes are seen. So it waits for two parts and the run in hand at most, however many data requests
came before it.

Kafka has a thread of its own for this, on the listener `control.plane.listener.name` (KIP-291).
Without a controller that is connected a request pays one comparison.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

DATA_PART_MS: Final = 2
"""Time in which runs of data requests may begin; the first one of a part always may."""


class DataTurns:
    """Shared by all connections of a broker. Belongs to the loop."""

    __slots__ = ("_call_soon", "_ends_ns", "_has_turned", "_now_ns", "_waiting", "controllers")

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        now_ns: Callable[[], int] = perf_counter_ns,
    ) -> None:
        """`call_soon`: the loop's. `now_ns`: a clock that only grows."""
        self._call_soon = call_soon
        self._now_ns = now_ns
        self.controllers = 0
        """Open connections of controllers; their transports count them."""
        self._ends_ns = 0
        """End of the part."""
        self._has_turned = True
        """True once the loop has turned since the part began."""
        self._waiting: dict[Callable[[], None], None] = {}
        """Called when the loop has looked at its sockets, in this order: each asks again."""

    def may_run(self, ask_again: Callable[[], None]) -> bool:
        """Return whether a run of data requests may begin now; else call `ask_again` when the loop
        has looked at its sockets.
        """
        now_ns = self._now_ns()
        if now_ns >= self._ends_ns or self._waiting:
            if self._waiting or not self._has_turned:
                self._waiting[ask_again] = None
                return False
            self._ends_ns = now_ns + DATA_PART_MS * 1_000_000
            self._has_turned = False
            self._call_soon(self._turn)
        return True

    def _turn(self) -> None:
        """Note that the loop turns. It calls this before it looks at its sockets."""
        self._has_turned = True
        if self._waiting:
            self._call_soon(self._go_on)

    def _go_on(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for ask_again in waiting:
            ask_again()
