"""Fragments of IP packets → the whole packet.

A router cuts a packet that is too long for its next network. `capture` hands in each packet without
a TCP segment, and gets the whole one with the last fragment. Memory is bounded: of too many packets
the oldest is forgotten, and its fragments are counted.

Source: RFC 791, RFC 815, RFC 8200; fragments that overlap are refused as RFC 5722 says.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final

from minibroker.trace.packets import FRAGMENT_OFFSET, IPV6_FRAGMENT, MORE_FRAGMENTS, TCP

if TYPE_CHECKING:
    from collections.abc import Callable

PACKETS_MAX: Final = 256
"""Packets that wait for fragments."""
BYTES_MAX: Final = 4 << 20
"""Bytes of all fragments that wait."""
FRAGMENTS_MAX: Final = 512
"""Fragments of one packet: it has 64 KB at most, and no network has packets below 500 bytes."""
PACKET_BYTES_MAX: Final = (1 << 16) - 1
_UNIT_BYTES: Final = 8

_IPV4: Final = Struct(">BxHHHxBxx8s")
_IPV6: Final = Struct(">4xHBx32s")
_IPV6_PART: Final = Struct(">BxHI")
_UINT16: Final = Struct(">H")
_EXTENSIONS: Final = frozenset({0, 43, 60})
"""Headers of IPv6 that stand before that of a fragment."""
_EXTENSIONS_MAX: Final = 8


class _Fragment:
    """One fragment, as its header has it."""

    __slots__ = ("data", "is_cut", "is_last", "key", "start", "start_of_packet")

    def __init__(
        self, key: bytes, start_of_packet: bytes, start: int, data: bytes, *, is_last: bool
    ) -> None:
        self.key = key
        """Addresses, protocol and id: those of one packet."""
        self.start_of_packet = start_of_packet
        """The headers before the fragment, for the whole packet."""
        self.start = start
        self.data = data
        self.is_last = is_last
        self.is_cut = False
        """True if the capture has not all its bytes."""


class _PartialPacket:
    """A packet that waits for fragments."""

    __slots__ = ("end", "parts", "size_bytes", "start_of_packet")

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}
        """Start → bytes."""
        self.size_bytes = 0
        self.end: int | None = None
        """The size of the whole, once the last fragment came."""
        self.start_of_packet = b""
        """The headers, once the first fragment came."""

    def overlaps(self, fragment: _Fragment) -> bool:
        """Return whether bytes of a fragment are there already, or behind the end."""
        start, end = fragment.start, fragment.start + len(fragment.data)
        if self.end is not None and (end > self.end or fragment.is_last):
            return True
        if fragment.is_last and any(at + len(data) > end for at, data in self.parts.items()):
            return True
        return any(at < end and start < at + len(data) for at, data in self.parts.items())


class Fragments:
    """The fragments of a capture that wait for others."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, _PartialPacket] = {}
        """Key → packet, the oldest first."""
        self._size_bytes = 0
        self.lost = 0
        """Fragments of TCP that became no packet."""

    def add(self, packet: bytes, ip_start: Callable[[bytes], int]) -> bytes | None:
        """Take a packet that may be a fragment of TCP. Return the whole packet, from its header of
        IP on, if this was the last missing fragment.
        """
        try:
            fragment = _fragment_of(packet, ip_start(packet))
        except (struct_error, IndexError):
            return None
        if fragment is None:
            return None
        if fragment.is_cut or fragment.start + len(fragment.data) > PACKET_BYTES_MAX:
            self.lost += 1
            return None
        waiting = self._waiting.get(fragment.key)
        if waiting is not None and waiting.parts.get(fragment.start) == fragment.data:
            return None  # sent again
        if waiting is not None and (
            len(waiting.parts) == FRAGMENTS_MAX or waiting.overlaps(fragment)
        ):
            self._forget(fragment.key)  # the id is used again
            waiting = None
        if waiting is None:
            waiting = self._waiting[fragment.key] = _PartialPacket()
        whole = self._put(waiting, fragment)
        while len(self._waiting) > PACKETS_MAX or self._size_bytes > BYTES_MAX:
            self._forget(next(iter(self._waiting)))
        return whole

    def end(self) -> int:
        """Forget all that waits; return the number of fragments that became no packet."""
        while self._waiting:
            self._forget(next(iter(self._waiting)))
        return self.lost

    def _put(self, waiting: _PartialPacket, fragment: _Fragment) -> bytes | None:
        """Add a fragment; return the packet if it is whole."""
        waiting.parts[fragment.start] = fragment.data
        waiting.size_bytes += len(fragment.data)
        self._size_bytes += len(fragment.data)
        if fragment.start == 0:
            waiting.start_of_packet = fragment.start_of_packet
        if fragment.is_last:
            waiting.end = fragment.start + len(fragment.data)
        if waiting.end != waiting.size_bytes:
            return None
        del self._waiting[fragment.key]
        self._size_bytes -= waiting.size_bytes
        body = b"".join(data for _, data in sorted(waiting.parts.items()))
        return _whole(waiting.start_of_packet, body)

    def _forget(self, key: bytes) -> None:
        waiting = self._waiting.pop(key)
        self._size_bytes -= waiting.size_bytes
        self.lost += len(waiting.parts)


