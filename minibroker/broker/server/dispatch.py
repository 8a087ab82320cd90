"""The pipeline that every request passes, in one error mapping.

Third station of a request: `connection` gives its bytes, `handlers/<api>` does the work.

    parse ─► authenticate ─► authorize ─► handle ─► commit ─► throttle ─► finish

* *parse*: header, API and version. An unsupported ApiVersions version gets error 35 in the body of
  version 0 (KIP-511); any other unknown key or version ends the connection, as in Kafka.
* *authenticate*: a connection gives no request before it has a principal (`Connection.state`,
  `RequestContext.principal`). On a PLAINTEXT listener it is `ANONYMOUS` from the start, on a SASL
  listener the client proves it first (`sasl_gate.py`).
* *authorize*: without an authorizer everyone may do everything. With one, a request needs the
  permissions of `handlers/common/permissions.py`; its handler asks for those of its parts.
* *handle*: the API's short way, else its handler (`handling.py`). Large requests are decoded beside
  the loop first (`decoder.py`). Faults and the log of requests look in here (`interceptor.py`).
* *commit*: the appends of the run are written, one `writev` per partition, before its first answer
  is encoded; with `flush.messages` the answers wait for fsync.
* *throttle*: the client is charged (`throttle.py`). As in Kafka that comes last, because the time
  that a request took counts, too.
* *finish*: answers become bytes and are counted.

Errors: an exception of a handler is answered in the form of its API (`answers.error_response`). A
request that no client sends ends the connection with one line in the log; a bug of ours ends it
with its traceback.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.handlers.registry import load_handler
from minibroker.broker.server.answers import Answer, Run, WaitingRequest, error_response
from minibroker.broker.server.call import Call
from minibroker.broker.server.connection import ANY_API, Event
from minibroker.broker.server.decoder import LARGE_FRAME_BYTES, Decoder, has_many_batches
from minibroker.broker.server.handling import (
    attempt,
    handle,
    handle_decoded,
)
from minibroker.broker.server.throttle import charge
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.api_keys import (
    API_VERSIONS,
    APIS,
    FETCH,
    LEADER_AND_ISR,
    PRODUCE,
    STOP_REPLICA,
    UPDATE_METADATA,
)
from minibroker.kafka.protocol.header import RepeatedHeader, parse_request_header

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.handlers.common.context import RequestContext, Services
    from minibroker.broker.handlers.common.handler import Handler
    from minibroker.broker.partitions.append_queue import Flushing
    from minibroker.broker.server.answers import AnyAnswer
    from minibroker.broker.server.connection import Connection
    from minibroker.broker.server.interceptor import Interceptor

logger = logging.getLogger(__name__)

CONTROL_APIS: Final = frozenset({LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA})
"""Only a controller sends these."""
RUN_REQUESTS_MAX: Final = 256
"""Answers collected before they are sent: bounds what one read can pile up in memory."""
RUN_BYTES_MAX: Final = 256 * 1024
"""Bytes of collected answers with which a run ends, for the same reason."""
REPEATED_BYTES_MAX: Final = 256
"""A longer header is read anew each time."""
RUN_NS: int = 500_000
"""Time after which a run takes no further request; a run of Produce ends with its number."""


class Dispatcher:
    """Knows the served APIs; shared by all connections of a broker, on the loop's thread."""

    __slots__ = ("_handlers", "_services", "control_decoder", "decoder", "interceptor")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._handlers: dict[int, Handler] = {}
        """API key → its handler, loaded with the first request."""
        self.decoder = Decoder()
        """Constant. The server begins and closes it."""
        self.control_decoder = Decoder()
        """Constant. Decodes the requests of a controller, which wait for no other request."""
        self.interceptor: Interceptor | None = None
        """Constant after the start. The interceptor of requests; the rig sets it."""

    # Parse, authenticate, authorize, handle.

    def take(self, connection: Connection, context: RequestContext) -> Run | None:
        """Handle the requests of one API in the buffer, up to one that waits; None: there is none.

        One run is of one API, so that its time is known without a clock call per request. A request
        that no client may send, or a bug of ours, stops the connection behind the earlier answers.
        """
        run = Run(perf_counter_ns())
        answers = run.answers
        buffer = connection.receive_buffer
        # Quotas are charged for each request before the next one is begun.
        quotas = self._services.quotas
        is_charged = quotas.is_active and quotas.charges(context)
        answers_max = 1 if is_charged else RUN_REQUESTS_MAX
        api_key = ANY_API
        try:
            frame = connection.next_request()
            if frame is None:
                return None
            while frame is not None:
                outcome = self.dispatch(run, context, frame)
                if is_charged:
                    run.request_bytes = len(frame)
                if outcome.__class__ is WaitingRequest:
                    run.wait_for(outcome)
                    break
                if outcome is not None:
                    answers.append(outcome)  # type: ignore[arg-type]
                    api_key = context.api_key
                    # A fetch answer is large and holds maps of segments: it is sent before the next
                    if api_key == FETCH or len(answers) == answers_max:
                        break
                if buffer.start == buffer.end:
                    break  # most often: the client waits for this answer
                if api_key != PRODUCE and answers and self._is_enough(run):
                    break
                frame = connection.next_request(api_key)
        except ProtocolError as error:
            self._refuse(connection, context, error)
        except Exception:
            _fail(connection, context, "a request")
        return run

    def _is_enough(self, run: Run) -> bool:
        """Return whether the run ends with its last answer though the buffer has more requests.

        The answer is encoded for that, unless an append is not on the disk yet: the disk may change
        answers.
        """
        answer = run.answers[-1]
        appends = self._services.partitions.appends
        is_written = not appends.staged and appends.flushing is None
        if is_written and answer.__class__ is Answer and self.interceptor is None:
            try:
                run.encode(answer)
            except Exception:
                run.answers.pop()  # the connection ends behind the answers before it
                raise
        return run.answer_bytes >= RUN_BYTES_MAX or perf_counter_ns() - run.started_ns >= RUN_NS

    def dispatch(
        self, run: Run, context: RequestContext, frame: memoryview
    ) -> AnyAnswer | WaitingRequest | None:
        """Handle one request; `frame` is its bytes without the size field, valid until the answer.

        Returns the answer or a request that waits for it; None where an interceptor took the
        request away. Raises ProtocolError for a request that this broker does not serve: the
        connection has to end.
        """
        header = context.repeated_header
        correlation_id = None if header is None else header.correlation_id_of(frame)
        if header is None or correlation_id is None:
            api_key, version, correlation_id, client_id, position = parse_request_header(frame)
            header = None
            is_repeated = api_key == context.api_key and client_id == context.client_id
            if is_repeated and version == context.version and position <= REPEATED_BYTES_MAX:
                header = RepeatedHeader(frame, api_key, version, client_id, position)
            context.repeated_header = header
        else:
            api_key, version = header.api_key, header.version
            client_id, position = header.client_id, header.end
        context.api_key = api_key
        context.version = version
        context.correlation_id = correlation_id
        context.client_id = client_id
        handler = self._handlers.get(api_key)
        if handler is None:
            handler = self._load(api_key, version)
        if not handler.min_version <= version <= handler.max_version:
            answer = self._answer_unsupported(context, handler)
            if self.interceptor is not None:
                run.note(Call(context, handler, frame, position))
            context.version = answer.version
            return answer
        if self.interceptor is not None:
            return self._ask_interceptor(
                self.interceptor, run, Call(context, handler, frame, position)
            )
        if len(frame) > LARGE_FRAME_BYTES:
            if api_key == PRODUCE:
                return handle(context, handler, frame, position, self._handle_large_produce)
            return self._decode_beside(context, handler, frame, position)
        return handle(context, handler, frame, position)

    def _handle_large_produce(
        self, context: RequestContext, handler: Handler, frame: memoryview, position: int
    ) -> Answer | WaitingRequest:
        """Handle a Produce request in a large frame, which most often has few batches."""
        if has_many_batches(frame, position, context.version):
            return self._decode_beside(context, handler, frame, position)
        return handle_decoded(context, handler, frame, position)

    def _decode_beside(
        self, context: RequestContext, handler: Handler, frame: memoryview, position: int
    ) -> WaitingRequest:
        decoding = self._decoder_of(handler).decode(handler, context.version, frame, position)
        return WaitingRequest(handler, None, decoding, context)

    def _load(self, api_key: int, version: int) -> Handler:
        services = self._services
        versions = services.supported_apis.get(api_key)
        if versions is None:
            api = APIS.get(api_key)
            name = f"{api.name} (key {api_key})" if api else f"API key {api_key}"
            raise ProtocolError(f"{name} version {version} is not served")
        handler = load_handler(api_key, versions, services.metrics)
        handler.open_short_way(services)
        self._handlers[api_key] = handler
        return handler

    def _answer_unsupported(self, context: RequestContext, handler: Handler) -> Answer:
        """Return the answer to a version that is not served. Raises ProtocolError without one."""
        low, high = handler.min_version, handler.max_version
        if handler.api_key != API_VERSIONS:
            raise ProtocolError(
                f"{handler.name} (key {handler.api_key}) version {context.version} is not served,"
                f" expected {low} to {high}"
            )
        from minibroker.broker.handlers.api_versions import (  # noqa: PLC0415  handlers load lazily
            unsupported_version,
        )

        return Answer(handler, unsupported_version(low, high), 0, context.correlation_id)

    @staticmethod
    def _ask_interceptor(
        interceptor: Interceptor, run: Run, call: Call
    ) -> AnyAnswer | WaitingRequest | None:
        outcome = interceptor.handle(call)
        if isinstance(outcome, WaitingRequest):
            outcome.call = call
        elif outcome is not None:
            run.note(call)
        return outcome

    # A request that waited.

    def finish_wait(
        self,
        connection: Connection,
        context: RequestContext,
        waiting_request: WaitingRequest,
        future: asyncio.Future[Any],
    ) -> Run:
        """Return the run of a request that waited for `future`, which is done.

        The run is empty if the client has left.
        """
        run = Run(waiting_request.started_ns, perf_counter_ns() - waiting_request.waits_since_ns)
        if future.cancelled():
            self.give_up(waiting_request)
            return run
        run.request_bytes = waiting_request.request_bytes
        if waiting_request.request is None:
            self._handle_decoded(run, connection, context, waiting_request, future)
            return run
        try:
            error = future.exception()
            if error is None:
                response = future.result()
                if response.__class__ is WaitingRequest:  # a rule held it, now it waits itself
                    waiting_request.is_large = response.is_large
                    waiting_request.awaitable = response.awaitable
                    run.wait_for(waiting_request)
                    return run
                if asyncio.isfuture(response):  # the work is done: the rest takes no place
                    waiting_request.awaitable = response
                    run.wait_for(waiting_request)
                    return run
            elif waiting_request.is_large:
                run.wait_for(
                    self._answer_beside(
                        context, waiting_request.handler, waiting_request.request, error
                    )
                )
                return run
            else:
                response = error_response(
                    waiting_request.handler, context, waiting_request.request, error
                )
            answer = waiting_request.answer(response)
            run.answers.append(answer)
            run.is_large = waiting_request.is_large and not answer.is_silent
        except Exception:
            _fail(connection, context, f"the answer to {waiting_request.handler.name}")
            return run
        if waiting_request.call is not None:
            run.note(waiting_request.call)
        return run

    def _handle_decoded(
        self,
        run: Run,
        connection: Connection,
        context: RequestContext,
        waiting_request: WaitingRequest,
        future: asyncio.Future[Any],
    ) -> None:
        """Handle a request that was decoded beside the loop; put its answer, or its wait, into
        `run`.
        """
        handler = waiting_request.handler
        outcome: Answer | WaitingRequest
        try:
            request = future.result()
        except ProtocolError as refusal:
            self._refuse(connection, context, refusal)
            return
        except Exception:
            _fail(connection, context, f"a {handler.name} request")
            return
        try:
            outcome = attempt(context, handler, request)
        except ProtocolError as refusal:
            self._refuse(connection, context, refusal)
            return
        except Exception as error:  # a task root: every error of a handler ends here
            outcome = self._answer_beside(context, handler, request, error)
        if isinstance(outcome, WaitingRequest):
            outcome.is_large = True
            run.wait_for(outcome)
        else:
            run.is_large = not outcome.is_silent
            run.answers.append(outcome)

    def _answer_beside(
        self, context: RequestContext, handler: Handler, request: Any, error: BaseException
    ) -> WaitingRequest:
        """Return the wait for the answer to a large request that failed as a whole.

        The answer repeats the parts of the request, so it is made beside the loop.
        """
        response_future = self._decoder_of(handler).run(
            partial(error_response, handler, context, request, error)
        )
        return WaitingRequest(handler, request, response_future, context, is_large=True)

    def _decoder_of(self, handler: Handler) -> Decoder:
        return self.control_decoder if handler.api_key in CONTROL_APIS else self.decoder

    def _refuse(
        self, connection: Connection, context: RequestContext, error: ProtocolError
    ) -> None:
        """Stop the connection of a client that sent a request that no client may send."""
        self._services.metrics.malformed_requests += 1
        logger.warning("closing connection of %s: %s", context.client_address, error)
        connection.apply(Event.STOP)

    def give_up(self, waiting_request: WaitingRequest) -> None:
        """Tell the interceptor that a request gets no answer, because its client has left."""
        if self.interceptor is not None and waiting_request.call is not None:
            self.interceptor.on_end(waiting_request.call, None)

    # Commit, throttle, finish.

    def commit(self) -> Flushing | None:
        """Write the appends of the run to disk; return the flush that its answers wait for."""
        appends = self._services.partitions.appends
        appends.commit()
        flushing = appends.flushing
        if flushing is None:
            return None
        appends.flushing = None
        return None if flushing.future.done() else flushing

    async def end_of(self, work: Awaitable[Any]) -> Any:
        """Return what `work` returns; a future of that where its appends have to be synced first.

        The fsync is taken in the step of the last append. Before the answer has its turn another
        connection may commit, and take it for its own answers.
        """
        result = await work
        flushing = self.commit()
        if flushing is None:
            return result
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        flushing.future.add_done_callback(partial(_give, future, result))
        return future

    @staticmethod
    def _charge(context: RequestContext, run: Run) -> None:
        """Charge the client for the run, once."""
        local_ns = run.handled_ns - run.started_ns - run.remote_ns
        run.delay_ms = charge(context, run.answers, run.request_bytes, local_ns)
        run.request_bytes = 0

    def encode_beside(self, context: RequestContext, run: Run) -> asyncio.Future[None]:
        """Charge the client, and encode the answers of a large run in the worker; return a future
        of the end. `finish` has them then.
        """
        run.is_large = False
        run.handled_ns = perf_counter_ns()
        if run.request_bytes:
            self._charge(context, run)
        return self._decoder_of(run.answers[0].handler).encode(run.answers, run.delay_ms)

    def finish(self, connection: Connection, context: RequestContext, run: Run) -> list[Any]:
        """Charge the client, and return the frames of the run's answers, in order.

        Up to the first that cannot be encoded: the connection stops there, for no answer is better
        than half of one.
        """
        run.handled_ns = perf_counter_ns()
        if run.request_bytes:
            self._charge(context, run)
        delay_ms = run.delay_ms
        parts: list[Any] = []
        for number, answer in enumerate(run.answers):
            try:
                frame = answer.encode(delay_ms)
            except Exception:
                _fail(connection, context, f"the answer to {answer.handler.name}")
                break
            parts += frame
            if run.calls is not None:
                run.calls[number].answer_bytes = sum(map(len, frame))
        if run.calls is not None and self.interceptor is not None:
            for call, answer in zip(run.calls, run.answers, strict=True):
                self.interceptor.on_end(call, answer)
        run.encoded_ns = perf_counter_ns()
        return parts

    @staticmethod
    def count_sent(run: Run) -> None:
        """Count the requests of a run with answers: these are with the socket now."""
        answers = run.answers
        handled_ns, encoded_ns, remote_ns = run.handled_ns, run.encoded_ns, run.remote_ns
        answers[0].handler.times.record(
            len(answers),
            handled_ns - run.started_ns - remote_ns,
            remote_ns,
            encoded_ns - handled_ns,
            perf_counter_ns() - encoded_ns,
        )


def _give(future: asyncio.Future[Any], result: Any, _flush: asyncio.Future[None]) -> None:
    """End a wait for an fsync, unless the client has left."""
    if not future.done():
        future.set_result(result)


def _fail(connection: Connection, context: RequestContext, part: str) -> None:
    """Log a bug of ours with its traceback, and stop the connection; for an `except`."""
    logger.exception("closing connection of %s: %s failed", context.client_address, part)
    connection.apply(Event.STOP)
