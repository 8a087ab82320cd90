"""`Link`: one connection of a client, and its connection to Kafka: the sockets of a conversation.

    ClientEnd ─► RequestSide ─► KafkaEnd          each reads only as fast as the other one takes
    ClientEnd ◄─ AnswerSide ◄── KafkaEnd

Connections map one to one. A client is read once Kafka is reached and, where the proxy logs in for
it, the login is done. The end of what one side sends goes on to the other side.
"""

from __future__ import annotations

import asyncio
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, Final

from minibroker.client.client import CLIENT_ERRORS
from minibroker.proxy.addresses import name_of
from minibroker.proxy.answer_side import AnswerSide
from minibroker.proxy.request_side import RequestSide
from minibroker.proxy.upstream import renewed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from minibroker.proxy.addresses import Address
    from minibroker.proxy.desk import Desk
    from minibroker.proxy.gates import Gate, Gates
    from minibroker.proxy.login import Session
    from minibroker.proxy.pending import Pending
    from minibroker.proxy.upstream import Upstream
    from minibroker.proxy.wire import DueCall

CONNECT_TIMEOUT_S: Final = 30.0
WRITE_BYTES_MAX: Final = 1 << 20
"""Bytes that wait for one side before the other one is not read."""


class StopReason(Flag):
    """Reasons not to read a side."""

    NONE = 0
    CONVERSATION = auto()
    """A rule, or too many requests without their answer."""
    WRITING = auto()
    """The other side does not take what there is."""
    CONNECTING = auto()


