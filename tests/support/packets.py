"""Captures of the network, written packet by packet: an independent writer of pcap and pcapng.

A `Wire` is one connection: its sides send bytes, and its packets are those that tcpdump would
write.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from minibroker.trace.decode import Frames

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
CLIENT = (b"\x7f\x00\x00\x01", 50_000)
BROKER = (b"\x7f\x00\x00\x01", 9_092)
CLIENT_6 = (bytes(15) + b"\x01", 50_000)
BROKER_6 = (bytes(15) + b"\x01", 9_092)
ETHERNET, RAW, LINUX_COOKED, LINUX_COOKED_2, LOOPBACK = 1, 101, 113, 276, 0
MSS = 1_448


class Packet(NamedTuple):
    """A packet of IP, and when it was captured."""

    at_us: int
    data: bytes


class Wire:
    """One connection. Times go on by a microsecond a packet; `at_us` may be set."""

    def __init__(
        self,
        client: tuple[bytes, int] = CLIENT,
        broker: tuple[bytes, int] = BROKER,
        at_us: int = 1_700_000_000_000_000,
    ) -> None:
        self.sides = (client, broker)
        self.sequences = [4_294_967_000, 7]  # the client's wraps soon
        self.at_us = at_us
        self.packets: list[Packet] = []

    def begin(self) -> None:
        """Add the three packets of the handshake."""
        self._add(False, SYN, b"")
        self.sequences[0] = (self.sequences[0] + 1) % (1 << 32)
        self._add(True, SYN | ACK, b"")
        self.sequences[1] += 1
        self._add(False, ACK, b"")

    def send(self, data: bytes, *, from_broker: bool = False, mss: int = MSS) -> None:
        """Add packets with the bytes."""
        for at in range(0, len(data), mss):
            piece = data[at : at + mss]
            self._add(from_broker, PSH | ACK, piece)
            side = int(from_broker)
            self.sequences[side] = (self.sequences[side] + len(piece)) % (1 << 32)

    def end(self, flags: int = FIN) -> None:
        """Add the end of both sides, or a reset."""
        self._add(False, flags | ACK, b"")
        if flags == FIN:
            self.sequences[0] = (self.sequences[0] + 1) % (1 << 32)
            self._add(True, FIN | ACK, b"")

    def talk(self, exchanges: Iterable[Frames], *, mss: int = MSS) -> None:
        """Add the requests and answers of exchanges."""
        for frames in exchanges:
            self.send(len(frames.request).to_bytes(4, "big") + bytes(frames.request), mss=mss)
            if frames.answer is not None:
                answer = len(frames.answer).to_bytes(4, "big") + bytes(frames.answer)
                self.send(answer, from_broker=True, mss=mss)

    def _add(self, from_broker: bool, flags: int, payload: bytes) -> None:
        source, target = self.sides[:: -1 if from_broker else 1]
        tcp = struct.pack(
            ">HHIIBBHHH",
            source[1],
            target[1],
            self.sequences[from_broker],
            self.sequences[not from_broker] if flags & ACK else 0,
            0x50,
            flags,
            65_535,
            0,
            0,
        )
        self.at_us += 1
        self.packets.append(Packet(self.at_us, ip(source[0], target[0], tcp + payload)))


def ip(source: bytes, target: bytes, body: bytes) -> bytes:
    """Return a packet of IPv4 or IPv6 with TCP in it."""
    if len(source) == 4:
        return (
            struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, 6, 0)
            + source
            + target
            + body
        )
    return struct.pack(">IHBB", 6 << 28, len(body), 6, 64) + source + target + body


def linked(packet: bytes, link: int, vlans: int = 0) -> bytes:
    """Return an IP packet with a link layer before it."""
    kind = b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"
    if link == ETHERNET:
        return bytes(12) + b"\x81\x00\x00\x05" * vlans + kind + packet
    if link == LINUX_COOKED:
        return bytes(14) + kind + packet
    if link == LINUX_COOKED_2:
        return kind + bytes(18) + packet
    return (b"\x02\x00\x00\x00" if link == LOOPBACK else b"") + packet


def pcap(
    packets: Sequence[Packet],
    *,
    link: int = ETHERNET,
    vlans: int = 0,
    order: str = "<",
    nanoseconds: bool = False,
    snap: int = 262_144,
) -> bytes:
    """Return a file of libpcap's old form; `snap`: bytes of a packet that are captured."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    for at_us, data in packets:
        frame = linked(data, link, vlans)
        seconds, microseconds = divmod(at_us, 1_000_000)
        fraction = microseconds * 1_000 if nanoseconds else microseconds
        captured = frame[:snap]
        parts += (
            struct.pack(f"{order}IIII", seconds, fraction, len(captured), len(frame)),
            captured,
        )
    return b"".join(parts)


def pcapng(
    packets: Sequence[Packet],
    *,
    link: int = ETHERNET,
    others: Sequence[int] = (),
    order: str = "<",
    snap: int = 262_144,
) -> bytes:
    """Return a file of Wireshark's form; `others`: link types of further interfaces, each of which
    is described before its first packet. The packets go round.
    """
    section = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
    parts = [_block(0x0A0D0D0A, section, order)]
    links = (link, *others)
    for number, (at_us, data) in enumerate(packets):
        if number < len(links):
            interface = struct.pack(f"{order}HHI", links[number], 0, snap + number)
            parts.append(_block(1, interface, order))
        frame = linked(data, links[number % len(links)])
        head = struct.pack(
            f"{order}IIIII",
            number % len(links),
            at_us >> 32,
            at_us & 0xFFFFFFFF,
            len(frame),
            len(frame),
        )
        parts.append(_block(6, head + frame + bytes(-len(frame) % 4), order))
    return b"".join(parts)


def fragments(packet: Packet, part_bytes: int, number: int = 1) -> list[Packet]:
    """Return a packet in parts, as a router sends it on; `part_bytes` is a multiple of 8."""
    data = packet.data
    is_ipv4 = data[0] >> 4 == 4
    header, body = (data[:20], data[20:]) if is_ipv4 else (data[:40], data[40:])
    parts: list[Packet] = []
    for at in range(0, len(body), part_bytes):
        piece = body[at : at + part_bytes]
        has_more = at + len(piece) < len(body)
        if is_ipv4:
            place = struct.pack(">HHH", 20 + len(piece), number, at // 8 | has_more << 13)
            parts.append(packet._replace(data=header[:2] + place + header[8:] + piece))
            continue
        extension = struct.pack(">BBHI", header[6], 0, at | has_more, number)
        size = struct.pack(">HB", len(extension) + len(piece), 44)
        parts.append(packet._replace(data=header[:4] + size + header[7:] + extension + piece))
    return parts


def _block(kind: int, body: bytes, order: str) -> bytes:
    size = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + size + body + size


def client_hello(name: str) -> bytes:
    """Return the first bytes of a TLS connection to a server of this name."""
    server = struct.pack(">HBH", len(name) + 3, 0, len(name)) + name.encode()
    extensions = struct.pack(">HH", 10, 4) + b"\x00\x02\x00\x1d"
    extensions += struct.pack(">HH", 0, len(server)) + server
    body = b"\x03\x03" + bytes(32) + b"\x20" + bytes(32) + b"\x00\x02\x13\x01" + b"\x01\x00"
    body += struct.pack(">H", len(extensions)) + extensions
    hello = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + struct.pack(">H", len(hello)) + hello
