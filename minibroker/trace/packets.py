"""A captured packet → the TCP segment in it.

First station of a capture: `capture` reads packets, this module finds TCP in them, `tcp_streams`
puts segments in order. Link layers: Ethernet with VLAN tags, Linux's cooked ones (`tcpdump -i
any`), the loopback of BSD and macOS, plain IP. Above: IPv4 and IPv6 with its extension headers.

Source: the link types of tcpdump.org; RFC 791, RFC 8200, RFC 9293, IEEE 802.1Q.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10

_UINT16: Final = Struct(">H")
_TCP: Final = Struct(">HHIIBB")
_IPV4: Final = Struct(">BBHHHBBH4s4s")
_IPV6: Final = Struct(">IHBB16s16s")
_TCP_PROTOCOL: Final = 6
_ETHERTYPES: Final = frozenset({0x0800, 0x86DD})
_VLAN_TAGS: Final = frozenset({0x8100, 0x88A8, 0x9100})
_VLANS_MAX: Final = 4
_EXTENSIONS: Final = frozenset({0, 43, 60, 135, 139, 140})
"""Headers of IPv6 before TCP that have their length in the second byte, in units of 8 bytes."""
_FRAGMENT: Final = 44
_EXTENSIONS_MAX: Final = 16


class TcpSegment(NamedTuple):
    """One TCP segment."""

    source: tuple[bytes, int]
    """Address, 4 or 16 bytes, and port."""
    target: tuple[bytes, int]
    sequence: int
    acknowledged: int
    flags: int
    payload: bytes
    """Its bytes, as far as they were captured."""
    size_bytes: int
    """Bytes that were sent; more than those of `payload` if the capture cut the packet."""


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


def _raw(_: bytes) -> int:
    return 0


LINK_LAYERS: Final[dict[int, Callable[[bytes], int]]] = {
    0: _loopback,
    1: _ethernet,
    12: _raw,
    14: _raw,
    101: _raw,
    108: _loopback,
    113: _cooked,
    228: _raw,
    229: _raw,
    276: _cooked_2,
}
"""Link type → the function that returns where IP begins in a packet, or -1."""


def segment_of(packet: bytes, ip_start: Callable[[bytes], int]) -> TcpSegment | None:
    """Return the TCP segment of a packet, None for anything else and for damaged headers."""
    try:
        at = ip_start(packet)
        if at < 0:
            return None
        version = packet[at] >> 4
        if version == 4:
            return _of_ipv4(packet, at)
        return _of_ipv6(packet, at) if version == 6 else None
    except (struct_error, IndexError):
        return None


def _of_ipv4(packet: bytes, at: int) -> TcpSegment | None:
    start, _, total, _, fragment, _, protocol, _, source, target = _IPV4.unpack_from(packet, at)
    if protocol != _TCP_PROTOCOL or fragment & 0x1FFF:
        return None
    # A network card that cuts segments itself leaves the length at 0.
    end = at + total if total else len(packet)
    return _of_tcp(packet, at + (start & 15) * 4, end, source, target)


def _of_ipv6(packet: bytes, at: int) -> TcpSegment | None:
    _, size_bytes, protocol, _, source, target = _IPV6.unpack_from(packet, at)
    at += _IPV6.size
    end = at + size_bytes if size_bytes else len(packet)
    for _ in range(_EXTENSIONS_MAX):
        if protocol == _TCP_PROTOCOL:
            return _of_tcp(packet, at, end, source, target)
        if protocol == _FRAGMENT:
            if _UINT16.unpack_from(packet, at + 2)[0] & 0xFFF8:
                return None
            protocol, at = packet[at], at + 8
        elif protocol in _EXTENSIONS:
            protocol, at = packet[at], at + (packet[at + 1] + 1) * 8
        else:
            return None
    return None


def _of_tcp(packet: bytes, at: int, end: int, source: bytes, target: bytes) -> TcpSegment | None:
    source_port, target_port, sequence, acknowledged, offset, flags = _TCP.unpack_from(packet, at)
    start = at + (offset >> 4) * 4
    if start < at + 20 or end < start:
        return None
    return TcpSegment(
        (source, source_port),
        (target, target_port),
        sequence,
        acknowledged,
        flags,
        packet[start:end],
        end - start,
    )
