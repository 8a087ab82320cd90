"""Outcomes of requests: answers, requests that wait for one, errors as answers.

A `Run` is the requests of one API that one read brought: their answers leave together, in order.
`error_response` is the one place where an exception becomes an answer.
"""

from __future__ import annotations

from asyncio import isfuture
from typing import TYPE_CHECKING, Any, TypeAlias

from minibroker.kafka.errors import answer_error
from minibroker.kafka.protocol.api_keys import PRODUCE
from minibroker.kafka.protocol.header import response_header
from minibroker.kafka.protocol.primitives import Writer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from minibroker.broker.handlers.appends.short_way import FastAnswer, LoneAnswer
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.handlers.common.handler import Handler
    from minibroker.broker.server.call import Call
    from minibroker.kafka.error_codes import ErrorCode

    AnyAnswer: TypeAlias = "Answer | FastAnswer | LoneAnswer"


class Answer:
    """A request that a handler has answered, not yet bytes."""

    __slots__ = (
        "_close_connection",
        "_frame_parts",
        "correlation_id",
        "handler",
        "response",
        "version",
    )

    def __init__(self, handler: Handler, response: Any, version: int, correlation_id: int) -> None:
        self.handler = handler
        self.response = response
        self.version = version
        self.correlation_id = correlation_id
        self._close_connection: Callable[[str], None] | None = None
        self._frame_parts: list[Any] | None = None
        """The buffers of the frame, once they are made."""

    @property
    def is_silent(self) -> bool:
        """Return whether nothing is sent.

        Such an answer goes the way of the others: it is counted, and it ends the connection where
        the request failed.
        """
        return self._close_connection is not None

    def be_silent(self, close_connection: Callable[[str], None]) -> None:
        """Send nothing: the client waits for no answer."""
        self._close_connection = close_connection
        self._close_if_failed()

    def encode(self, throttle_time_ms: int) -> list[Any]:
        """Return the frame (size int32, header, body) as buffers to send one after the other.

        `throttle_time_ms`: how long the client has to wait, 0: as long as the response says.
        """
        if self._close_connection is not None:
            self._close_if_failed()  # the write to disk may have
            return []
        if self._frame_parts is not None:
            return self._frame_parts
        if throttle_time_ms and "throttle_time_ms" in self.response.__slots__:
            self.response.throttle_time_ms = throttle_time_ms
        writer = Writer()
        writer.append(response_header(self.handler.api_key, self.version, self.correlation_id))
        self.response.write(writer, self.version)
        return writer.frame_parts()

    def make_frame(self, throttle_time_ms: int = 0) -> int:
        """Encode the frame now, for `encode` later; return its size in bytes.

        The client's delay is known, and the answer depends on no write to disk.
        """
        self._frame_parts = self.encode(throttle_time_ms)
        return sum(map(len, self._frame_parts))

    def _close_if_failed(self) -> None:
        has_failed = self.handler.has_failed
        if self._close_connection is not None and has_failed and has_failed(self.response):
            self._close_connection(f"a {self.handler.name} request that wants no answer failed")


class WaitingRequest:
    """A request whose handler gave an awaitable: the connection holds still until it is done."""

    __slots__ = (
        "_context",
        "awaitable",
        "call",
        "handler",
        "is_large",
        "request",
        "request_bytes",
        "started_ns",
        "waits_since_ns",
        "wrap",
    )

    def __init__(
        self,
        handler: Handler,
        request: Any,
        awaitable: Awaitable[Any],
        context: RequestContext,
        *,
        is_large: bool = False,
    ) -> None:
        self.handler = handler
        self.is_large = is_large
        """True where the answer is encoded beside the loop: the request was large, or its handler
        took more than a slice."""
        self.request = request
        """None while it is being decoded: `awaitable` gives it."""
        self.awaitable = awaitable
        """A coroutine is work: it takes a place of a task (`queued.max.requests`), and its end is
        the response, or a future of it. A future is a wait, which takes no place; its end is the
        response, or another request that waits.
        """
        self._context = context
        self.wrap: Callable[[Answer], Answer] | None = None
        """Changes how the answer is sent (an interceptor's)."""
        self.call: Call | None = None
        """The call that the interceptor knows, None without an interceptor."""
        self.request_bytes = 0
        """Bytes of the request, charged once it is answered (`Run.request_bytes`)."""
        self.started_ns = 0
        """When the run was begun that it came with."""
        self.waits_since_ns = 0
        """When its turn came: the answers before it had left."""

    @property
    def keeps_frame(self) -> bool:
        """Return whether the frame is still needed: for records, which only Produce has, or because
        it is being decoded.
        """
        return self.request is None or self.handler.api_key == PRODUCE

    def answer(self, response: Any) -> Answer:
        """Return the answer with the response that the request waited for."""
        answer = answer_of(self.handler, self._context, self.request, response)
        return answer if self.wrap is None else self.wrap(answer)


