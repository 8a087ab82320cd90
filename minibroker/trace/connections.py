"""The connections of a capture: their segments become requests and answers.

It stands between the packets of a capture and the exchanges. A connection counts if its first
bytes are a request of Kafka's protocol, so no port has to be known. Each direction has a
`TcpStream` and a `FrameStream`, and both share a `Pairing`.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from minibroker.trace.decode import read_head
from minibroker.trace.frame_streams import (
    REQUEST_START_BYTES,
    FrameStream,
    looks_like_answer,
    looks_like_request,
)
from minibroker.trace.packets import ACK, FIN, RST, SYN, TcpSegment
from minibroker.trace.pairing import Pairing
from minibroker.trace.tcp_streams import StreamPiece, TcpStream

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from minibroker.trace.decode import Frames

Address = tuple[bytes, int]
Key = tuple[Address, Address]

CONNECTIONS_MAX: Final = 20_000
"""Connections that are open at the same time; of more, the oldest is forgotten."""
_TLS_HANDSHAKE: Final = b"\x16\x03"


class CaptureTally:
    """Counts of one capture."""

    def __init__(self) -> None:
        self.packets = 0
        self.connections = 0
        """Connections with requests of Kafka's protocol."""
        self.tls_connections = 0
        self.requests = 0
        self.lost_bytes = 0
        """Bytes of these connections that are not in the capture, or belong to no whole frame."""


class CapturedConnection:
    """A connection between a client and a broker."""

    __slots__ = ("_ended", "_first", "_frames", "_streams", "client", "is_other", "pairing")

    def __init__(self, client: Address, broker: Address, *, is_lost: bool) -> None:
        """Take its two sides; `is_lost`: its start is not in the capture."""
        self.client = client
        self.is_other = False
        """True for a connection of another protocol."""
        self.pairing = Pairing(0, address_text(client), address_text(broker))
        """Its requests; connection 0 until the first one came."""
        self._first: list[StreamPiece] | None = None if is_lost else []
        """The client's first bytes, until there are enough to judge them; then None."""
        self._streams = (TcpStream(), TcpStream())
        """The client's direction, and the broker's."""
        pending = self.pairing.pending
        self._frames = (
            FrameStream(looks_like_request, is_lost=is_lost),
            FrameStream(lambda data: looks_like_answer(data, pending), is_lost=is_lost),
        )
        self._ended = [False, False]

    def begin(self, *, is_answer: bool, sequence: int) -> None:
        """Take the sequence number of a SYN of one side."""
        self._streams[is_answer].begin(sequence)

    def add(self, segment: TcpSegment, at_ms: float, tally: CaptureTally) -> Iterator[Frames]:
        """Yield the exchanges that the bytes of a segment, or its acknowledgement, end."""
        is_answer = segment.source != self.client
        if segment.flags & ACK:
            for piece in self._streams[not is_answer].acknowledge(segment.acknowledged):
                yield from self._add(piece, not is_answer, at_ms, tally)
        if segment.size_bytes:
            stream = self._streams[is_answer]
            for piece in stream.add(segment.sequence, segment.payload, segment.size_bytes):
                yield from self._add(piece, is_answer, at_ms, tally)
        if segment.flags & FIN:
            self._ended[is_answer] = True

    @property
    def is_ended(self) -> bool:
        """Return whether both sides have ended it."""
        return all(self._ended)

    def end(self, at_ms: float, tally: CaptureTally) -> Iterator[Frames]:
        """Yield the exchanges that are open."""
        for is_answer, stream in enumerate(self._streams):
            for piece in stream.end():
                yield from self._add(piece, bool(is_answer), at_ms, tally)
        yield from self.pairing.end()
        if self.pairing.connection:
            tally.lost_bytes += sum(frames.lost_bytes for frames in self._frames)

    def _add(
        self, piece: StreamPiece, is_answer: bool, at_ms: float, tally: CaptureTally
    ) -> Iterator[Frames]:
        """Yield the exchanges that end with a piece; it may wait for the ones that judge it."""
        pieces = [piece]
        if self._first is not None and not is_answer:
            pieces = self._judge(piece, tally)
        for judged in pieces:
            yield from self._pair(judged, is_answer, at_ms, tally)

    def _judge(self, piece: StreamPiece, tally: CaptureTally) -> list[StreamPiece]:
        """Return the first pieces once they begin with a request; those of other protocols never.

        A connection of another protocol is `is_other` from now on.
        """
        if self.is_other or self._first is None:
            return []
        self._first.append(piece)
        start = b"".join(first.data for first in self._first)
        if len(start) < REQUEST_START_BYTES:
            return []
        pieces, self._first = self._first, None
        if looks_like_request(start):
            return pieces
        self.is_other = True
        tally.tls_connections += start.startswith(_TLS_HANDSHAKE)
        return []

    def _pair(
        self, piece: StreamPiece, is_answer: bool, at_ms: float, tally: CaptureTally
    ) -> Iterator[Frames]:
        if self.is_other:
            return
        for frame in self._frames[is_answer].add(piece):
            if is_answer:
                yield from self.pairing.answer(frame, at_ms)
                continue
            if not self.pairing.connection:
                tally.connections += 1
                self.pairing.connection = tally.connections
            tally.requests += 1
            yield from self.pairing.request(tally.requests, frame, at_ms)


