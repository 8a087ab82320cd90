"""The connections of a capture: their segments become requests and answers.

It stands between the packets of a capture and the exchanges. A connection counts if its first
bytes are a request of Kafka's protocol, so no port has to be known. Each direction has a
`TcpStream` and a `FrameStream`, and both share a `Pairing`.

    segment ─► CapturedConnections.add ─ next in its stream ─► Direction.frames ─► Pairing
                                      └─ early, late, cut ──► Direction.stream ─┘
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from minibroker.kafka.foreign_text import printable
from minibroker.trace.decode import read_head
from minibroker.trace.frame_streams import (
    REQUEST_START_BYTES,
    FrameStream,
    looks_like_answer,
    looks_like_request,
)
from minibroker.trace.packets import ACK, FIN, RST, SYN, reversed_flow, sides_of
from minibroker.trace.pairing import Pairing
from minibroker.trace.tcp_streams import StreamPiece, TcpStream
from minibroker.trace.tls_hello import is_tls_data, is_tls_start, server_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from minibroker.trace.decode import Frame, Frames
    from minibroker.trace.packets import Address, Segment

CONNECTIONS_MAX: Final = 20_000
"""Connections that are open at the same time; of more, the oldest is forgotten."""
TLS_SERVERS_MAX: Final = 100
"""Servers with TLS that are told apart."""
LINK_TYPES_MAX: Final = 20
"""Link types that are not read and are told apart."""
_UNUSUAL: Final = SYN | FIN | RST


class CaptureTally:
    """Counts of one capture."""

    def __init__(self) -> None:
        self.packets = 0
        self.connections = 0
        """Connections with requests of Kafka's protocol."""
        self.tls_connections = 0
        self.tls_servers: dict[str, int] = {}
        """HOST:PORT, and the name that clients ask for → connections, of the first servers."""
        self.requests = 0
        self.lost_bytes = 0
        """Bytes of these connections that are not in the capture, or belong to no whole frame."""
        self.lost_fragments = 0
        """Fragments of packets whose other parts are not in the capture, or came too late."""

        self.unread_packets: dict[int, int] = {}
        """Link type that is not read → packets, of the first types."""

    def note_unread(self, link: int) -> None:
        """Count a packet of a link type that is not read."""
        self.packets += 1
        if link in self.unread_packets or len(self.unread_packets) < LINK_TYPES_MAX:
            self.unread_packets[link] = self.unread_packets.get(link, 0) + 1

    def note_tls(self, server: Address, name: str) -> None:
        """Count a connection with TLS."""
        self.tls_connections += 1
        text = address_text(server) + (f" ({printable(name)})" if name else "")
        if text in self.tls_servers or len(self.tls_servers) < TLS_SERVERS_MAX:
            self.tls_servers[text] = self.tls_servers.get(text, 0) + 1


class Direction:
    """One direction of a connection."""

    __slots__ = ("connection", "frames", "has_ended", "is_answer", "other", "stream")

    def __init__(
        self,
        connection: CapturedConnection,
        looks_right: Callable[[bytes], bool],
        *,
        is_answer: bool,
        is_lost: bool,
    ) -> None:
        self.connection = connection
        self.is_answer = is_answer
        self.stream = TcpStream()
        self.frames = FrameStream(looks_right, is_lost=is_lost)
        self.has_ended = False
        self.other = self
        """The other direction of the connection."""