async def response_of(awaitable: Awaitable[Any]) -> Any:
    """Return the response that a request waits for, also where the wait has a second part."""
    response = await awaitable
    return await response if isfuture(response) else response


class Run:
    """Requests of one API that one read brought: answered, written to disk and sent together.

    Belongs to the loop. The dispatcher fills it, the transport sends it.
    """

    __slots__ = (
        "answer_bytes",
        "answers",
        "calls",
        "delay_ms",
        "encoded_ns",
        "handled_ns",
        "is_large",
        "remote_ns",
        "request_bytes",
        "started_ns",
        "waiting_request",
    )

    def __init__(self, started_ns: int, remote_ns: int = 0) -> None:
        self.answers: list[AnyAnswer] = []
        self.answer_bytes = 0
        """Bytes of the answers that were encoded while requests were taken."""
        self.is_large = False
        """True while the answers have to be encoded beside the loop."""
        self.calls: list[Call] | None = None
        """One for each answer while an interceptor looks on."""
        self.waiting_request: WaitingRequest | None = None
        """The last request of the run, where it waits: its turn comes behind the answers."""
        self.request_bytes = 0
        """Header and body of the only request; 0 where its client has no limit."""
        self.delay_ms = 0
        """How long the client has to be left alone, once it is charged."""
        self.started_ns = started_ns
        """When the first request was begun. The times are `perf_counter_ns`."""
        self.remote_ns = remote_ns
        """How long a request that waited did so."""
        self.handled_ns = self.encoded_ns = 0
        """When the answers were made, and when they were encoded."""

    def wait_for(self, waiting_request: WaitingRequest) -> None:
        """Note that the last request of the run waits; it is charged once it is answered."""
        waiting_request.started_ns = self.started_ns
        waiting_request.request_bytes, self.request_bytes = self.request_bytes, 0
        self.waiting_request = waiting_request

    def encode(self, answer: Answer) -> None:
        """Encode an answer of this run at once, and count its bytes."""
        self.answer_bytes += answer.make_frame()

    def note(self, call: Call) -> None:
        """Remember a call that an interceptor knows, for the answer that comes next."""
        if self.calls is None:
            self.calls = []
        self.calls.append(call)


def answer_of(handler: Handler, context: RequestContext, request: Any, response: Any) -> Answer:
    """Return the answer to `request`, which `context` has in hand; silent if it wants none."""
    answer = Answer(handler, response, context.version, context.correlation_id)
    if handler.is_silent is not None and handler.is_silent(request):
        answer.be_silent(context.close_connection)
    return answer


def error_response(
    handler: Handler, context: RequestContext, request: Any, error: BaseException
) -> Any:
    """Return the answer of an API to a failure of the whole request.

    `errors.answer_error` chooses the code. `kafka.protocol.refusals` knows where each API has it; a
    few handlers have a function `error_response(request, version, code, detail)` of their own.
    """
    subject = (
        f"{handler.name} v{context.version} from {context.client_address}"
        f" (client id {context.client_id})"
    )
    answer = answer_error(error, subject)
    return _response_of(handler, request, context.version, answer.code, answer.detail)


def _response_of(
    handler: Handler, request: Any, version: int, code: ErrorCode, detail: str | None
) -> Any:
    if handler.error_response is not None:
        return handler.error_response(request, version, code, detail)
    from minibroker.kafka.protocol.refusals import refusal  # noqa: PLC0415  no start needs it

    return refusal(request, version, code, detail)