def _fragment_of(packet: bytes, at: int) -> _Fragment | None:
    """Return the fragment of TCP in a packet, None for any other packet.

    Raises IndexError or struct.error for damaged headers.
    """
    if at < 0:
        return None
    version = packet[at] >> 4
    if version == 4:
        return _of_ipv4(packet, at)
    return _of_ipv6(packet, at) if version == 6 else None


def _of_ipv4(packet: bytes, at: int) -> _Fragment | None:
    start, total, number, part, protocol, addresses = _IPV4.unpack_from(packet, at)
    if protocol != TCP or not part & (MORE_FRAGMENTS | FRAGMENT_OFFSET):
        return None
    body_at = at + (start & 15) * 4
    return _fragment(
        addresses + _UINT16.pack(number),
        packet[at:body_at],
        (part & FRAGMENT_OFFSET) * _UNIT_BYTES,
        packet[body_at : at + total],
        size_bytes=at + total - body_at,
        is_last=not part & MORE_FRAGMENTS,
    )


def _of_ipv6(packet: bytes, at: int) -> _Fragment | None:
    size_bytes, kind, addresses = _IPV6.unpack_from(packet, at)
    header, end = packet[at : at + _IPV6.size], at + _IPV6.size + size_bytes
    at += _IPV6.size
    for _ in range(_EXTENSIONS_MAX):
        if kind == IPV6_FRAGMENT:
            protocol, part, number = _IPV6_PART.unpack_from(packet, at)
            body_at = at + _IPV6_PART.size
            if protocol != TCP:
                return None
            return _fragment(
                addresses + number.to_bytes(4, "big"),
                header,
                part & ~7,
                packet[body_at:end],
                size_bytes=end - body_at,
                is_last=not part & 1,
            )
        if kind not in _EXTENSIONS:
            return None
        kind, at = packet[at], at + (packet[at + 1] + 1) * _UNIT_BYTES
    return None


def _fragment(
    key: bytes, header: bytes, start: int, data: bytes, *, size_bytes: int, is_last: bool
) -> _Fragment:
    fragment = _Fragment(key, header, start, data, is_last=is_last)
    is_short = size_bytes <= 0 or (size_bytes % _UNIT_BYTES != 0 and not is_last)
    fragment.is_cut = is_short or len(data) < size_bytes
    return fragment


def _whole(header: bytes, body: bytes) -> bytes:
    """Return a packet that is no fragment, with the header of the first one."""
    if header[0] >> 4 == 6:  # without the extensions that stood before the fragment's
        return header[:4] + _UINT16.pack(len(body)) + bytes([TCP]) + header[7:] + body
    total = min(len(header) + len(body), PACKET_BYTES_MAX)
    return header[:2] + _UINT16.pack(total) + header[4:6] + bytes(2) + header[8:] + body