class CapturedConnections:
    """All connections of a capture. Used by one thread."""

    def __init__(self, ports: Collection[int] = ()) -> None:
        """Take the ports of the brokers; none: any port."""
        self._ports = frozenset(ports)
        self._open: dict[Key, CapturedConnection] = {}
        """Both addresses, the smaller one first → the connection."""
        self.tally = CaptureTally()

    def add(self, segment: TcpSegment, at_ms: float) -> Iterator[Frames]:
        """Yield the exchanges that end with a segment."""
        source, target = segment.source, segment.target
        if self._ports and source[1] not in self._ports and target[1] not in self._ports:
            return
        key = (source, target) if source < target else (target, source)
        connection = self._open.get(key)
        if segment.flags & SYN:
            yield from self._begin(key, connection, segment, at_ms)
            if len(self._open) > CONNECTIONS_MAX:
                yield from self._forget_oldest(at_ms)
            return
        if connection is None:
            connection = self._recognize(key, segment)
            if connection is None:
                return
            if len(self._open) > CONNECTIONS_MAX:
                yield from self._forget_oldest(at_ms)
        if connection.is_other:
            return
        yield from connection.add(segment, at_ms, self.tally)
        if connection.is_ended or segment.flags & RST:
            del self._open[key]
            yield from connection.end(at_ms, self.tally)

    def end(self, at_ms: float) -> Iterator[Frames]:
        """Yield the exchanges that are open at the end of the capture."""
        while self._open:
            yield from self._forget_oldest(at_ms)

    def _begin(
        self, key: Key, connection: CapturedConnection | None, segment: TcpSegment, at_ms: float
    ) -> Iterator[Frames]:
        """Begin a connection: the first SYN is the client's, the second has ACK."""
        if segment.flags & ACK:
            if connection is not None and connection.client != segment.source:
                connection.begin(is_answer=True, sequence=segment.sequence)
            return
        if connection is not None:  # the ports are used again; or the SYN was sent twice
            del self._open[key]
            yield from connection.end(at_ms, self.tally)
        connection = CapturedConnection(segment.source, segment.target, is_lost=False)
        connection.begin(is_answer=False, sequence=segment.sequence)
        self._open[key] = connection

    def _recognize(self, key: Key, segment: TcpSegment) -> CapturedConnection | None:
        """Return a connection that began before the capture, once a request of it comes.

        A short answer may look like a request without a client id. That counts only on the way to
        the lower port: those of clients are high.
        """
        source_port, target_port = segment.source[1], segment.target[1]
        if self._ports and target_port not in self._ports:
            return None
        if not looks_like_request(segment.payload):
            return None
        if target_port > source_port and not read_head(segment.payload[4:]).client_id:
            return None
        connection = CapturedConnection(segment.source, segment.target, is_lost=True)
        self._open[key] = connection
        return connection

    def _forget_oldest(self, at_ms: float) -> Iterator[Frames]:
        """Yield the open exchanges of the connection that began first."""
        connection = self._open.pop(next(iter(self._open)))
        yield from connection.end(at_ms, self.tally)


def address_text(address: Address) -> str:
    """Return HOST:PORT, with brackets around IPv6."""
    host = ipaddress.ip_address(address[0])
    return f"[{host}]:{address[1]}" if host.version == 6 else f"{host}:{address[1]}"
