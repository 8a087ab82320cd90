"""From a request's bytes to its answer: short way, decoding, handler, errors as answers.

The station `handle` of `dispatch.Dispatcher`. Nothing is kept between two requests, so an
interceptor may call these functions once more, or later, with another request.
"""

from __future__ import annotations

from asyncio import isfuture
from typing import TYPE_CHECKING, Any

from minibroker.broker.server.answers import Answer, WaitingRequest, answer_of, error_response
from minibroker.broker.slices import TimeSlice, Unfinished, run_rest, run_slice
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.primitives import Reader

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.handlers.common.handler import Handler
    from minibroker.broker.server.answers import AnyAnswer
    from minibroker.broker.server.call import Call
    from minibroker.broker.slices import Steps

    GeneralWay = Callable[[RequestContext, Handler, memoryview, int], Answer | WaitingRequest]


def handle_decoded(
    context: RequestContext, handler: Handler, frame: memoryview, position: int
) -> Answer | WaitingRequest:
    """Do `handle` the general way: decode the request, and ask the handler."""
    request = read_request(handler, context.version, frame, position)
    return handle_request(context, handler, request)


def handle(
    context: RequestContext,
    handler: Handler,
    frame: memoryview,
    position: int,
    general_way: GeneralWay = handle_decoded,
) -> AnyAnswer | WaitingRequest:
    """Return the answer to the request that `context` has in hand, or the request that waits.

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
    return general_way(context, handler, frame, position)


def handle_request(
    context: RequestContext, handler: Handler, request: Any
) -> Answer | WaitingRequest:
    """Return the handler's answer to `request`, or the request that waits. Raises ProtocolError."""
    try:
        return attempt(context, handler, request)
    except ProtocolError:
        raise  # a value that no request may have, as Kafka finds while it parses
    except Exception as error:  # a task root: every error of a handler ends here
        response = error_response(handler, context, request, error)
    return answer_of(handler, context, request, response)


def attempt(context: RequestContext, handler: Handler, request: Any) -> Answer | WaitingRequest:
    """Do `handle_request`, but raise the handler's exceptions.

    Raises KafkaError, before the handler runs, if the client lacks a permission that the whole
    request needs. A handler that works in steps (`slices.Steps`) does the first slice now.
    """
    if handler.check is not None and context.services.authorizer is not None:
        handler.check(context, request)
    response = handler.handle(context, request)
    # A response, an awaitable or steps. A compiled generator is of a type of its own.
    if response.__class__ is not handler.response and not hasattr(response, "__await__"):
        turn = TimeSlice()
        try:
            response = run_slice(response, turn)
        except Unfinished:
            rest_of_answer = _answer_in_slices(handler, response, turn)
            return WaitingRequest(handler, request, rest_of_answer, context, is_large=True)
    if response.__class__ is handler.response:
        return answer_of(handler, context, request, response)
    return WaitingRequest(handler, request, response, context)


async def _answer_in_slices(handler: Handler, steps: Steps[Any], turn: TimeSlice) -> Any:
    """Return the response of a handler whose first slice is over, or a future of the response."""
    response = await run_rest(steps, turn)
    is_ready = response.__class__ is handler.response or isfuture(response)
    return response if is_ready else await response


def read_request(handler: Handler, version: int, frame: memoryview, position: int) -> Any:
    """Return the request whose body begins at `position`. Raises ProtocolError, with its API."""
    try:
        return handler.request.read(Reader(frame, position), version)
    except ProtocolError as error:
        raise ProtocolError(f"{handler.name} v{version}: {error}") from error


def handle_call(call: Call) -> AnyAnswer | WaitingRequest:
    """Return the answer to a call, or the request that waits. Raises ProtocolError."""
    return handle(call.context, call.handler, call.frame, call.position)


def read_call(call: Call) -> Any:
    """Return the request of a call, decoded anew. Raises ProtocolError for a malformed one."""
    return read_request(call.handler, call.version, call.frame, call.position)
