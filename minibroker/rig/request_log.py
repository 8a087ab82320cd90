"""The log of requests: one line for each request, with the first error of its answer.

`FaultInterceptor` writes it in a broker under test; other brokers have no such log.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.server.call import Call

REQUESTS_MAX: Final = 10_000
"""Most requests that are kept."""


class SeenRequest(NamedTuple):
    """One request that was handled."""

    api: str
    """Kafka's name of the request: `Produce`, `JoinGroup`."""
    version: int
    client_id: str | None
    client_address: str
    at_ms: int
    """The broker's wall clock when it was handled."""
    duration_ms: float
    """Time until its answer was ready; a long poll's wait is part of it."""
    error: str | None
    """The name of the first error in the answer, None without an error."""

    def __str__(self) -> str:
        outcome = self.error or "ok"
        return (
            f"{self.api} v{self.version} from {self.client_id or 'no client id'} "
            f"({self.client_address}): {outcome}, {self.duration_ms:.1f} ms"
        )


class RequestLog(deque[SeenRequest]):
    """The last requests, oldest first. Belongs to the broker's loop."""

    def __init__(self) -> None:
        super().__init__(maxlen=REQUESTS_MAX)
        self._waiting: set[asyncio.Event] = set()

    def note(self, request: SeenRequest) -> None:
        """Add a request, and wake those who wait for it."""
        self.append(request)
        for event in self._waiting:
            event.set()

    def note_call(self, call: Call, error: str | None) -> None:
        """Note that a request is answered now, with this error or without one (None)."""
        elapsed_ms = (perf_counter_ns() - call.started_ns) / 1_000_000
        name, version, client_id = call.handler.name, call.version, call.client_id
        self.note(
            SeenRequest(
                name, version, client_id, call.client_address, call.at_ms, elapsed_ms, error
            )
        )

    async def wait_for(
        self, is_wanted: Callable[[SeenRequest], bool], count: int, timeout_s: float
    ) -> list[SeenRequest]:
        """Return all wanted requests once there are `count`.

        Raises TimeoutError, which says how many there are.
        """
        event = asyncio.Event()
        self._waiting.add(event)
        requests: list[SeenRequest] = []
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    event.clear()
                    requests = [request for request in self if is_wanted(request)]
                    if len(requests) >= count:
                        return requests
                    await event.wait()
        except TimeoutError:
            raise TimeoutError(
                f"waited {timeout_s:g} s for {count} such requests, {len(requests)} came"
            ) from None
        finally:
            self._waiting.discard(event)
