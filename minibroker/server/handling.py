"""From a request's bytes to its answer: short way, decoding, handler, errors as answers.

The station `handle` of `dispatch.Dispatcher`. Nothing is kept between two requests, so an
interceptor may call these functions once more, or later, with another request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.errors import ProtocolError
from minibroker.protocol.primitives import Reader
from minibroker.server.answers import Answer, Waiting, answer_of, error_response

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.handlers.registry import Handler
    from minibroker.server.answers import AnyAnswer
    from minibroker.server.call import Call


def handle(
    context: RequestContext, handler: Handler, frame: memoryview, position: int
) -> AnyAnswer | Waiting:
    """Return the answer to the request that `context` has in hand, or what to wait for.

    Its body begins at `position` of `frame`. Raises ProtocolError where the connection has to end.
    """
    short_way = handler.fast
    if short_way is not None:
        try:
            answer = short_way(context, handler, frame, position)
        except Exception as error:
            # It may be half done: it is answered, not handled again.
            request = read_request(handler, context.version, frame, position)
            return answer_of(
                handler, context, request, error_response(handler, context, request, error)
            )
        if answer is not None:
            if answer.__class__ is handler.response:
                return Answer(handler, answer, context.version, context.correlation_id)
            return answer  # type: ignore[no-any-return]
    request = read_request(handler, context.version, frame, position)
    return handle_request(context, handler, request)


def handle_request(context: RequestContext, handler: Handler, request: Any) -> Answer | Waiting:
    """Return the handler's answer to `request`, or what to wait for. Raises ProtocolError.

    Without the permissions that the whole request needs, the handler is not asked.
    """
    try:
        if handler.check is not None and context.services.authorizer is not None:
            handler.check(context, request)
        response = handler.handle(context, request)
    except ProtocolError:
        raise  # a value that no request may have, as Kafka finds while it parses
    except Exception as error:  # a task root: every error of a handler ends here
        response = error_response(handler, context, request, error)
    if response.__class__ is handler.response:
        return answer_of(handler, context, request, response)
    return Waiting(handler, request, response, context)


def read_request(handler: Handler, version: int, frame: memoryview, position: int) -> Any:
    """Return the request whose body begins at `position`. Raises ProtocolError, with its API."""
    try:
        return handler.request.read(Reader(frame, position), version)
    except ProtocolError as error:
        raise ProtocolError(f"{handler.name} v{version}: {error}") from error


def handle_call(call: Call) -> AnyAnswer | Waiting:
    """Return the answer to a call, or what to wait for. Raises ProtocolError."""
    return handle(call.context, call.handler, call.frame, call.position)


def read_call(call: Call) -> Any:
    """Return the request of a call, decoded anew. Raises ProtocolError for a malformed one."""
    return read_request(call.handler, call.version, call.frame, call.position)
