"""From a frame to an answer: header, version check, handler, error mapping.

Second station of a request: `server/connection` cuts the frames, this module finds the handler and
turns its answer into bytes, `handlers/<api>` does the work. This is the one place where an
exception of a handler becomes an answer.

Unknown things as Kafka treats them: an unsupported ApiVersions version gets error 35 in the body of
version 0 (KIP-511); any other unknown key or version ends the connection.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from minibroker.error_codes import ErrorCode
from minibroker.errors import CoordinationError, KafkaError, ProtocolError
from minibroker.handlers.registry import Handler, load_handler
from minibroker.protocol.api_keys import API_VERSIONS, APIS
from minibroker.protocol.header import parse_request_header, response_header
from minibroker.protocol.primitives import Reader, Writer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from minibroker.handlers.context import RequestContext, Services
    from minibroker.handlers.produce_fast import FastAnswer
    from minibroker.partitions.flushing import Flushing

logger = logging.getLogger(__name__)


class Answer:
    """A request that a handler has answered, not yet bytes."""

    # `note` is set by who looks on: see testing/request_log.
    __slots__ = ("correlation_id", "handler", "note", "request", "response", "version")

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

    def refuse(self, code: ErrorCode) -> None:
        """What it says did not come to pass: an error in its place."""
        if self.request is not None:
            self.response = _response_of(self.handler, self.request, self.version, code, None)

    def encode(self) -> list[Any]:
        """The frame (size int32, header, body) as buffers to send one after the other."""
        writer = Writer()
        writer.append(response_header(self.handler.api_key, self.version, self.correlation_id))
        self.response.write(writer, self.version)
        return writer.frame_parts()


class Waiting:
    """A request whose handler gave an awaitable: the connection holds still until it is done."""

    __slots__ = ("awaitable", "correlation_id", "handler", "request", "version", "wrap")

    def __init__(
        self, handler: Handler, request: Any, awaitable: Awaitable[Any], context: RequestContext
    ) -> None:
        self.handler = handler
        self.request = request
        self.awaitable = awaitable
        self.version = context.version
        self.correlation_id = context.correlation_id
        self.wrap: Callable[[Answer], Answer] | None = None
        """Changes how the answer is sent (`minibroker.testing` does)."""

    def answer(self, response: Any) -> Answer:
        """What it waited for has come."""
        answer = Answer(self.handler, response, self.version, self.correlation_id, self.request)
        return answer if self.wrap is None else self.wrap(answer)


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
            The answer, something to wait for, or None where Kafka sends no response (acks=0).

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
            answer = handler.fast(context, handler, frame, position)
            if answer is not None:
                if answer.__class__ is handler.response:
                    return Answer(handler, answer, version, correlation_id)
                return answer  # type: ignore[no-any-return]
        try:
            request = handler.request.read(Reader(frame, position), version)
        except ProtocolError as error:
            raise ProtocolError(f"{handler.name} v{version}: {error}") from error
        try:
            response = handler.handle(context, request)
        except Exception as error:  # a task root: every error of a handler ends here
            response = error_response(handler, context, request, error)
        if response.__class__ is handler.response:
            return Answer(handler, response, version, correlation_id, request)
        if response is None:
            return None
        return Waiting(handler, request, response, context)

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

    A `KafkaError` carries its code; a tree that cannot be reached is REQUEST_TIMED_OUT (retriable,
    as Kafka's controller answers); anything else is a bug of ours: UNKNOWN_SERVER_ERROR and a
    traceback in the log. A handler whose response has no top-level error code brings a function
    `error_response(request, version, code, detail)` of its own.
    """
    if isinstance(error, KafkaError):
        code, detail = error.code, error.detail
    elif isinstance(error, CoordinationError):
        code, detail = ErrorCode.REQUEST_TIMED_OUT, str(error)
        logger.warning("%s from %s: %s", handler.name, context.client_address, error)
    else:
        code, detail = ErrorCode.UNKNOWN_SERVER_ERROR, None
        logger.error(
            "%s v%d from %s (client id %s) failed",
            handler.name,
            context.version,
            context.client_address,
            context.client_id,
            exc_info=error,
        )
    return _response_of(handler, request, context.version, code, detail)


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
