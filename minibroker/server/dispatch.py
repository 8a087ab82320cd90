"""From a frame to an answer: header, version check, handler, error mapping.

Second station of a request: `server/connection` cuts the frames, this module finds the handler and
turns its answer into bytes, `handlers/<api>` does the work. This is the one place where an
exception of a handler becomes an answer.

Unknown things as Kafka treats them: an unsupported ApiVersions version gets error 35 in the body of
version 0 (KIP-511); any other unknown key or version ends the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.error_codes import ErrorCode
from minibroker.errors import ProtocolError, answer_error
from minibroker.handlers.registry import Handler, load_handler
from minibroker.protocol.api_keys import API_VERSIONS, APIS
from minibroker.protocol.header import parse_request_header, response_header
from minibroker.protocol.primitives import Reader, Writer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from minibroker.handlers.context import RequestContext, Services
    from minibroker.handlers.produce_fast import FastAnswer
    from minibroker.partitions.flushing import Flushing


class Answer:
    """A request that a handler has answered, not yet bytes."""

    __slots__ = (
        "_close_connection",
        "correlation_id",
        "handler",
        "note",  # set by who looks on: see testing/request_log
        "request",
        "response",
        "version",
    )

    def __init__(
        self,
        handler: Handler,
        response: Any,
        version: int,
        correlation_id: int,
        request: Any = None,
    ) -> None:
        """`request` is what it answers, None: it has nothing to take back."""
        self.handler = handler
        self.response = response
        self.version = version
        self.correlation_id = correlation_id
        self.request = request
        self._close_connection: Callable[[str], None] | None = None

    @property
    def is_silent(self) -> bool:
        """Return whether nothing is sent.

        Such an answer goes the way of the others: it is counted, and it ends the connection where
        the request failed.
        """
        return self._close_connection is not None

    def be_silent(self, close_connection: Callable[[str], None]) -> None:
        """The client waits for no answer."""
        self._close_connection = close_connection
        self._close_if_failed()

    def refuse(self, code: ErrorCode) -> None:
        """What it says did not come to pass: an error in its place."""
        if self.request is not None:
            self.response = _response_of(self.handler, self.request, self.version, code, None)

    def encode(self) -> list[Any]:
        """The frame (size int32, header, body) as buffers to send one after the other."""
        if self._close_connection is not None:
            self._close_if_failed()  # the write to disk may have
            return []
        writer = Writer()
        writer.append(response_header(self.handler.api_key, self.version, self.correlation_id))
        self.response.write(writer, self.version)
        return writer.frame_parts()

    def _close_if_failed(self) -> None:
        has_failed = self.handler.has_failed
        if self._close_connection is not None and has_failed and has_failed(self.response):
            self._close_connection(f"a {self.handler.name} request that wants no answer failed")


class Waiting:
    """A request whose handler gave an awaitable: the connection holds still until it is done."""

    __slots__ = ("_context", "awaitable", "handler", "request", "wrap")

    def __init__(
        self, handler: Handler, request: Any, awaitable: Awaitable[Any], context: RequestContext
    ) -> None:
        self.handler = handler
        self.request = request
        self.awaitable = awaitable
        self._context = context
        self.wrap: Callable[[Answer], Answer] | None = None
        """Changes how the answer is sent (`minibroker.testing` does)."""

    def answer(self, response: Any) -> Answer:
        """What it waited for has come."""
        answer = answer_of(self.handler, self._context, self.request, response)
        return answer if self.wrap is None else self.wrap(answer)


def answer_of(handler: Handler, context: RequestContext, request: Any, response: Any) -> Answer:
    """The answer to `request`, the one that `context` has in hand; silent where it wants none."""
    answer = Answer(handler, response, context.version, context.correlation_id, request)
    if handler.is_silent is not None and handler.is_silent(request):
        answer.be_silent(context.close_connection)
    return answer


class Dispatcher:
    """Knows the served APIs; shared by all connections of a broker."""

    __slots__ = ("_handlers", "_metrics", "_supported")

    def __init__(self, services: Services) -> None:
        self._supported = services.supported_apis
        self._metrics = services.metrics
        self._handlers: dict[int, Handler] = {}

    def dispatch(
        self, context: RequestContext, frame: memoryview
    ) -> Answer | FastAnswer | Waiting | None:
        """Handle one request; `frame` is its bytes without the size field, valid until the answer.

        Returns:
            The answer or something to wait for; None where a fault took the request away
            (`minibroker.testing`).

        Raises:
            ProtocolError: not a request this broker serves; the connection has to end.
        """
        api_key, version, correlation_id, client_id, position = parse_request_header(frame)
        handler = self._handlers.get(api_key)
        if handler is None:
            handler = self._load(api_key, version)
        if not handler.min_version <= version <= handler.max_version:
            if api_key == API_VERSIONS:
                return self._unsupported_api_versions(context, correlation_id)
            raise ProtocolError(
                f"{handler.name} (key {api_key}) version {version} is not served,"
                f" expected {handler.min_version} to {handler.max_version}"
            )
        context.api_key = api_key
        context.version = version
        context.correlation_id = correlation_id
        context.client_id = client_id
        if handler.fast is not None:
            try:
                answer = handler.fast(context, handler, frame, position)
            except Exception as error:
                return self._failed(context, handler, frame, position, error)
            if answer is not None:
                if answer.__class__ is handler.response:
                    return Answer(handler, answer, version, correlation_id)
                return answer  # type: ignore[no-any-return]
        request = _read_request(handler, version, frame, position)
        try:
            response = handler.handle(context, request)
        except ProtocolError:
            raise  # a value that no request may have, as Kafka finds while it parses
        except Exception as error:  # a task root: every error of a handler ends here
            response = error_response(handler, context, request, error)
        if response.__class__ is handler.response:
            return answer_of(handler, context, request, response)
        return Waiting(handler, request, response, context)

    def _failed(
        self,
        context: RequestContext,
        handler: Handler,
        frame: memoryview,
        position: int,
        error: Exception,
    ) -> Answer:
        """A short way raised `error`: the request is not handled again, it is answered."""
        request = _read_request(handler, context.version, frame, position)
        response = error_response(handler, context, request, error)
        return answer_of(handler, context, request, response)

    def _load(self, api_key: int, version: int) -> Handler:
        supported = self._supported.get(api_key)
        if supported is None:
            api = APIS.get(api_key)
            name = f"{api.name} (key {api_key})" if api else f"API key {api_key}"
            raise ProtocolError(f"{name} version {version} is not served")
        handler = load_handler(api_key, supported, self._metrics)
        self._handlers[api_key] = handler
        return handler

    def _unsupported_api_versions(self, context: RequestContext, correlation_id: int) -> Answer:
        handler = self._handlers[API_VERSIONS]
        context.version = 0
        low, high = self._supported[API_VERSIONS]
        from minibroker.handlers.api_versions import (  # noqa: PLC0415  handlers load lazily
            unsupported_version,
        )

        return Answer(handler, unsupported_version(low, high), 0, correlation_id)


def _read_request(handler: Handler, version: int, frame: memoryview, position: int) -> Any:
    """The request whose body begins at `position`. Raises ProtocolError, which names the API."""
    try:
        return handler.request.read(Reader(frame, position), version)
    except ProtocolError as error:
        raise ProtocolError(f"{handler.name} v{version}: {error}") from error


def refuse_unsynced(flushing: Flushing, answers: Iterable[Any]) -> None:
    """Where an fsync failed: answers that claim what no append of their own speaks for, a group's
    or a transaction's state in its journal, are NOT_COORDINATOR, as Kafka's are."""
    if flushing.is_failed and flushing.refuses_all:
        for answer in answers:
            if isinstance(answer, Answer):
                answer.refuse(ErrorCode.NOT_COORDINATOR)


def error_response(
    handler: Handler, context: RequestContext, request: Any, error: BaseException
) -> Any:
    """The answer of an API to a failure of the whole request.

    `errors.answer_error` says which code; a handler whose response has no top-level error code
    brings a function `error_response(request, version, code, detail)` of its own.
    """
    what = (
        f"{handler.name} v{context.version} from {context.client_address}"
        f" (client id {context.client_id})"
    )
    known = answer_error(error, what)
    return _response_of(handler, request, context.version, known.code, known.detail)


def _response_of(
    handler: Handler, request: Any, version: int, code: ErrorCode, detail: str | None
) -> Any:
    if handler.error_response is not None:
        return handler.error_response(request, version, code, detail)
    response = handler.response()
    response.error_code = int(code)
    if detail is not None and "error_message" in handler.response.__slots__:
        response.error_message = detail
    return response