class CapturedConnection:
    """A connection between a client and a broker."""

    __slots__ = ("answers", "broker", "first", "flow", "is_other", "pairing", "requests", "tally")

    def __init__(self, flow: bytes, tally: CaptureTally, *, is_lost: bool) -> None:
        """Take the flow of the client's segments; `is_lost`: its start is not in the capture."""
        self.flow = flow
        client, self.broker = sides_of(flow)
        self.tally = tally
        self.is_other = False
        """True for a connection of another protocol."""
        self.pairing = Pairing(0, address_text(client), address_text(self.broker))
        """Its requests; connection 0 until the first one came."""
        self.first: list[StreamPiece] | None = None if is_lost else []
        """The client's first bytes, until there are enough to judge them; then None."""
        pending = self.pairing.pending
        self.requests = Direction(self, looks_like_request, is_answer=False, is_lost=is_lost)
        self.answers = Direction(
            self,
            lambda data: looks_like_answer(data, pending),
            is_answer=True,
            is_lost=is_lost,
        )
        self.requests.other, self.answers.other = self.answers, self.requests

    def add(self, way: Direction, segment: Segment, packet: bytes, at_ms: float) -> list[Frames]:
        """Return the exchanges that the bytes of a segment, or its acknowledgement, end."""
        _, sequence, acknowledged, flags, start, end = segment
        ended: list[Frames] = []
        if flags & ACK:
            for piece in way.other.stream.acknowledge(acknowledged):
                ended += self._add(piece, way.other, at_ms)
        if end > start:
            for piece in way.stream.add(sequence, packet[start:end], end - start):
                ended += self._add(piece, way, at_ms)
        return ended

    @property
    def is_ended(self) -> bool:
        """Return whether both sides have ended it."""
        return self.requests.has_ended and self.answers.has_ended

    def end(self, at_ms: float) -> list[Frames]:
        """Return the exchanges that are open."""
        ended: list[Frames] = []
        for way in (self.requests, self.answers):
            for piece in way.stream.end():
                ended += self._add(piece, way, at_ms)
        ended += self.pairing.end()
        if self.pairing.connection:
            self.tally.lost_bytes += self.requests.frames.lost_bytes
            self.tally.lost_bytes += self.answers.frames.lost_bytes
        return ended

    def _add(self, piece: StreamPiece, way: Direction, at_ms: float) -> list[Frames]:
        """Return the exchanges that end with a piece; it may wait for the ones that judge it."""
        ended: list[Frames] = []
        pieces: Iterable[StreamPiece] = (piece,)
        if self.first is not None and not way.is_answer:
            pieces = self._judge(piece)
        for judged in pieces:
            if not self.is_other:
                ended += self.pair(way.frames.add(judged), way, at_ms)
        return ended

    def _judge(self, piece: StreamPiece) -> Sequence[StreamPiece]:
        """Return the first pieces once they begin with a request; those of other protocols never.

        A connection of another protocol is `is_other` from now on.
        """
        if self.is_other or self.first is None:
            return ()
        self.first.append(piece)
        start = b"".join(first.data for first in self.first)
        if len(start) < REQUEST_START_BYTES:
            return ()
        pieces, self.first = self.first, None
        if looks_like_request(start):
            return pieces
        self.is_other = True
        if is_tls_start(start):
            self.tally.note_tls(self.broker, server_name(start))
        return ()

    def pair(self, frames: Iterable[Frame], way: Direction, at_ms: float) -> Sequence[Frames]:
        """Return the exchanges that end with frames of a direction."""
        ended: Sequence[Frames] = ()
        for frame in frames:
            if way.is_answer:
                result = self.pairing.answer(frame, at_ms)
            else:
                tally = self.tally
                if not self.pairing.connection:
                    tally.connections += 1
                    self.pairing.connection = tally.connections
                tally.requests += 1
                result = self.pairing.request(tally.requests, frame, at_ms)
            ended = [*ended, *result] if ended else result
        return ended


