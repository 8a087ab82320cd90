"""Applies faults to requests, and logs the requests: an interceptor of the server.

    Dispatcher ─► FaultInterceptor ─► a rule meets it? ─ no ─► short way or handler
                                            │ yes
                                            └► error · delay · drop · twice · truncated · held

An error for some partitions of a request leaves the others real: a faulted partition of a Produce
is not appended, the others are. Without any rule a request pays one comparison.

`stale_metadata` gives handlers of Metadata and its like services whose image does not change any
more (`StaleServices`). All but the image are the broker's own: it leads and follows as usual. In
Kafka, that is a broker that gets LeaderAndIsr and no UpdateMetadata.
"""

from __future__ import annotations

import asyncio
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.image import MetadataImage
from minibroker.broker.server.answers import (
    Answer,
    WaitingRequest,
    answer_of,
    error_response,
    response_of,
)
from minibroker.broker.server.handling import handle, handle_call, handle_request, read_call
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.protocol.answer_error import first_error
from minibroker.kafka.protocol.api_keys import FETCH, METADATA
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.rig.altered_answer import AlteredAnswer
from minibroker.rig.connection_uses import ConnectionUses
from minibroker.rig.faults import Facts, Fault, FaultSet
from minibroker.rig.fetching import Fetching
from minibroker.rig.message_places import (
    give_error,
    group_in,
    has_places,
    merge,
    places_in,
    take_out,
)
from minibroker.rig.request_log import RequestLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.handlers.common.context import RequestContext, Services
    from minibroker.broker.server.answers import AnyAnswer
    from minibroker.broker.server.call import Call
    from minibroker.kafka.protocol.message import Message
    from minibroker.rig.request_sketches import RequestSketches
    from minibroker.rig.request_texts import RequestTexts


class StaleServices:
    """The services of one broker, with the metadata of the moment of construction."""

    def __init__(self, services: Services) -> None:
        self._services = copy(services)
        stale: Any = _StaleCluster(services.cluster)
        self._services.cluster = stale

    def context_of(self, context: RequestContext) -> RequestContext:
        """Return a context of the same request that has these services."""
        stale = copy(context)
        stale.services = self._services
        return stale


