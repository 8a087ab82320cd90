"""Data requests give way to those of the controller: a part of each turn of the loop is theirs.

Beside the stations of a request. A broker that is busy finds many sockets with bytes in one turn of
its loop. While a controller is connected, requests of other connections are handled for
`DATA_TURN_MS` of a turn. Connections whose time has not come wait in a queue, and the loop looks at
its sockets again before it goes on with them. A request of the controller is handled as soon as its
bytes are seen. So it waits for two parts of data requests and for the run in hand, however many
data requests wait, and one that came first does not keep it back.

Kafka has a thread of its own for this, on the listener `control.plane.listener.name` (KIP-291).
Without a controller that is connected a request pays one comparison.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

DATA_TURN_MS: Final = 2
"""Time of a turn in which runs of data requests may begin; the first one always may."""


class DataTurns:
    """Shared by all connections of a broker. Belongs to the loop."""

    __slots__ = ("_call_soon", "_ends_ns", "_now_ns", "_waiting", "controllers")

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
        self._ends_ns: int | None = None
        """End of the part of this turn; None before its first run."""
        self._waiting: dict[Callable[[], None], None] = {}
        """Called in the next turn, in this order: each asks again."""

    def may_run(self, ask_again: Callable[[], None]) -> bool:
        """Return whether a run of data requests may begin now; else call `ask_again` in the next
        turn.
        """
        now_ns = self._now_ns()
        if self._ends_ns is None:
            self._ends_ns = now_ns + DATA_TURN_MS * 1_000_000
            self._call_soon(self._next_turn)
        elif now_ns >= self._ends_ns or self._waiting:
            self._waiting[ask_again] = None
            return False
        return True

    def _next_turn(self) -> None:
        self._ends_ns = None
        waiting, self._waiting = self._waiting, {}
        for ask_again in waiting:
            ask_again()