class CapturedConnections:
    """All connections of a capture. Used by one thread."""

    def __init__(self, ports: Collection[int] = ()) -> None:
        """Take the ports of the brokers; none: any port."""
        self._ports = frozenset(ports)
        self._open: dict[CapturedConnection, None] = {}
        """The connections, the oldest first."""
        self._ways: dict[bytes, Direction] = {}
        """Flow → the direction that it is; two of each connection."""
        self.tally = CaptureTally()

    def add(self, segment: Segment, packet: bytes, at_ms: float) -> Sequence[Frames]:
        """Return the exchanges that end with a segment of this packet."""
        flow, sequence, _, flags, start, end = segment
        way = self._ways.get(flow)
        if way is None or flags & _UNUSUAL:
            return self._add_unusual(segment, packet, at_ms)
        connection = way.connection
        if connection.is_other:
            return ()
        stream = way.stream
        if (
            sequence != stream.next_sequence
            or stream.waiting
            or way.other.stream.waiting
            or end > len(packet)
            or connection.first is not None
        ):
            return connection.add(way, segment, packet, at_ms)
        if start == end:
            return ()
        stream.advance(end - start)
        frames = way.frames.add_segment(packet, start, end)
        return connection.pair(frames, way, at_ms) if frames else ()

    def _add_unusual(self, segment: Segment, packet: bytes, at_ms: float) -> Sequence[Frames]:
        """Return the exchanges that end with a segment that may begin or end a connection."""
        flow, flags = segment[0], segment[3]
        if self._ports and self._ports.isdisjoint(port for _, port in sides_of(flow)):
            return ()
        way = self._ways.get(flow)
        if flags & SYN:
            return [*self._begin(segment, way, at_ms), *self._forget_surplus(at_ms)]
        ended: list[Frames] = []
        if way is None:
            connection = self._recognize(segment, packet)
            if connection is None:
                return ()
            ended += self._forget_surplus(at_ms)
            way = connection.requests
        connection = way.connection
        if not connection.is_other:
            ended += connection.add(way, segment, packet, at_ms)
        if flags & RST:
            connection.requests.has_ended = connection.answers.has_ended = True
        elif flags & FIN:
            way.has_ended = True
        if connection.is_ended:
            ended += self._close(connection, at_ms)
        return ended

    def end(self, at_ms: float) -> list[Frames]:
        """Return the exchanges that are open at the end of the capture."""
        ended: list[Frames] = []
        while self._open:
            ended += self._close(next(iter(self._open)), at_ms)
        return ended

    def _begin(self, segment: Segment, way: Direction | None, at_ms: float) -> Sequence[Frames]:
        """Begin a connection: the first SYN is the client's, the second has ACK."""
        flow, sequence, flags = segment[0], segment[1], segment[3]
        if flags & ACK:
            if way is not None and way.is_answer:
                way.stream.begin(sequence)
            return ()
        # The ports are used again; or the SYN was sent twice.
        ended = () if way is None else self._close(way.connection, at_ms)
        self._open_connection(flow, is_lost=False).requests.stream.begin(sequence)
        return ended

    def _recognize(self, segment: Segment, packet: bytes) -> CapturedConnection | None:
        """Return a connection that began before the capture, once a request of it comes.

        A short answer may look like a request without a client id. That counts only on the way to
        the lower port: those of clients are high.
        """
        flow, start, end = segment[0], segment[4], segment[5]
        (_, source_port), target = sides_of(flow)
        if self._ports and target[1] not in self._ports:
            return None
        payload = packet[start:end]
        is_from_client = target[1] <= source_port
        if is_from_client and is_tls_data(payload):
            connection = self._open_connection(flow, is_lost=True)
            connection.is_other = True
            self.tally.note_tls(target, "")
            return connection
        if not looks_like_request(payload):
            return None
        if not is_from_client and not read_head(payload[4:]).client_id:
            return None
        return self._open_connection(flow, is_lost=True)

    def _open_connection(self, flow: bytes, *, is_lost: bool) -> CapturedConnection:
        """Return a new connection whose client sends in this flow."""
        connection = CapturedConnection(flow, self.tally, is_lost=is_lost)
        self._open[connection] = None
        self._ways[flow] = connection.requests
        self._ways[reversed_flow(flow)] = connection.answers
        return connection

    def _forget_surplus(self, at_ms: float) -> list[Frames]:
        """Return the open exchanges of the oldest connection, if there are too many."""
        if len(self._open) <= CONNECTIONS_MAX:
            return []
        return self._close(next(iter(self._open)), at_ms)

    def _close(self, connection: CapturedConnection, at_ms: float) -> list[Frames]:
        """Return the open exchanges of a connection that ends."""
        del self._open[connection]
        self._ways.pop(connection.flow, None)
        self._ways.pop(reversed_flow(connection.flow), None)
        return connection.end(at_ms)


def address_text(address: Address) -> str:
    """Return HOST:PORT, with brackets around IPv6."""
    host = ipaddress.ip_address(address[0])
    return f"[{host}]:{address[1]}" if host.version == 6 else f"{host}:{address[1]}"
