"""One client connection: bytes → frames → answers, in order, with back-pressure both ways.

First station of a request. The kernel writes into this connection's buffer (`receive_buffer.py`),
frames are slices of it, and everything that one read brought is handled before anything is sent:
appends of one partition become one write to disk, all answers one write to the socket.

Theory of operation. A connection is in one of three states:

* *reading*: frames are handled as they arrive (`_run`).
* *waiting*: a handler gave an awaitable, or answers wait for fsync (`flush.messages`). Requests
  behind it stay in the buffer, as Kafka's muted channel does; when the buffer is full the socket is
  not read any more.
* *stalled*: the peer does not take its answers (`pause_writing`); nothing is handled, nothing read.

A client over a quota is answered and then waits too (`throttle.py`), its socket unread (KIP-219).
"""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from minibroker.errors import ProtocolError
from minibroker.handlers.context import RequestContext
from minibroker.protocol.api_keys import FETCH
from minibroker.server.dispatch import Waiting, error_response, refuse_unsynced
from minibroker.server.receive_buffer import FRAME_SIZE, ReceiveBuffer
from minibroker.server.throttle import Throttled, charge

if TYPE_CHECKING:
    from minibroker.config.broker import Listener
    from minibroker.handlers.produce_fast import FastAnswer
    from minibroker.partitions.flushing import Flushing
    from minibroker.server.dispatch import Answer
    from minibroker.server.server import Server

    AnyAnswer = Answer | FastAnswer

logger = logging.getLogger(__name__)

RUN_REQUESTS_MAX: Final = 256
"""Answers collected before they are sent: bounds what one read can pile up in memory."""
JOIN_BYTES_MAX: Final = 64 * 1024
"""Answers up to this size are joined into one buffer: cheaper than many short vectors."""
WRITE_HIGH_WATER_BYTES: Final = 1024 * 1024


class Unflushed:
    """What a connection waits for whose answers claim what has to be on the disk first."""

    __slots__ = ("behind",)

    def __init__(self, behind: Waiting | None) -> None:
        self.behind = behind
        """The request that waits for its turn behind these answers."""

    @property
    def awaitable(self) -> Unflushed:
        """Closed like an awaitable that has not begun."""
        return self

    def close(self) -> None:
        """The connection is gone: nobody waits any more."""
        if self.behind is not None and not asyncio.isfuture(self.behind.awaitable):
            self.behind.awaitable.close()  # type: ignore[attr-defined]