class _StaleCluster:
    """A cluster whose image is a copy. All else is the cluster's."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.image = _copied(cluster.image)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


def _copied(image: MetadataImage) -> MetadataImage:
    """Return a copy that no change of the image changes; the values in it never change."""
    copied = MetadataImage()
    for name in MetadataImage.__slots__:
        value = getattr(image, name)
        setattr(copied, name, dict(value) if isinstance(value, dict) else value)
    return copied


DROPPED: Final = "connection dropped"


class FaultInterceptor:
    """The interceptor of one broker under test, on the broker's loop."""

    __slots__ = (
        "_request_texts",
        "_services",
        "_sketches",
        "_stale",
        "_waiting_by_fault",
        "connection_uses",
        "faults",
        "fetching",
        "request_log",
    )

    def __init__(
        self,
        services: Services,
        *,
        faults: FaultSet | None = None,
        request_log: RequestLog | None = None,
        fetching: Fetching | None = None,
    ) -> None:
        """Take `faults`, `request_log` and `fetching` of a broker that ran here before.

        None: a new one is made.
        """
        self._services = services
        self.faults = FaultSet() if faults is None else faults
        self.request_log = RequestLog() if request_log is None else request_log
        self.fetching = Fetching() if fetching is None else fetching
        self.connection_uses = ConnectionUses()
        self._request_texts: RequestTexts | None = None
        """Made when the log is followed first."""
        self._sketches: RequestSketches | None = None
        """Made when the log is followed first."""
        self.request_log.open.clear()  # a broker that ran here before answers none of them
        self.request_log.describe = self._describe
        self.request_log.describe_open = self._describe_open
        self.request_log.remembers = self._remembers
        self.request_log.on_left = self._forget_sketches
        self._waiting_by_fault: dict[Fault, dict[asyncio.Future[Any], Callable[[], None]]] = {}
        """Rule → the requests that it holds now, each with the call that lets it go on."""
        self._stale: dict[Fault, StaleServices] = {}
        """Rule → what clients are told meanwhile."""
        for fault in self.faults:
            self.note(fault)

    def note(self, fault: Fault) -> None:
        """Keep what a new rule needs: with `stale_metadata`, the metadata of now."""
        if fault.broker == "stale_metadata":
            self._stale[fault] = StaleServices(self._services)

    def release(self, fault: Fault) -> None:
        """Let the connections of a removed rule go on."""
        self.faults.discard(fault)
        self._stale.pop(fault, None)
        loop = asyncio.get_running_loop()
        for go_on in self._waiting_by_fault.pop(fault, {}).values():
            loop.call_soon(go_on)

    def handle(self, call: Call) -> AnyAnswer | WaitingRequest | None:
        """Handle a request with the faults that meet it. Raises ProtocolError."""
        log = self.request_log
        if log.is_followed:
            self._sketched().begin(call, every=log.keeps_every)
            log.open[call] = None
        try:
            outcome = self._handle(call)
        except ProtocolError:  # its connection ends, and `on_end` is not called
            log.open.pop(call, None)
            raise
        if outcome is not None:
            self.fetching.note(call, outcome)
            if log.is_followed and isinstance(outcome, WaitingRequest):
                log.tell()
        return outcome

    def _handle(self, call: Call) -> AnyAnswer | WaitingRequest | None:
        if not len(self.faults):
            return handle_call(call)
        request = read_call(call)
        fault = self.faults.first(self._facts(call, request))
        if fault is None:
            return handle_call(call)
        call.effect = fault.effect
        if fault.broker == "stale_metadata":
            stale = self._stale[fault]
            return handle(stale.context_of(call.context), call.handler, call.frame, call.position)
        if fault.drop == "before":
            call.context.close_connection(f"{fault!r}")
            self.request_log.note_call(call, DROPPED)
            return None
        if fault.hold or fault.delay_ms:
            # The frame is the connection's buffer and may be gone when the wait is over.
            call.keep()
            request = read_call(call)
            later = self._later(call, request, fault)
            return _outcome_of(
                call, WaitingRequest(call.handler, request, later, call.context), fault
            )
        return _outcome_of(call, self._answered(call, request, fault), fault)

    def on_end(self, call: Call, answer: AnyAnswer | None) -> None:
        """Note the request with the first error of its answer."""
        says = answer.response if isinstance(answer, Answer) else answer  # a short way's own
        log = self.request_log
        log.note_call(call, first_error(says))
        if log.is_followed:
            self._sketched().end(call, says, log.total)
        self.connection_uses.note(call)
        self.fetching.note_answer(call, answer)

    def on_close(self, context: RequestContext) -> None:
        """Forget a closed connection, and what its client read."""
        self.fetching.note_closed(context)
        self.connection_uses.forget(context)

    def _texts(self) -> RequestTexts:
        if self._request_texts is None:
            from minibroker.rig.request_texts import RequestTexts  # noqa: PLC0415  for followers

            self._request_texts = RequestTexts(self._services.cluster)
        return self._request_texts

    def _sketched(self) -> RequestSketches:
        if self._sketches is None:
            from minibroker.rig.request_sketches import RequestSketches  # noqa: PLC0415  as above

            self._sketches = RequestSketches(self._texts())
        return self._sketches

    def _describe(self, number: int) -> str:
        return "" if self._sketches is None else self._sketches.subject(number)

    def _describe_open(self, call: Any) -> str:
        return "" if self._sketches is None else self._sketches.subject_of(call, None)

    def _remembers(self, number: int) -> bool:
        return self._sketches is not None and self._sketches.remembers(number)

    def _forget_sketches(self) -> None:
        if self._sketches is not None:
            self._sketches.clear()

    # Facts.

    def _facts(self, call: Call, request: Message) -> Facts:
        group = group_in(request)
        places = frozenset(places_in(request, self._name_of_id))
        return Facts(call.handler.api_key, call.version, call.client_id, group, places)

    def _name_of_id(self, topic_id: bytes) -> str | None:
        topic = self._services.cluster.image.topic_by_id.get(topic_id)
        return topic.name if topic is not None else None

    # What is answered.

    def _answered(self, call: Call, request: Any, fault: Fault) -> Answer | WaitingRequest:
        """Return the outcome before a fault changes its bytes."""
        if fault.error is None:
            return handle_request(call.context, call.handler, request)
        context, handler = call.context, call.handler
        names_places = fault.topic is not None or fault.partition is not None
        if fault.applied or handler.api_key == METADATA:
            outcome = handle_request(call.context, call.handler, request)
            return self._with_error(outcome, fault, call.version, whole=not names_places)
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
            return handle_request(call.context, call.handler, request)
        failed = error_response(handler, context, covered, refused)
        if not has_places(request, self._name_of_id):
            return answer_of(handler, context, request, failed)
        if handler.api_key == FETCH:
            request.session_epoch, request.max_wait_ms = -1, 0

        def add_failed(response: Any) -> Any:
            merge(response, failed)
            return response

        return _then(handle_request(call.context, call.handler, request), add_failed)

    def _with_error(
        self, outcome: Answer | WaitingRequest, fault: Fault, version: int, *, whole: bool
    ) -> Answer | WaitingRequest:
        """Return an answer with the fault's error, after the work is done."""
        code = fault.error
        assert code is not None

        def change(response: Any) -> Any:
            changed = _decoded(response, version)
            give_error(changed, code, fault.covers, self._name_of_id, whole=whole)
            return changed

        return _then(outcome, change)

    def _later(self, call: Call, request: Any, fault: Fault) -> asyncio.Future[Any]:
        """Return the wait of a request; when the rule lets it go on, it is handled unchanged.

        A future takes no place of a task, so a rule may hold as many requests as there are
        connections.
        """
        wait: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def go_on() -> None:
            if wait.done():  # the client has left
                return
            try:
                outcome = self._answered(call, request, fault)
            except Exception as error:  # the answer says so
                wait.set_exception(error)
            else:
                wait.set_result(
                    outcome if isinstance(outcome, WaitingRequest) else outcome.response
                )

        waiting = self._waiting_by_fault.setdefault(fault, {})
        waiting[wait] = go_on
        timer = None if fault.hold else self._services.timers.after(fault.delay_ms, go_on)

        def forget(_: asyncio.Future[Any]) -> None:
            waiting.pop(wait, None)
            if timer is not None:
                timer.cancel()

        wait.add_done_callback(forget)
        return wait


