"""One client's socket: the asyncio side of a connection, and nothing else.

First station of a request. The kernel writes into the connection's buffer. Everything that one
read brought is handled before anything is sent: appends of one partition become one write to disk,
all answers one write to the socket. `connection.py` has the states of a connection, `dispatch.py`
the stations of a request. Here are the transport's calls, the timer of a throttle, the tasks and
futures of requests that wait.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.handlers.common.context import RequestContext
from minibroker.broker.server.connection import Connection, ConnectionState, Event
from minibroker.broker.server.write_queue import COPIED_BYTES_MAX, TURN_BYTES, WriteQueue
from minibroker.kafka.ids import ANONYMOUS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.security.sasl.mechanisms import Mechanisms
    from minibroker.broker.server.answers import Run, WaitingRequest
    from minibroker.broker.server.connections import Connections
    from minibroker.broker.server.direct_socket import DirectSocket
    from minibroker.broker.server.sasl_gate import SaslGate
    from minibroker.broker.timers import Timer

    Buffer = bytes | bytearray | memoryview

logger = logging.getLogger(__name__)

WRITE_HIGH_WATER_BYTES: Final = 1024 * 1024
TURN_NS: int = 1_000_000
"""Time after which a connection begins no further run before the loop has polled its sockets."""


class ClientTransport(asyncio.BufferedProtocol):
    """Carries bytes between one socket and its `Connection`. Everything in it is the loop's."""

    __slots__ = (
        "_connected_s",
        "_connections",
        "_context",
        "_direct_socket",
        "_dispatcher",
        "_gate",
        "_is_paused",
        "_mechanisms",
        "_task",
        "_throttle",
        "_transport",
        "_turns",
        "_unsent_bytes",
        "_waiting_request",
        "_write_queue",
        "address",
        "connection",
        "host",
        "is_control",
        "last_active_s",
        "listener",
        "principal",
    )

    def __init__(
        self,
        connections: Connections,
        listener: Listener,
        host: str,
        port: int,
        mechanisms: Mechanisms | None = None,
    ) -> None:
        """Take `mechanisms`, those of a SASL listener."""
        self._connections = connections
        """Constant."""
        self._mechanisms = mechanisms
        """Constant."""
        self._dispatcher = connections.dispatcher
        """Constant."""
        self._turns = connections.turns
        """Constant."""
        self._gate: SaslGate | None = None
        """Loop. On a SASL listener, it takes frames until the client is known."""
        self.listener = listener
        """Constant."""
        self.host = host
        """Constant."""
        self.address = f"{host}:{port}"
        """Constant."""
        self.principal = ANONYMOUS
        """Constant. The principal by certificate; set before `connection_made`."""
        self._transport: asyncio.Transport
        """Constant from `connection_made` on."""
        self._context: RequestContext
        """Constant from `connection_made` on."""
        self._connected_s: float
        """Constant from `connection_made` on: its time on the loop's clock."""
        self.connection = Connection(connections.request_bytes_max, connections.memory, self._go_on)
        """Its state, and the bytes that are not handled yet."""
        self._waiting_request: WaitingRequest | None = None
        """The request that waits, or that will wait when the answers before it have left."""
        self._task: asyncio.Future[Any] | None = None
        """The future that this request waits for, once there is a place for it."""
        self._throttle: Timer | None = None
        """Ends the state THROTTLED, or REFUSED."""
        self._write_queue: WriteQueue | None = None
        """The rest of a large answer. Nothing is handled before it is written."""
        self._direct_socket: DirectSocket | None = None
        """Made for the first large answer; None with TLS, and where the system does not send out of
        a file."""
        self._is_paused = False
        """True while the transport holds so much that it takes no more."""
        self._unsent_bytes = 0
        """Answers that the peer had not taken when it was last looked (`is_taking`)."""
        self.is_control = False
        """True where the controller's requests come: they go before those of others."""
        self.last_active_s = 0.0
        """When bytes came or went, on the loop's clock."""

    # The transport calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "writelines")
        self._transport = transport  # type: ignore[assignment]
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        self._context = RequestContext(
            services=self._connections.services,
            listener=self.listener,
            client_address=self.address,
            close_connection=self._close_with,
            note_controller=self._go_first,
            principal=self.principal,
        )
        if self._mechanisms is None:
            # Nothing is left to prove: nobody has to, or the handshake of TLS did.
            self.connection.apply(Event.AUTHENTICATED)
        else:
            self._gate = self._new_gate(self._mechanisms)
        if self._connections.is_control_plane(self.listener):
            self._go_first()
        self._connected_s = self.last_active_s = self._connections.loop.time()
        self._connections.add(self)

    def _socket_below(self) -> DirectSocket | None:
        """Return what writes past the transport, None where nothing can, or with TLS."""
        disk = self._connections.services.partitions.disk
        if self.listener.security_protocol.uses_tls or not disk.files.can_send:
            return None
        stream = self._transport.get_extra_info("socket")
        if stream is None:
            return None
        from minibroker.broker.server.direct_socket import DirectSocket  # noqa: PLC0415  for large answers only

        return DirectSocket(self._transport, stream.fileno(), disk)

    def connection_lost(self, exc: Exception | None) -> None:
        self.connection.apply(Event.CLOSE)
        self._write_queue = None
        if self.is_control:
            self._turns.controllers -= 1
        if self._throttle is not None:
            self._throttle.cancel()
        if self._task is None:
            self._forget_waiting()
        elif not isinstance(self._task, asyncio.Task):
            # A wait is over when nobody waits; work that has begun (a topic half made) goes on.
            self._task.cancel()
        self.connection.receive_buffer.abandon()
        self._connections.remove(self)
        if self._dispatcher.interceptor is not None:
            self._dispatcher.interceptor.on_close(self._context)

    def eof_received(self) -> bool:
        """Close at once, although answers are owed, as Kafka does: the peer sends no more."""
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.connection.receive_buffer.room()

    def buffer_updated(self, nbytes: int) -> None:
        self.connection.receive_buffer.note_received(nbytes)
        self.last_active_s = self._connections.loop.time()
        self._go_on()

    def pause_writing(self) -> None:
        self._is_paused = True
        self.connection.peer_takes = False
        self._unsent_bytes = self._count_unsent()

    def resume_writing(self) -> None:
        self._is_paused = False
        self.last_active_s = self._connections.loop.time()
        if self._write_queue is None:
            self._take_again()
        else:
            self._write_turn()

    @property
    def context(self) -> RequestContext:
        """Return the client's identity, and the request in hand."""
        return self._context

    @property
    def connected_s(self) -> float:
        """Return when the client connected, on the loop's clock."""
        return self._connected_s

    # The client's identity.

    def _new_gate(self, mechanisms: Mechanisms) -> SaslGate:
        from minibroker.broker.server.sasl_gate import SaslGate  # noqa: PLC0415  for SASL listeners only

        return SaslGate(
            mechanisms,
            self.connection,
            self._context,
            write=self._write_frame,
            on_failure=self._refuse,
            go_on=self._go_on,
            interceptor=self._connections.login_interceptor,
        )

    def _write_frame(self, frame: bytes) -> None:
        if not self._transport.is_closing():
            self._write((frame,))

    def _refuse(self, answer: bytes | None) -> None:
        """Send the last answer and close, after `connection.failed.authentication.delay.ms`."""
        services = self._connections.services
        delay_ms = services.config.integer("connection.failed.authentication.delay.ms")
        self._throttle = services.timers.after(delay_ms, partial(self._end_refused, answer))

    def _end_refused(self, answer: bytes | None) -> None:
        self._throttle = None
        if self.connection.state is ConnectionState.REFUSED:
            if answer is not None:
                self._write_frame(answer)
            self.close()

    # Requests.

    def _go_on(self) -> None:
        """Handle the requests in the buffer as far as the connection's state allows.

        Then read the socket, leave it alone, or close it, also by the state.
        """
        connection = self.connection
        buffer = connection.receive_buffer
        gate = self._gate
        ends_ns = 0
        while buffer.start != buffer.end:
            if self._turns.controllers and not self.is_control and self._gives_way():
                return
            if gate is not None and not gate.opens():
                break
            run = self._dispatcher.take(connection, self._context)
            if run is None:
                break
            self._complete(run)
            if buffer.start == buffer.end or buffer.ends_early:
                break
            ends_ns = ends_ns or run.started_ns + TURN_NS
            if run.handled_ns > ends_ns and connection.state is ConnectionState.OPEN:
                self._hold_back()
                self._connections.loop.call_soon(self._go_on)
                return
        waiting_request = self._waiting_request
        wants_bytes = connection.prepare_to_read(
            keeps_frame=waiting_request is not None and waiting_request.keeps_frame
        )
        if connection.state is ConnectionState.DRAINED:
            self.close()
        elif wants_bytes is not self._transport.is_reading():
            self._read(wants_bytes=wants_bytes)

    def _gives_way(self) -> bool:
        """Return whether the requests in the buffer wait for the next turn of the loop."""
        is_open = self.connection.state is ConnectionState.OPEN
        if not is_open or self._turns.may_run(self._go_on):
            return False
        self._hold_back()
        return True

    def _hold_back(self) -> None:
        """Keep the requests in the buffer for a later turn, and do not read the socket before."""
        self.connection.receive_buffer.keep()
        if self._transport.is_reading():
            self._read(wants_bytes=False)

    def _go_first(self) -> None:
        """Handle the requests of this connection before those of others, and always read it: its
        peer is the controller.
        """
        if self.is_control or self.connection.state is ConnectionState.CLOSED:
            return
        self.is_control = True
        self.connection.receive_buffer.is_bounded = False
        self._turns.controllers += 1

    def _read(self, *, wants_bytes: bool) -> None:
        """Have the socket read from now on, or leave it alone."""
        if self.connection.state is ConnectionState.CLOSED:
            return
        if wants_bytes:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _complete(self, run: Run) -> None:
        """Write the appends of a run to disk, then its answers to the socket as soon as they may
        leave. Then let its last request wait, if it has to.
        """
        self._waiting_request = run.waiting_request
        flush = self._dispatcher.commit()
        if flush is None:
            self._send(run)
        else:
            self.connection.apply(Event.HOLD)
            flush.future.add_done_callback(partial(self._on_flushed, run))

    def _on_flushed(self, run: Run, _future: asyncio.Future[None]) -> None:
        self.connection.apply(Event.FLUSHED)
        self.last_active_s = self._connections.loop.time()
        self._send(run)
        self._go_on()

    def _on_encoded(self, run: Run, future: asyncio.Future[None]) -> None:
        future.exception()  # `finish` meets it, too, and ends the connection
        self._on_flushed(run, future)

    def _send(self, run: Run) -> None:
        connection = self.connection
        if run.is_large and run.answers:
            connection.apply(Event.HOLD)
            future = self._dispatcher.encode_beside(self._context, run)
            future.add_done_callback(partial(self._on_encoded, run))
            return
        if run.answers:
            parts = self._dispatcher.finish(connection, self._context, run)
            if parts and not self._transport.is_closing():
                self._write(parts if len(parts) == 1 else connection.send(parts))
            self._dispatcher.count_sent(run)
        if connection.state is ConnectionState.CLOSED:
            self._forget_waiting()
            return
        if run.delay_ms:
            self._begin_throttle(run.delay_ms)
        elif run.waiting_request is not None:
            connection.apply(Event.WAIT)
            run.waiting_request.waits_since_ns = perf_counter_ns()
            self._start_waiting(run.waiting_request)

    # Bytes to the socket.

    def _write(self, buffers: Sequence[Buffer]) -> None:
        """Write answers, large ones in turns; nothing is handled before the last of these."""
        if self._write_queue is not None:
            self._write_queue.add(buffers)
        elif len(buffers) == 1 and len(buffers[0]) <= TURN_BYTES:
            self._transport.write(buffers[0])
        elif max(map(len, buffers)) <= COPIED_BYTES_MAX and sum(map(len, buffers)) <= TURN_BYTES:
            self._write_lines(buffers)
        else:
            outgoing = WriteQueue()
            outgoing.add(buffers)
            if self._direct_socket is None:
                self._direct_socket = self._socket_below()
            self._write_some(outgoing)
            if outgoing.size_bytes:
                self._write_queue = outgoing
                self.connection.peer_takes = False
                self._connections.loop.call_soon(self._write_turn)

    def _write_some(self, outgoing: WriteQueue) -> None:
        """Write what one turn of the loop may write, as far as it goes out of files."""
        direct_socket = self._direct_socket
        if direct_socket is None or not direct_socket.is_free or direct_socket.write_from(outgoing):
            self._write_lines(outgoing.take())

    def _write_lines(self, buffers: Iterable[Buffer]) -> None:
        transport = self._transport
        transport.writelines(buffers)
        if not self._is_paused and transport.get_write_buffer_size() > WRITE_HIGH_WATER_BYTES:
            # asyncio of Python 3.12.0 to 3.12.7 and 3.13.0 does not look behind `writelines`
            # whether it holds too much. It does when it is told the limit.
            transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)

    def _write_turn(self) -> None:
        """Write what one turn of the loop may write, unless the transport is full or lost."""
        outgoing = self._write_queue
        if outgoing is None or self._is_paused:
            return
        self._write_some(outgoing)
        if outgoing.size_bytes:
            self._connections.loop.call_soon(self._write_turn)
            return
        self._write_queue = None
        if not self._is_paused:
            self._take_again()

    def _take_again(self) -> None:
        """Handle requests again: the peer takes answers."""
        self.connection.peer_takes = True
        self._go_on()

    def _count_unsent(self) -> int:
        """Return how many bytes of answers are written and not taken, or not written yet."""
        queued_bytes = 0 if self._write_queue is None else self._write_queue.size_bytes
        return self._transport.get_write_buffer_size() + queued_bytes

    # A client over a quota.

    def _begin_throttle(self, delay_ms: int) -> None:
        self.connection.apply(Event.THROTTLE)
        if (
            self.connection.state is ConnectionState.THROTTLED
        ):  # not where the connection ends anyway
            self._throttle = self._connections.services.timers.after(delay_ms, self._end_throttle)

    def _end_throttle(self) -> None:
        self._throttle = None
        if (
            self.connection.state is ConnectionState.THROTTLED
        ):  # not where the transport closes just now
            self.connection.apply(Event.RESUME)
            self._go_on()

    # A request that waits.

    def _start_waiting(self, waiting_request: WaitingRequest) -> None:
        awaitable: Any = waiting_request.awaitable
        if not isinstance(awaitable, asyncio.Future):
            if not self._connections.may_start_task(self):
                return  # `start_queued` is called when a place is free
            awaitable = self._connections.loop.create_task(self._dispatcher.end_of(awaitable))
        self._task = awaitable
        if awaitable.done():
            self._end_waiting(awaitable)
        else:
            awaitable.add_done_callback(self._on_done)

    def start_queued(self) -> None:
        """Start the request that waits here: a place for a task is free (`queued.max.requests`)."""
        is_closed = self.connection.state is ConnectionState.CLOSED
        if self._waiting_request is not None and self._task is None and not is_closed:
            self._start_waiting(self._waiting_request)

    def _on_done(self, future: asyncio.Future[Any]) -> None:
        self._end_waiting(future)
        self._go_on()

    def _end_waiting(self, future: asyncio.Future[Any]) -> None:
        waiting_request, self._waiting_request, self._task = self._waiting_request, None, None
        assert waiting_request is not None
        if isinstance(future, asyncio.Task):
            self._connections.task_ended()
        run = self._dispatcher.finish_wait(self.connection, self._context, waiting_request, future)
        self.connection.apply(Event.ANSWER)
        self.last_active_s = self._connections.loop.time()
        self._complete(run)

    def _forget_waiting(self) -> None:
        """Give up the request that waits and has not begun."""
        waiting_request, self._waiting_request = self._waiting_request, None
        if waiting_request is None:
            return
        awaitable: Any = waiting_request.awaitable
        if isinstance(awaitable, asyncio.Future):
            awaitable.cancel()
        else:
            awaitable.close()
        self._dispatcher.give_up(waiting_request)

    # The end.

    @property
    def idle_since_s(self) -> float:
        """Return when the idle time began, on the loop's clock.

        It begins with the last bytes, and for a client that has to log in with the connection.
        """
        gate = self._gate
        return self.last_active_s if gate is None or gate.is_client_known else self._connected_s

    def is_taking(self) -> bool:
        """Return whether the peer took bytes since the last call; as in Kafka that is activity."""
        unsent_bytes = self._count_unsent()
        old_unsent_bytes, self._unsent_bytes = self._unsent_bytes, unsent_bytes
        return unsent_bytes != old_unsent_bytes

    def stop(self) -> None:
        """Close now, or as soon as the request in hand is answered: the broker stops."""
        self.connection.apply(Event.STOP)
        if self.connection.state is ConnectionState.DRAINED:
            self.close()

    def abort(self) -> None:
        """Close at once; drop the request in hand and the answers that the peer has not taken."""
        self.connection.apply(Event.CLOSE)
        self._write_queue = None
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def drop(self) -> None:
        """Close at once, as when the peer leaves: work in hand goes on, without an answer."""
        self.connection.apply(Event.CLOSE)
        self._write_queue = None
        self._transport.abort()

    def close(self) -> None:
        """Close after what is written has been sent."""
        self.connection.apply(Event.CLOSE)
        outgoing, self._write_queue = self._write_queue, None
        if outgoing is not None:
            self._write_lines(outgoing.take(outgoing.size_bytes))
        self._transport.close()

    def _close_with(self, reason: str) -> None:
        """Handle nothing more, and close behind the answers made so far; for handlers."""
        if not self.connection.is_ending:
            logger.info("closing connection of %s: %s", self.address, reason)
            self.connection.apply(Event.STOP)
            self._connections.loop.call_soon(self._go_on)
