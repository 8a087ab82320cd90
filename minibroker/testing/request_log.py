"""The log of requests: one line per request, as the dispatcher handled it.

`ObservedDispatcher` takes the place of the server's dispatcher in a broker under test; a broker
that serves alone never pays for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.error_codes import ErrorCode
from minibroker.errors import as_kafka_error
from minibroker.protocol.api_keys import APIS
from minibroker.protocol.header import parse_request_header
from minibroker.protocol.message import Message
from minibroker.server.dispatch import Answer, Dispatcher, Waiting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from minibroker.handlers.context import RequestContext, Services
    from minibroker.handlers.registry import Handler

REQUESTS_MAX: Final = 10_000
"""So many of the last requests are kept."""


class SeenRequest(NamedTuple):
    """One request that was handled."""

    api: str
    """Kafka's name of it: `Produce`, `JoinGroup`."""
    version: int
    client_id: str | None
    client_address: str
    at_ms: int
    """The broker's wall clock when it was handled."""
    duration_ms: float
    """Until its answer was ready; a long poll's wait is part of it."""
    error: str | None
    """The first error in the answer by its name, None: there is none."""

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
        """One more; wakes who waits for it."""
        self.append(request)
        for event in self._waiting:
            event.set()

    async def wait_for(
        self, is_wanted: Callable[[SeenRequest], bool], count: int, timeout_s: float
    ) -> list[SeenRequest]:
        """All that are wanted, once there are `count`. Raises TimeoutError, which says how many."""
        event = asyncio.Event()
        self._waiting.add(event)
        found: list[SeenRequest] = []
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    event.clear()
                    found = [request for request in self if is_wanted(request)]
                    if len(found) >= count:
                        return found
                    await event.wait()
        except TimeoutError:
            raise TimeoutError(
                f"waited {timeout_s:g} s for {count} such requests, {len(found)} came"
            ) from None
        finally:
            self._waiting.discard(event)


class ObservedDispatcher(Dispatcher):
    """Handles requests as its base does and writes down each of them."""

    __slots__ = ("_services", "seen")

    def __init__(self, services: Services, seen: RequestLog | None = None) -> None:
        """`seen`: where to go on, None: a log of its own."""
        super().__init__(services)
        self._services = services
        self.seen = RequestLog() if seen is None else seen

    def dispatch(self, context: RequestContext, frame: memoryview) -> Any:
        """Handle one request like `Dispatcher.dispatch`, and note it."""
        note = self.begin(context, frame)
        return noted(super().dispatch(context, frame), note)

    def begin(self, context: RequestContext, frame: memoryview) -> Callable[[str | None], None]:
        """Note that a request begins; call the result with its error when its answer is there."""
        started_ns = perf_counter_ns()
        api_key, version, _, client_id, _ = parse_request_header(frame)
        api = APIS.get(api_key)
        name = api.name if api is not None else f"API key {api_key}"
        address, at_ms = context.client_address, self._services.clock.now_ms()

        def note(error: str | None) -> None:
            elapsed_ms = (perf_counter_ns() - started_ns) / 1_000_000
            self.seen.note(SeenRequest(name, version, client_id, address, at_ms, elapsed_ms, error))

        return note


class _NotedAnswer(Answer):
    """Noted when it is sent: until then a write to disk that fails makes it an error."""

    __slots__ = ()
    note: Callable[[str | None], None]

    def encode(self) -> list[Any]:
        """Encode like `Answer.encode`, and note the first error."""
        self.note(first_error(self.response))
        return super().encode()


class _NotedFastAnswer:
    """Like `_NotedAnswer`, for the answer of a short way (`Handler.fast`)."""

    __slots__ = ("_answer", "_note", "handler")

    def __init__(self, answer: Any, note: Callable[[str | None], None]) -> None:
        self._answer = answer
        self._note = note
        self.handler: Handler = answer.handler

    def encode(self) -> list[bytes]:
        """As the answer's own."""
        frame: list[bytes] = self._answer.encode()
        self._note(first_error(self._answer))
        return frame


def noted(outcome: Any, note: Callable[[str | None], None]) -> Any:
    """An outcome of `dispatch`, noted when it has its answer, or now if there is none."""
    if outcome is None:
        note(None)
    elif isinstance(outcome, Answer):
        return _noted_answer(outcome, note)
    elif not isinstance(outcome, Waiting):
        return _NotedFastAnswer(outcome, note)
    elif isinstance(outcome.awaitable, asyncio.Future):
        # It stays a future: who hangs up ends the wait.
        outcome.awaitable.add_done_callback(lambda done: note(_error_of(done)))
    else:
        outcome.awaitable = _noted(outcome.awaitable, note)
    return outcome


def _noted_answer(answer: Any, note: Callable[[str | None], None]) -> _NotedAnswer:
    """The answer itself, which others may hold."""
    answer.__class__ = _NotedAnswer
    answer.note = note
    noted_answer: _NotedAnswer = answer
    return noted_answer


async def _noted(awaitable: Awaitable[Any], note: Callable[[str | None], None]) -> Any:
    try:
        response = await awaitable
    except Exception as error:
        note(_name_of(_code_of(error)))
        raise
    note(first_error(response))
    return response


def _error_of(done: asyncio.Future[Any]) -> str | None:
    if done.cancelled():
        return None
    error = done.exception()
    return first_error(done.result()) if error is None else _name_of(_code_of(error))


def _code_of(error: BaseException) -> int:
    """Return the code that `dispatch.error_response` answers."""
    return as_kafka_error(error).code


def first_error(response: Any) -> str | None:
    """The name of the first error code that is not 0, wherever it is in an answer."""
    code = getattr(response, "error_code", 0) or getattr(response, "partition_error_code", 0)
    if code:
        return _name_of(code)
    if isinstance(response, Message):
        for name in response.__slots__:
            value = getattr(response, name)
            for part in value if isinstance(value, list) else (value,):
                found = first_error(part)
                if found is not None:
                    return found
    return None


def _name_of(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
