"""A captured packet → the TCP segment in it.

First station of a capture: `capture` reads packets, this module finds TCP in them, `tcp_streams`
puts segments in order. Link layers: Ethernet with VLAN tags, Linux's cooked ones (`tcpdump -i
any`), the loopback of BSD and macOS, plain IP. Above: IPv4 and IPv6 with its extension headers.

Source: the link types of tcpdump.org; RFC 791, RFC 8200, RFC 9293, IEEE 802.1Q.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10

TCP: Final = 6
"""The number of TCP in a header of IP."""
MORE_FRAGMENTS: Final = 0x2000
FRAGMENT_OFFSET: Final = 0x1FFF
IPV6_FRAGMENT: Final = 44
"""The header of a fragment in IPv6."""

_UINT16: Final = Struct(">H")
_PLAIN_IPV4: Final = 0x45
"""The first byte of a header of IPv4 without options."""
_IPV4_TCP: Final = Struct(">2xH2xHxB2x12sIIBB")
_IPV4: Final = Struct(">BxH2xHxB2x8s")
_IPV6: Final = Struct(">4xHBx32s")
_TCP: Final = Struct(">4sIIBB")
_PARTS: Final = MORE_FRAGMENTS | FRAGMENT_OFFSET
_IPV6_PARTS: Final = 0xFFF9
_PORTS_BYTES: Final = 4
_PORTS: Final = Struct(">HH")
_ETHERTYPES: Final = frozenset({0x0800, 0x86DD})
_VLAN_TAGS: Final = frozenset({0x8100, 0x88A8, 0x9100})
_VLANS_MAX: Final = 4
_EXTENSIONS: Final = frozenset({0, 43, 60, 135, 139, 140})
"""Headers of IPv6 before TCP that have their length in the second byte, in units of 8 bytes."""
_EXTENSIONS_MAX: Final = 16


Address = tuple[bytes, int]
"""An address of 4 or 16 bytes, and a port."""
Segment = tuple[bytes, int, int, int, int, int]
"""A TCP segment inside its packet: its flow, sequence number, acknowledged number, flags, and the
places in the packet where its bytes begin and end. The end is behind the packet where the capture
cut it. The flow is both addresses and both ports, those of the sender first, as they stand in the
packet: 12 bytes for IPv4, 36 for IPv6. A plain tuple, because a capture has millions of them.
"""


def _ethernet(packet: bytes) -> int:
    """Return where IP begins, -1 for another protocol."""
    at = 12
    for _ in range(_VLANS_MAX):
        (kind,) = _UINT16.unpack_from(packet, at)
        if kind in _ETHERTYPES:
            return at + 2
        if kind not in _VLAN_TAGS:
            return -1
        at += 4
    return -1


def _cooked(packet: bytes) -> int:
    """Return where IP begins behind Linux's cooked header, version 1."""
    return 16 if _UINT16.unpack_from(packet, 14)[0] in _ETHERTYPES else -1


def _cooked_2(packet: bytes) -> int:
    """Return where IP begins behind Linux's cooked header, version 2."""
    return 20 if _UINT16.unpack_from(packet, 0)[0] in _ETHERTYPES else -1


def _loopback(_: bytes) -> int:
    """Return where IP begins behind the four bytes of a protocol family."""
    return 4


def plain_ip(_: bytes) -> int:
    """Return where IP begins in a packet without a link layer."""
    return 0


LINK_LAYERS: Final[dict[int, Callable[[bytes], int]]] = {
    0: _loopback,
    1: _ethernet,
    12: plain_ip,
    14: plain_ip,
    101: plain_ip,
    108: _loopback,
    113: _cooked,
    228: plain_ip,
    229: plain_ip,
    276: _cooked_2,
}
"""Link type → the function that returns where IP begins in a packet, or -1."""


def segment_of(packet: bytes, ip_start: Callable[[bytes], int]) -> Segment | None:
    """Return the TCP segment of a packet; None for anything else, for a fragment of a packet, and
    for damaged headers.
    """
    try:
        at = ip_start(packet)
        if at < 0:
            return None
        start = packet[at]
        if start != _PLAIN_IPV4:
            if start >> 4 == 4:
                return _of_ipv4(packet, at)
            return _of_ipv6(packet, at) if start >> 4 == 6 else None
        total, parts, protocol, flow, sequence, acknowledged, offset, flags = _IPV4_TCP.unpack_from(
            packet, at
        )
    except (struct_error, IndexError):
        return None
    if protocol != TCP or parts & _PARTS:
        return None
    # A network card that cuts segments itself leaves the length at 0.
    end = at + total if total else len(packet)
    start = at + 20 + (offset >> 4) * 4
    if offset < 0x50 or end < start:
        return None
    return flow, sequence, acknowledged, flags, start, end


def _of_ipv4(packet: bytes, at: int) -> Segment | None:
    """Return the segment behind a header with options."""
    start, total, parts, protocol, addresses = _IPV4.unpack_from(packet, at)
    if protocol != TCP or parts & _PARTS:
        return None
    end = at + total if total else len(packet)
    return _of_tcp(packet, at + (start & 15) * 4, end, addresses)


def _of_ipv6(packet: bytes, at: int) -> Segment | None:
    size_bytes, protocol, addresses = _IPV6.unpack_from(packet, at)
    at += _IPV6.size
    end = at + size_bytes if size_bytes else len(packet)
    for _ in range(_EXTENSIONS_MAX):
        if protocol == TCP:
            return _of_tcp(packet, at, end, addresses)
        if protocol == IPV6_FRAGMENT:
            if _UINT16.unpack_from(packet, at + 2)[0] & _IPV6_PARTS:
                return None
            protocol, at = packet[at], at + 8
        elif protocol in _EXTENSIONS:
            protocol, at = packet[at], at + (packet[at + 1] + 1) * 8
        else:
            return None
    return None


def _of_tcp(packet: bytes, at: int, end: int, addresses: bytes) -> Segment | None:
    ports, sequence, acknowledged, offset, flags = _TCP.unpack_from(packet, at)
    start = at + (offset >> 4) * 4
    if offset < 0x50 or end < start:
        return None
    return addresses + ports, sequence, acknowledged, flags, start, end


def sides_of(flow: bytes) -> tuple[Address, Address]:
    """Return the address and the port of the sender, and those of the receiver."""
    half = (len(flow) - _PORTS_BYTES) // 2
    source_port, target_port = _PORTS.unpack_from(flow, 2 * half)
    return (flow[:half], source_port), (flow[half : 2 * half], target_port)


def reversed_flow(flow: bytes) -> bytes:
    """Return the flow of the other direction."""
    half = (len(flow) - _PORTS_BYTES) // 2
    ports = flow[2 * half :]
    return flow[half : 2 * half] + flow[:half] + ports[2:] + ports[:2]
