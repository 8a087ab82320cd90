"""The bytes of one direction of a TCP connection, in order.

Second station of a capture. Segments come as the capture has them: twice, in another order, or
not at all. `TcpStream.add` returns the pieces that are next, and a hole where bytes were never
captured:

    on time ─► piece          twice ─► nothing          early ─► wait
    acknowledged, though it never came; or too much waits; or the connection ends ─► hole

Source: RFC 9293.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, NamedTuple

WAITING_BYTES_MAX: Final = 4 << 20
"""Bytes that wait for an earlier segment; more make a hole of it."""
WAITING_SEGMENTS_MAX: Final = 4_096
_MODULUS: Final = 1 << 32
_HALF: Final = 1 << 31


class StreamPiece(NamedTuple):
    """The next bytes of a direction, or a hole in them."""

    data: bytes
    """Empty for a hole."""
    hole_bytes: int
    """Bytes that are missing; 0 for a piece."""
    is_start: bool
    """True if a segment begins with it."""


class TcpStream:
    """One direction. Its waiting segments are bounded."""

    __slots__ = ("_position", "_waiting_bytes", "next_sequence", "waiting")

    def __init__(self) -> None:
        self.next_sequence: int | None = None
        """Sequence number of the byte that is next, None before the first segment."""
        self._position = 0
        """The same byte, counted without an end."""
        self.waiting: list[tuple[int, bytes, int]] = []
        """A heap of segments that came early: position, payload, size."""
        self._waiting_bytes = 0

    def begin(self, sequence: int) -> None:
        """Take the sequence number of a SYN."""
        self.next_sequence = (sequence + 1) % _MODULUS
        self.waiting.clear()
        self._waiting_bytes = 0

    def add(self, sequence: int, payload: bytes, size_bytes: int) -> list[StreamPiece]:
        """Return the pieces that a segment of `size_bytes` makes known, none if it is early."""
        if self.next_sequence is None:
            self.next_sequence = sequence
        if sequence == self.next_sequence and not self.waiting and len(payload) == size_bytes:
            self.advance(size_bytes)
            return [StreamPiece(payload, 0, is_start=True)]
        position = self._position_of(sequence)
        if position + size_bytes <= self._position:
            return []  # all of it came before
        heappush(self.waiting, (position, payload, size_bytes))
        self._waiting_bytes += size_bytes
        pieces = self._take_waiting()
        while self._waiting_bytes > WAITING_BYTES_MAX or len(self.waiting) > WAITING_SEGMENTS_MAX:
            pieces += self._skip_hole()
        return pieces

    def acknowledge(self, sequence: int) -> list[StreamPiece]:
        """Return the pieces behind holes that the receiver acknowledged: it has these bytes."""
        pieces: list[StreamPiece] = []
        while self.waiting and self.waiting[0][0] <= self._position_of(sequence):
            pieces += self._skip_hole()
        return pieces

    def end(self) -> list[StreamPiece]:
        """Return all that waits, with the holes before it."""
        pieces: list[StreamPiece] = []
        while self.waiting:
            pieces += self._skip_hole()
        return pieces

    def _position_of(self, sequence: int) -> int:
        """Return the position of a sequence number: the nearest one to the next byte."""
        distance = (sequence - (self.next_sequence or 0)) % _MODULUS
        return self._position + (distance if distance < _HALF else distance - _MODULUS)

    def advance(self, size_bytes: int) -> None:
        """Take the next bytes: whoever has them puts them to use."""
        self._position += size_bytes
        self.next_sequence = ((self.next_sequence or 0) + size_bytes) % _MODULUS

    def _take_waiting(self) -> list[StreamPiece]:
        """Return the pieces that follow without a hole."""
        pieces: list[StreamPiece] = []
        while self.waiting and self.waiting[0][0] <= self._position:
            pieces += self._take()
        return pieces

    def _skip_hole(self) -> list[StreamPiece]:
        """Return the first hole and the pieces behind it."""
        pieces = []
        hole = self.waiting[0][0] - self._position
        if hole > 0:
            pieces.append(StreamPiece(b"", hole, is_start=False))
            self.advance(hole)
        return pieces + self._take_waiting()

    def _take(self) -> list[StreamPiece]:
        """Return the part of the first waiting segment that is next; the rest may be a hole."""
        position, payload, size_bytes = heappop(self.waiting)
        self._waiting_bytes -= size_bytes
        old_bytes = self._position - position
        if old_bytes >= size_bytes:
            return []
        self.advance(size_bytes - old_bytes)
        pieces = []
        if old_bytes < len(payload):
            pieces.append(StreamPiece(payload[old_bytes:], 0, is_start=old_bytes == 0))
        lost = size_bytes - max(len(payload), old_bytes)
        if lost:
            pieces.append(StreamPiece(b"", lost, is_start=False))
        return pieces