def _outcome_of(
    call: Call, outcome: Answer | WaitingRequest, fault: Fault
) -> Answer | WaitingRequest:
    """Return an outcome whose bytes are sent as the rule says."""
    if not fault.drop and not fault.alters_bytes:
        return outcome
    if isinstance(outcome, WaitingRequest):
        outcome.wrap = lambda answer: _altered(answer, call.context, fault)
        return outcome
    return _altered(outcome, call.context, fault)


def _altered(answer: Answer, context: RequestContext, fault: Fault) -> Answer:
    if fault.drop or fault.truncate_bytes is not None:
        context.close_connection(f"{fault!r}")  # behind these bytes
    size_bytes = 0 if fault.drop else fault.truncate_bytes
    return AlteredAnswer(answer, copies=2 if fault.twice else 1, size_bytes=size_bytes)


def _decoded(response: Any, version: int) -> Any:
    """Return a copy of a response, decoded from its bytes.

    A handler's response may share parts with other answers, or hold parts as bytes.
    """
    writer = Writer()
    response.write(writer, version)
    return type(response).read(Reader(writer.to_bytes()), version)


def _then(
    outcome: Answer | WaitingRequest, change: Callable[[Any], Any]
) -> Answer | WaitingRequest:
    """Apply `change` to the response of an outcome, now or when it is ready."""
    if isinstance(outcome, WaitingRequest):
        outcome.awaitable = _changed(outcome.awaitable, change)
    else:
        outcome.response = change(outcome.response)
    return outcome


async def _changed(awaitable: Awaitable[Any], change: Callable[[Any], Any]) -> Any:
    return change(await response_of(awaitable))
