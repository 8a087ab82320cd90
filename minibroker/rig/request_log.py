"""The log of requests: one line for each request, with the first error of its answer.

`FaultInterceptor` writes it in a broker under test, and a proxy has one, too. Other brokers have no
such log.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from itertools import islice
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from minibroker.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REQUESTS_MAX: Final = 10_000
"""Most requests that are kept."""
_SIZE_FIELD_BYTES: Final = 4
_COUNTER_BEGAN_MS: Final = SystemClock().now_ms() - perf_counter_ns() / 1_000_000
"""The machine's wall clock when the counter of nanoseconds was 0: times of requests are finer than
milliseconds, and those of all brokers of the process can be compared."""


class LoggedCall(Protocol):
    """A request in a broker, as the log needs it: `server.call.Call`."""

    handler: Any
    version: int
    client_id: str | None
    client_address: str
    at_ms: int
    started_ns: int
    correlation_id: int
    request_bytes: int
    answer_bytes: int | None
    subject: str
    effect: str | None


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
    correlation_id: int = 0
    request_bytes: int = 0
    """Bytes of the request, without those of its length."""
    answer_bytes: int | None = None
    """Bytes of the answer, without those of its length; None: nothing was sent."""
    subject: str = ""
    """Its topics, partitions, offsets, group, transaction, and those of the answer; nothing where
    the log describes it when it is asked for."""
    fault: str | None = None
    """The effect of the fault that met it, None without one."""
    machine_ms: float = 0.0
    """The machine's wall clock when it was handled, whatever the broker's shows."""
    broker: str = ""
    """Address of the broker behind a proxy; empty in the log of a broker itself."""
    number: int = 0
    """Its place among the requests that ended since the start, from 1 on."""

    def __str__(self) -> str:
        outcome = self.error or "ok"
        return (
            f"{self.api} v{self.version} from {self.client_id or 'no client id'} "
            f"({self.client_address}): {outcome}, {self.duration_ms:.1f} ms"
        )


class UnansweredRequest(NamedTuple):
    """One request that waits for its answer."""

    request: SeenRequest
    """As it stands now: number 0, the duration until now, no subject."""
    describe: Callable[[], str]
    """Returns its subject; nothing where that would take long. Called when it is shown."""


class RequestLog(deque[SeenRequest]):
    """The last requests, in the order in which they ended. Belongs to the broker's loop.

    While somebody follows it (`follow`), a request that waits for its answer is in `open`, and the
    last requests are described when they are asked for (`describe`).
    """

    def __init__(self) -> None:
        super().__init__(maxlen=REQUESTS_MAX)
        self._waiting: set[asyncio.Event] = set()
        self._followers = 0
        self.keeps_every = False
        """True if `describe` needs each request, not only the first ones of each API in a while."""
        self.describe: Callable[[int], str] = lambda _: ""
        """Returns the subject of a request by its number, as long as it is remembered."""
        self.remembers: Callable[[int], bool] = lambda _: False
        """Returns whether `describe` knows a request, by its number."""
        self.on_left: Callable[[], object] = bool
        """Called when nobody follows the log any more."""
        self.total = 0
        """Requests that have ended since the start; a `clear` does not change it."""
        self.open: dict[LoggedCall, None] = {}
        """Requests without an answer, oldest first, while the log is followed."""
        self.describe_open: Callable[[LoggedCall], str] = lambda _: ""
        """Returns the subject of a request in `open`."""
        self.open_requests: Callable[[], Iterator[UnansweredRequest]] = self._open_requests
        """Returns the requests without an answer, oldest first. A proxy has its own."""

    def _open_requests(self) -> Iterator[UnansweredRequest]:
        for call in list(self.open):
            request = seen_request(call, None, 0)
            yield UnansweredRequest(request, partial(self.describe_open, call))

    @property
    def is_followed(self) -> bool:
        """Return whether requests are kept for `describe`."""
        return self._followers > 0

    def follow(self, *, every: bool = False) -> None:
        """Keep what `describe` needs of requests from now on, until a `leave` for each `follow`.

        `every`: of each request, until nobody follows the log.
        """
        self._followers += 1
        self.keeps_every |= every

    def leave(self) -> None:
        """End one `follow`."""
        self._followers -= 1
        if not self._followers:
            self.keeps_every = False
            self.open.clear()
            self.on_left()

    def note(self, request: SeenRequest) -> None:
        """Add a request, and wake those who wait for it."""
        self.append(request)
        self.total += 1
        self.tell()

    def tell(self) -> None:
        """Wake those who wait for news: a request has ended, or one waits for its answer."""
        for event in self._waiting:
            event.set()

    def note_call(self, call: LoggedCall, error: str | None) -> None:
        """Note that a request is answered now, with this error or without one (None)."""
        self.open.pop(call, None)
        self.note(seen_request(call, error, self.total + 1))

    def since(self, total: int, limit: int) -> tuple[list[SeenRequest], int]:
        """Return the requests behind the first `total`, the last `limit` of them; and the number of
        those that are left out.
        """
        new = max(0, self.total - total)
        requests = list(islice(reversed(self), min(new, limit)))[::-1]
        return requests, new - len(requests)

    def wake(self, event: asyncio.Event) -> None:
        """Set an event with each request, until `let_sleep`."""
        self._waiting.add(event)

    def let_sleep(self, event: asyncio.Event) -> None:
        """Set the event no more."""
        self._waiting.discard(event)

    async def wait_for(
        self, is_wanted: Callable[[SeenRequest], bool], count: int, timeout_s: float
    ) -> list[SeenRequest]:
        """Return all wanted requests once there are `count`.

        Raises TimeoutError, which says how many there are.
        """
        event = asyncio.Event()
        self.wake(event)
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
            self.let_sleep(event)


def seen_request(call: LoggedCall, error: str | None, number: int) -> SeenRequest:
    """Return a request as it stands in the log; its duration is that until now."""
    size_bytes = call.answer_bytes
    return SeenRequest(
        api=call.handler.name,
        version=call.version,
        client_id=call.client_id,
        client_address=call.client_address,
        at_ms=call.at_ms,
        duration_ms=(perf_counter_ns() - call.started_ns) / 1_000_000,
        error=error,
        correlation_id=call.correlation_id,
        request_bytes=call.request_bytes,
        answer_bytes=size_bytes - _SIZE_FIELD_BYTES if size_bytes else None,
        subject=call.subject,
        fault=call.effect,
        machine_ms=_COUNTER_BEGAN_MS + call.started_ns / 1_000_000,
        number=number,
    )