class End(asyncio.Protocol):
    """One of the two sockets. Belongs to the loop."""

    def __init__(self, link: Link) -> None:
        self.link = link
        """Constant."""
        self.transport: asyncio.Transport | None = None
        """None before the connection and after its end."""
        self.other: End
        """Constant once the link is made."""
        self.feed: Callable[[bytes], None]
        """Takes what is received. Constant once the link is made."""
        self._stops = StopReason.CONNECTING

    def connection_made(self, transport: Any) -> None:
        """Do `Protocol.connection_made`."""
        self.transport = transport
        transport.set_write_buffer_limits(high=WRITE_BYTES_MAX)
        # uvloop begins to read behind this call, whatever is said in it.
        asyncio.get_running_loop().call_soon(self._stay_stopped)

    def _stay_stopped(self) -> None:
        if self._stops and self.transport is not None:
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Do `Protocol.data_received`."""
        self.feed(data)

    def eof_received(self) -> bool:
        """Do `Protocol.eof_received`: the other side gets the end, and may still answer."""
        return self.link.pass_end(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Do `Protocol.connection_lost`."""
        self.transport = None
        self.link.lose(self)

    def pause_writing(self) -> None:
        """Do `Protocol.pause_writing`."""
        self.other.stop(StopReason.WRITING)

    def resume_writing(self) -> None:
        """Do `Protocol.resume_writing`."""
        self.other.go_on(StopReason.WRITING)

    def stop(self, reason: StopReason) -> None:
        """Do not read while there is this reason."""
        was_read = not self._stops
        self._stops |= reason
        if was_read and self.transport is not None:
            self.transport.pause_reading()

    def go_on(self, reason: StopReason) -> None:
        """Forget a reason; read if there is no other one."""
        was_read = not self._stops
        self._stops &= ~reason
        if not was_read and not self._stops and self.transport is not None:
            self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send bytes; what comes behind the end of the connection is lost, as on a socket."""
        transport = self.transport
        if transport is not None and not transport.is_closing():
            transport.write(data)


class Link:
    """A conversation with its sockets: the `Wire` of its two sides. Belongs to the loop."""

    def __init__(
        self,
        desk: Desk,
        gate: Gate,
        gates: Gates,
        upstream: Upstream,
        *,
        on_end: Callable[[Link], None],
    ) -> None:
        self._desk = desk
        self.gate = gate
        """The listener to which the client came. Constant."""
        self._gates = gates
        self._upstream = upstream
        self._on_end = on_end
        self.number = next(desk.connection_numbers)
        """The number of the connection. Constant."""
        self.client_address = ""
        """HOST:PORT of the client. Constant once it is connected."""
        self.broker_address = name_of(gate.targets[0])
        """HOST:PORT of the broker. Constant once it is reached."""
        self._local_host = ""
        self.client = ClientEnd(self)
        """The protocol of the client's socket. Constant."""
        self._kafka = End(self)
        self.client.other, self._kafka.other = self._kafka, self.client
        self.to_kafka, self.to_client = self._kafka.write, self.client.write
        """Do what `Wire` says. Constant."""
        self._answers = AnswerSide(desk, self)
        self._requests = RequestSide(desk, self, self._answers)
        self._answers.make_room = self._requests.make_room
        self._requests.cutter.is_held = True  # until Kafka is reached
        self.client.feed = self._requests.cutter.feed
        self._kafka.feed = self._answers.cutter.feed
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_ended = False
        self._has_kafka_ended = False

    @property
    def pending(self) -> list[Pending]:
        """Return the requests without their answer, the oldest first."""
        delayed_request = self._requests.delayed_request
        return [*self._answers.queue, *([] if delayed_request is None else [delayed_request])]

    # The life.

    def begin(self, transport: asyncio.Transport) -> None:
        """Reach Kafka for a client that has connected."""
        if self._has_ended:  # the proxy was killed while the loop let the client in
            transport.abort()
            return
        client, own = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        if client is None or own is None:  # it has left already
            self.abort()
            return
        self.client_address, self._local_host = name_of(client[:2]), own[0]
        self.run(self._connect())

    async def _connect(self) -> None:
        """Connect to the first target that can be reached, and log in if the proxy does that."""
        failures = []
        for address in self.gate.targets:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    transport, session = await self._upstream.connect(address)
            except CLIENT_ERRORS as error:
                failures.append(f"{name_of(address)}: {error or type(error).__name__}")
                continue
            self.broker_address = name_of(address)
            self._join(transport)
            if session is not None:
                await self._renew(transport, session)
            return
        self._desk.on_event(
            f"no connection to Kafka for {self.client_address}: {'; '.join(failures)}"
        )
        self.end("Kafka cannot be reached")

    def _join(self, transport: asyncio.Transport) -> None:
        """Let the two sockets talk."""
        if self._has_ended:
            transport.abort()
            return
        transport.set_protocol(self._kafka)
        self._kafka.connection_made(transport)
        self._kafka.go_on(StopReason.CONNECTING)
        self._requests.cutter.resume()
        self.client.go_on(StopReason.CONNECTING)

    async def _renew(self, transport: asyncio.Transport, session: Session) -> None:
        """Renew the proxy's session at Kafka, each time before it ends."""
        while session.lasts_s is not None:
            await asyncio.sleep(session.lasts_s)
            await self._requests.hold_when_idle()
            try:
                session = await renewed(transport, session)
            except CLIENT_ERRORS as error:
                self._desk.on_event(f"{self.broker_address} does not renew the login: {error}")
                self.end("the login was not renewed")
                return
            transport.set_protocol(self._kafka)
            self._requests.go_on()

    def pass_end(self, end: End) -> bool:
        """Tell the other side that one side sends no more; return whether its socket stays open.

        One with TLS does not.
        """
        other = end.other
        stays_open = end.transport is not None and end.transport.can_write_eof()
        if end is self._kafka:
            self._finish()
            return stays_open
        self._requests.cutter.flush()
        if other.transport is None or not other.transport.can_write_eof():
            self.end("the client has ended")
            return False
        other.transport.write_eof()
        return stays_open

    def lose(self, end: End) -> None:
        """Note that a socket has ended."""
        if end is self._kafka:
            self._finish()
        else:
            self.end("the client has left")

    def _finish(self) -> None:
        """End the client's connection behind the answers that Kafka still gave."""
        self._has_kafka_ended = True
        if not self._answers.cutter.is_held:
            self._answers.cutter.flush()
            self.end("Kafka has ended the connection")

    def end(self, reason: str) -> None:
        """Do `Wire.end`."""
        if self._has_ended:
            return
        self._has_ended = True
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self._answers.close()
        self._requests.close()
        self.client.feed = self._kafka.feed = _ignore
        if self.client.transport is not None:
            self.client.go_on(StopReason.CONNECTING)
            _behind_this_read(self.client.transport.close)
        if self._kafka.transport is not None:
            _behind_this_read(self._kafka.transport.abort)
        self._on_end(self)

    def abort(self) -> None:
        """End both connections at once."""
        transport = self.client.transport
        self.end("the proxy ends")
        if transport is not None:
            transport.abort()

    # The wire.

    def read_client(self, *, is_on: bool) -> None:
        """Do `Wire.read_client`."""
        (self.client.go_on if is_on else self.client.stop)(StopReason.CONVERSATION)

    def read_kafka(self, *, is_on: bool) -> None:
        """Do `Wire.read_kafka`."""
        (self._kafka.go_on if is_on else self._kafka.stop)(StopReason.CONVERSATION)
        if is_on and self._has_kafka_ended:
            self._finish()

    def later(self, delay_s: float, call: Callable[[], None]) -> DueCall:
        """Do `Wire.later`."""
        return asyncio.get_running_loop().call_later(delay_s, call)

    def run(self, work: Coroutine[None, None, None]) -> None:
        """Do `Wire.run`."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        """End a connection whose work failed: it cannot go on in order."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._desk.on_event(f"the connection of {self.client_address} failed: {error!r}")
            self.end("the proxy failed")

    def own_address(self, address: Address) -> Address | None:
        """Do `Wire.own_address`."""
        return self._gates.own_address(address, self._local_host)

    def note_addresses(self, addresses: list[Address]) -> None:
        """Do `Wire.note_addresses`."""
        self._gates.note_addresses(addresses, asyncio.get_running_loop().time())

    def note_brokers(self, brokers: dict[int, Address]) -> None:
        """Do `Wire.note_brokers`."""
        self._gates.note_brokers(self.gate, brokers, asyncio.get_running_loop().time())

    async def open_addresses(self, addresses: list[Address]) -> None:
        """Do `Wire.open_addresses`."""
        failure = await self._gates.open_all(addresses)
        if failure is not None:
            self._desk.on_event(failure)


def _ignore(_data: bytes) -> None:
    """Take what comes behind the end."""


def _behind_this_read(close: Callable[[], None]) -> None:
    """Close a connection once the loop is free: with TLS, uvloop writes behind a read, and logs a
    fatal error where its connection has been closed in it.
    """
    asyncio.get_running_loop().call_soon(close)


class ClientEnd(End):
    """The socket of the client, from which the link begins."""

    def connection_made(self, transport: Any) -> None:
        """Do `Protocol.connection_made`."""
        super().connection_made(transport)
        self.link.begin(transport)
