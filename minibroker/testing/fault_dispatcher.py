"""Does to requests what faults say, in the place of the server's dispatcher.

    frame ─► FaultDispatcher ─► a rule meets it? ─ no ─► ObservedDispatcher ─► Dispatcher ─► handler
                                      │ yes
                                      └► error · delay · drop · twice · truncated · held

An error for some places of a request leaves its other places real: a faulted partition of a Produce
is not appended, the others are. Without any rule a request pays one comparison.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, ProtocolError
from minibroker.protocol.api_keys import FETCH, METADATA
from minibroker.protocol.header import parse_request_header
from minibroker.protocol.primitives import Reader, Writer
from minibroker.server.dispatch import Answer, Waiting, answer_of, error_response
from minibroker.testing.faults import Facts, Fault, FaultSet
from minibroker.testing.message_places import (
    give_error,
    has_places,
    merge,
    places_in,
    take_out,
)
from minibroker.testing.request_log import ObservedDispatcher, first_error, noted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from minibroker.handlers.context import RequestContext, Services
    from minibroker.handlers.registry import Handler
    from minibroker.protocol.message import Message
    from minibroker.testing.request_log import RequestLog

DROPPED: Final = "connection dropped"
_GROUP_FIELDS: Final = ("group_id", "group", "key")


class _Altered(Answer):
    """An answer whose bytes are sent twice, or only in part."""

    __slots__ = ("copies", "inner", "size_bytes")

    def __init__(self, answer: Answer, fault: Fault) -> None:
        super().__init__(answer.handler, answer.response, answer.version, answer.correlation_id)
        self.inner = answer
        self.copies = 2 if fault.twice else 1
        self.size_bytes = fault.truncate_bytes

    def refuse(self, code: ErrorCode) -> None:
        self.inner.refuse(code)

    def encode(self) -> list[Any]:
        frame = b"".join(bytes(part) for part in self.inner.encode())
        return [frame[: self.size_bytes] * self.copies]


class FaultDispatcher(ObservedDispatcher):
    """One per broker under test."""

    __slots__ = ("_held", "faults")

    def __init__(
        self,
        services: Services,
        *,
        faults: FaultSet | None = None,
        seen: RequestLog | None = None,
    ) -> None:
        """`faults` and `seen`: those of a broker that was here before, None: new ones."""
        super().__init__(services, seen)
        self.faults = FaultSet() if faults is None else faults
        self._held: dict[Fault, set[asyncio.Future[None]]] = {}
        """Rule → the requests that wait by it now."""

    def release(self, fault: Fault) -> None:
        """A rule was removed: the connections that it holds go on."""
        self.faults.discard(fault)
        for future in self._held.pop(fault, ()):
            _end(future)

    def dispatch(self, context: RequestContext, frame: memoryview) -> Any:
        """Handle one request like `Dispatcher.dispatch`, with the faults that meet it."""
        if not len(self.faults):
            return super().dispatch(context, frame)
        api_key, version, correlation_id, client_id, position = parse_request_header(frame)
        handler = self._handlers.get(api_key) or self._load(api_key, version)
        if not handler.min_version <= version <= handler.max_version:
            return super().dispatch(context, frame)
        try:
            request = handler.request.read(Reader(frame, position), version)
        except ProtocolError:
            return super().dispatch(context, frame)
        fault = self.faults.first(self._facts(api_key, version, client_id, request))
        if fault is None:
            return super().dispatch(context, frame)
        context.api_key, context.version = api_key, version
        context.correlation_id, context.client_id = correlation_id, client_id
        note = self.begin(context, frame)
        if fault.drop == "before":
            context.close_connection(f"{fault!r}")
            note(DROPPED)
            return None
        if fault.hold or fault.delay_ms:
            # The frame is the connection's buffer and may be gone when the wait is over.
            kept = handler.request.read(Reader(memoryview(bytearray(frame)), position), version)
            later = self._later(context, handler, kept, fault)
            return self._sent(context, noted(Waiting(handler, kept, later, context), note), fault)
        outcome = self._answered(context, handler, request, fault)
        if fault.drop and isinstance(outcome, Answer):
            note(first_error(outcome.response))  # it is not sent
            return self._sent(context, outcome, fault)
        return self._sent(context, noted(outcome, note), fault)

    # Facts.

    def _facts(self, api_key: int, version: int, client_id: str | None, request: Message) -> Facts:
        group = next(
            (
                value
                for field in _GROUP_FIELDS
                if isinstance(value := getattr(request, field, None), str) and value
            ),
            None,
        )
        places = frozenset(places_in(request, self._name_of_id))
        return Facts(api_key, version, client_id, group, places)

    def _name_of_id(self, topic_id: bytes) -> str | None:
        topic = self._services.cluster.image.topic_by_id.get(topic_id)
        return topic.name if topic is not None else None

    # What is answered.

    def _answered(
        self, context: RequestContext, handler: Handler, request: Any, fault: Fault
    ) -> Any:
        """The outcome without what is done to its bytes: as `dispatch` gives it."""
        if fault.error is None:
            return self._handle(context, handler, request)
        names_places = fault.topic is not None or fault.partition is not None
        if fault.applied or handler.api_key == METADATA:
            outcome = self._handle(context, handler, request)
            return self._with_error(outcome, fault, context.version, whole=not names_places)
        refused = KafkaError(fault.error, f"{fault!r}")
        if not names_places:
            failed = error_response(handler, context, request, refused)
            return answer_of(handler, context, request, failed)
        if handler.api_key == FETCH and request.session_id:
            # A session leaves out what has not changed, and so the faulted partition.
            lost = handler.response(error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
            return answer_of(handler, context, request, lost)
        covered = take_out(request, fault.covers, self._name_of_id)
        if covered is None:
            return self._handle(context, handler, request)
        failed = error_response(handler, context, covered, refused)
        if not has_places(request, self._name_of_id):
            return answer_of(handler, context, request, failed)
        if handler.api_key == FETCH:
            request.session_epoch, request.max_wait_ms = -1, 0
        outcome = self._handle(context, handler, request)

        def add_failed(response: Any) -> Any:
            merge(response, failed)
            return response

        return _then(outcome, add_failed)

    def _handle(self, context: RequestContext, handler: Handler, request: Any) -> Any:
        """Through the handler, by the general way of the base class."""
        try:
            response = handler.handle(context, request)
        except Exception as error:
            response = error_response(handler, context, request, error)
        if isinstance(response, handler.response):
            return answer_of(handler, context, request, response)
        return Waiting(handler, request, response, context)

    def _with_error(self, outcome: Any, fault: Fault, version: int, *, whole: bool) -> Any:
        """The work is done, and the answer says that it failed."""
        code = fault.error
        assert code is not None

        def change(response: Any) -> Any:
            changed = _decoded(response, version)
            give_error(changed, code, fault.covers, self._name_of_id, whole=whole)
            return changed

        return _then(outcome, change)

    # What is sent.

    def _sent(self, context: RequestContext, outcome: Any, fault: Fault) -> Any:
        if isinstance(outcome, Waiting):
            if fault.drop:
                outcome.awaitable = self._dropped(outcome.awaitable, context, fault)
            elif fault.alters_bytes:
                outcome.wrap = lambda answer: _altered(answer, context, fault)
            return outcome
        if outcome is None:
            return None
        if fault.drop:
            context.close_connection(f"{fault!r}")
            return None
        return _altered(outcome, context, fault) if fault.alters_bytes else outcome

    async def _dropped(
        self, awaitable: Awaitable[Any], context: RequestContext, fault: Fault
    ) -> None:
        await awaitable
        self._services.partitions.commit()
        context.close_connection(f"{fault!r}")

    async def _later(
        self, context: RequestContext, handler: Handler, request: Any, fault: Fault
    ) -> Any:
        """Wait as the rule says, then handle the request as it came."""
        released: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        held = self._held.setdefault(fault, set())
        held.add(released)
        if not fault.hold:
            self._services.timers.after(fault.delay_ms, lambda: _end(released))
        try:
            await released
        finally:
            held.discard(released)
        outcome = self._answered(context, handler, request, fault)
        if isinstance(outcome, Waiting):
            return await outcome.awaitable
        return None if outcome is None else outcome.response


def _altered(answer: Answer, context: RequestContext, fault: Fault) -> Answer:
    if fault.truncate_bytes is not None:
        # After these bytes have been sent.
        asyncio.get_running_loop().call_soon(context.close_connection, f"{fault!r}")
    return _Altered(answer, fault)


def _end(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _decoded(response: Any, version: int) -> Any:
    """Return a copy of a response, decoded from its bytes.

    What a handler answers may share parts with other answers, or hold them as bytes.
    """
    writer = Writer()
    response.write(writer, version)
    return type(response).read(Reader(writer.to_bytes()), version)


def _then(outcome: Any, change: Callable[[Any], Any]) -> Any:
    """Put what `change` returns in place of an outcome's response, now or when it is there."""
    if isinstance(outcome, Waiting):
        outcome.awaitable = _changed(outcome.awaitable, change)
    elif isinstance(outcome, Answer):
        outcome.response = change(outcome.response)
    return outcome


async def _changed(awaitable: Awaitable[Any], change: Callable[[Any], Any]) -> Any:
    return change(await awaitable)