class Connection(asyncio.BufferedProtocol):
    """The asyncio side of one connection; owned by its `Server`."""

    __slots__ = (
        "_closing",
        "_context",
        "_reading_paused",
        "_received",
        "_request_bytes",
        "_server",
        "_services",
        "_started_ns",
        "_stopping",
        "_task",
        "_transport",
        "_unsent_bytes",
        "_waiting",
        "_waiting_since_ns",
        "_writing_paused",
        "address",
        "host",
        "last_active_s",
        "listener",
    )

    def __init__(self, server: Server, listener: Listener, host: str, port: int) -> None:
        self._server = server
        self._services = server.services
        self.listener = listener
        self.host = host
        self.address = f"{host}:{port}"
        self._transport: asyncio.Transport
        self._context: RequestContext
        self._received = ReceiveBuffer()
        self._waiting: Waiting | Throttled | Unflushed | None = None
        self._request_bytes = 0
        """Of the request to charge for, header and body; 0 while no quota is set."""
        self._started_ns = self._waiting_since_ns = 0
        self._task: asyncio.Future[Any] | None = None
        self._reading_paused = False
        self._writing_paused = False
        self._unsent_bytes = 0
        """Answers that the peer had not taken when it was last looked (`is_taking`)."""
        self._closing = False
        self._stopping = False
        self.last_active_s = 0.0

    # The transport calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "writelines")
        self._transport = transport  # type: ignore[assignment]
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        self._context = RequestContext(
            services=self._services,
            listener=self.listener,
            client_address=self.address,
            close_connection=self._close_with,
        )
        self.last_active_s = self._server.loop.time()
        self._server.connection_opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        if self._task is not None:
            # A wait is over when nobody waits; work that has begun (a topic half made) goes on.
            if not isinstance(self._task, asyncio.Task):
                self._task.cancel()
        elif self._waiting is not None:
            # Still queued for a place: the coroutine has not begun and never will.
            self._waiting.awaitable.close()  # type: ignore[union-attr]
            self._waiting = None
        self._server.connection_closed(self)

    def eof_received(self) -> bool:
        """The peer sends no more. Kafka closes at once, answers still owed included: so do we."""
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        received = self._received
        if received.filled == received.size_bytes:
            received.make_room()
        return received.view[received.filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._received.filled += nbytes
        self.last_active_s = self._server.loop.time()
        if self._waiting is None and not self._writing_paused:
            self._run()
        else:
            self._hold()

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._unsent_bytes = self._transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self.last_active_s = self._server.loop.time()
        if self._waiting is None:
            self._run()

    # Requests.

    def _run(self) -> None:
        """Handle every whole frame in the buffer until one has to wait or the peer stalls."""
        received = self._received
        while not self._closing and not self._stopping:
            answers: list[AnyAnswer] = []
            started_ns = perf_counter_ns()
            start = received.start
            # Quotas are charged for each request before the next one is begun.
            quotas = self._services.quotas
            is_charged = quotas.is_active and quotas.charges(self._context)
            try:
                more = self._handle_frames(answers, 1 if is_charged else RUN_REQUESTS_MAX)
            except ProtocolError as error:
                self._refuse(error)
                more = False
            except Exception:
                self._fail("a request")
                more = False
            if is_charged and received.start != start:
                self._request_bytes = received.start - start - FRAME_SIZE.size
            self._send(answers, started_ns)
            if self._waiting is not None:
                if self._waiting.__class__ is Waiting:
                    self._begin_waiting(started_ns)
                if self._waiting is not None:
                    self._hold()
                    return
            elif not more:
                break
            if self._writing_paused:
                self._hold()
                return
        if self._stopping:
            self.stop()
        if not self._closing:
            received.compact()
            if self._reading_paused:
                self._reading_paused = False
                self._transport.resume_reading()

    def _handle_frames(self, answers: list[AnyAnswer], run_max: int) -> bool:
        """Dispatch frames of one API into `answers`; True when whole frames may be left.

        One run is of one API, so that its time can be told without a clock call per request.
        """
        received = self._received
        view = received.view
        start = received.start
        filled = received.filled
        dispatch = self._server.dispatcher.dispatch
        context = self._context
        size_max = self._server.request_bytes_max
        run_key = -1
        try:
            while filled - start >= 4:
                (size,) = FRAME_SIZE.unpack_from(view, start)
                if not 0 <= size <= size_max:
                    raise ProtocolError(
                        f"request size {size} bytes, expected 0 to {size_max}"
                        " (socket.request.max.bytes)"
                    )
                end = start + 4 + size
                if end > filled:
                    return False
                # Keys are below 128, so the second byte of the key tells the API.
                if size > 1 and run_key != view[start + 5]:
                    if answers:
                        return True
                    run_key = view[start + 5]
                outcome = dispatch(context, view[start + 4 : end])
                start = end
                if outcome.__class__ is Waiting:
                    self._waiting = outcome
                    return True
                if outcome is not None:
                    answers.append(outcome)  # type: ignore[arg-type]
                if self._stopping:
                    return False
                # A fetch answer is large and holds maps of segments: send it before the next.
                if run_key == FETCH or run_max == 1 or len(answers) == run_max:
                    return True
            return False
        finally:
            received.start = start

    def _send(self, answers: list[AnyAnswer], started_ns: int, remote_ns: int = 0) -> None:
        """Write what was appended to disk, then the answers to the socket, in order.

        `started_ns`: when the first of them was begun; `remote_ns`: how long it then waited.
        """
        partitions = self._services.partitions
        partitions.commit()
        flushing = partitions.flushing
        if flushing is not None:
            partitions.flushing = None
            if not flushing.future.done():
                self._wait_for_flush(flushing, answers, started_ns, remote_ns)
                return
            refuse_unsynced(flushing, answers)
        self._send_written(answers, started_ns, remote_ns)

    def _send_written(self, answers: list[AnyAnswer], started_ns: int, remote_ns: int) -> None:
        handled_ns = perf_counter_ns()
        if self._request_bytes and self._waiting is None and not self._closing:
            self._charge(answers, handled_ns - started_ns - remote_ns)
        if not answers or self._transport.is_closing():
            return
        parts = self._encode(answers)
        encoded_ns = perf_counter_ns()
        if len(parts) == 1:
            self._transport.write(parts[0])
        elif sum(map(len, parts)) > JOIN_BYTES_MAX:
            self._transport.writelines(parts)
        elif parts:
            self._transport.write(b"".join(parts))
        answers[0].handler.times.record(
            len(answers),
            handled_ns - started_ns - remote_ns,
            remote_ns,
            encoded_ns - handled_ns,
            perf_counter_ns() - encoded_ns,
        )

    def _encode(self, answers: list[AnyAnswer]) -> list[Any]:
        """The frames, in order; up to the first that cannot be encoded, and then the end."""
        if len(answers) == 1:
            try:
                return answers[0].encode()
            except Exception:
                self._fail(f"the answer to {answers[0].handler.name}")
                return []
        parts: list[Any] = []
        for answer in answers:
            try:
                parts += answer.encode()
            except Exception:
                self._fail(f"the answer to {answer.handler.name}")
                break
        return parts

    # Answers that wait for fsync.

    def _wait_for_flush(
        self,
        flushing: Flushing,
        answers: list[AnyAnswer],
        started_ns: int,
        remote_ns: int,
    ) -> None:
        """Hold these answers, and what has to wait behind them, until `flushing` is done."""
        behind = self._waiting
        assert behind is None or isinstance(behind, Waiting)

        def flushed(_future: asyncio.Future[None]) -> None:
            if self._closing:
                return
            self._waiting = behind
            self.last_active_s = self._server.loop.time()
            refuse_unsynced(flushing, answers)
            self._send_written(answers, started_ns, remote_ns)
            if self._waiting is not None and self._waiting is behind:
                self._begin_waiting(perf_counter_ns())
            if self._stopping and self.is_idle:
                self.close()
            elif not self._closing and self._waiting is None and not self._writing_paused:
                self._run()

        self._waiting = Unflushed(behind)
        flushing.future.add_done_callback(flushed)

    # A client over a quota.

    def _charge(self, answers: list[AnyAnswer], local_ns: int) -> None:
        """Count what the request in hand used; hold the connection still if that is too much."""
        size_bytes, self._request_bytes = self._request_bytes, 0
        delay_ms = charge(self._context, answers, size_bytes, local_ns)
        if delay_ms:
            timers = self._services.timers
            self._waiting = Throttled(timers.after(delay_ms, self._end_throttle))
            self._pause_reading()
            self._received.compact()

    def _end_throttle(self) -> None:
        self._waiting = None
        if not self._closing and not self._writing_paused:
            self._run()

    # A request that waits.

    def _begin_waiting(self, started_ns: int) -> None:
        """The answers before it have left: it is this request's turn."""
        self._started_ns = started_ns
        self._waiting_since_ns = perf_counter_ns()
        self._start_waiting()

    def _start_waiting(self) -> None:
        waiting = self._waiting
        assert isinstance(waiting, Waiting)
        awaitable = waiting.awaitable
        if not asyncio.isfuture(awaitable):
            if not self._server.may_start_task(self):
                return  # `start_queued` is called when a place is free
            awaitable = self._server.loop.create_task(awaitable)  # type: ignore[arg-type]
        self._task = awaitable
        if awaitable.done():
            self._finish_waiting(awaitable)
        else:
            awaitable.add_done_callback(self._on_done)

    def start_queued(self) -> None:
        """A place for a task is free (`queued.max.requests`): start the request that waits here."""
        if not self._closing and self._waiting is not None and self._task is None:
            self._start_waiting()

    def _on_done(self, future: asyncio.Future[Any]) -> None:
        self._finish_waiting(future)
        if self._stopping and self.is_idle:
            self.close()
        elif not self._closing and self._waiting is None and not self._writing_paused:
            self._run()

    def _finish_waiting(self, future: asyncio.Future[Any]) -> None:
        waiting = self._waiting
        assert isinstance(waiting, Waiting)
        if isinstance(future, asyncio.Task):
            self._server.task_ended()
        self._waiting = None
        self._task = None
        answers: list[AnyAnswer] = []
        try:
            answer = self._answer_to(waiting, future)
            if answer is not None:
                answers.append(answer)
        except Exception:
            self._fail(f"the answer to {waiting.handler.name}")
        self.last_active_s = self._server.loop.time()
        self._send(answers, self._started_ns, perf_counter_ns() - self._waiting_since_ns)

    def _answer_to(self, waiting: Waiting, future: asyncio.Future[Any]) -> Answer | None:
        """None where nobody waits any more, or a fault took the answer away."""
        if future.cancelled():
            return None
        error = future.exception()
        if error is not None:
            response = error_response(waiting.handler, self._context, waiting.request, error)
        else:
            response = future.result()
        return None if response is None else waiting.answer(response)

    # The end.

    @property
    def is_idle(self) -> bool:
        """True when no request is in hand."""
        return self._waiting is None or self._waiting.__class__ is Throttled

    def is_taking(self) -> bool:
        """Return whether the peer took bytes since the last call; as in Kafka that is activity."""
        unsent_bytes = self._transport.get_write_buffer_size()
        before, self._unsent_bytes = self._unsent_bytes, unsent_bytes
        return unsent_bytes != before

    def stop(self) -> None:
        """The broker stops: close now, or as soon as the request in hand is answered."""
        if self.is_idle:
            self.close()
        else:
            self._stopping = True

    def abort(self) -> None:
        """Close at once, whatever is in hand and whatever the peer has not taken."""
        self._closing = True
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def close(self) -> None:
        """Close after what is written has been sent."""
        self._closing = True
        self._transport.close()

    def _close_with(self, reason: str) -> None:
        """A handler's wish: nothing more is handled, what is answered already goes out first."""
        if not self._stopping:
            logger.info("closing connection of %s: %s", self.address, reason)
            self._end_soon()

    def _refuse(self, error: ProtocolError) -> None:
        self._services.metrics.malformed_requests += 1
        logger.warning("closing connection of %s: %s", self.address, error)
        self._end_soon()

    def _fail(self, what: str) -> None:
        """A bug of ours, for an `except`: no answer is better than half of one."""
        logger.exception("closing connection of %s: %s failed", self.address, what)
        self._end_soon()

    def _end_soon(self) -> None:
        """Close when what is in hand is answered and the answers before it are out."""
        self._stopping = True
        self._server.loop.call_soon(self.stop)

    # Reading.

    def _hold(self) -> None:
        """Frames stay in the buffer for now: no room is made for more than it takes."""
        if self._received.is_full:
            self._pause_reading()

    def _pause_reading(self) -> None:
        if not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
