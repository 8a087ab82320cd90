"""Captures in Wireshark's form whose interfaces differ: the packets, each with its link type.

libpcap reads pcapng only if all interfaces have one link type and keep as much of a packet.
`capture` comes here with the others: Ethernet and a tunnel, or a loopback with `-s 96`.

Source: draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from minibroker.kafka.errors import MinibrokerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BLOCK_BYTES_MAX: Final = 16 << 20
"""A larger block is no block: libpcap takes as much."""
INTERFACES_MAX: Final = 1_000

_SECTION: Final = b"\n\r\r\n"
_INTERFACE: Final = 1
_OLD_PACKET: Final = 2
_SIMPLE_PACKET: Final = 3
_PACKET: Final = 6
_ORDER_LITTLE: Final = b"\x4d\x3c\x2b\x1a"
_ORDER_BIG: Final = _ORDER_LITTLE[::-1]
_TIME_UNIT: Final = 9
"""The option of an interface with the unit of its times."""
_END_BYTES: Final = 4
"""The size of a block stands behind it again."""


class PcapngError(MinibrokerError):
    """Bytes that are no pcapng."""


class LinkedPacket(NamedTuple):
    """A packet as it was captured."""

    at_s: float
    """Seconds since 1970."""
    data: bytes
    link: int
    """The link type of its interface."""


class _Interface(NamedTuple):
    link: int
    snap_bytes: int
    """The most bytes of a packet that are captured, 0 for all."""
    units: float
    """Units of its times in a second."""


class _Layouts:
    """The numbers of a section, whose writer chose the order of bytes."""

    def __init__(self, order: str) -> None:
        self.block = Struct(f"{order}II")
        self.interface = Struct(f"{order}HxxI")
        self.option = Struct(f"{order}HH")
        self.old_packet = Struct(f"{order}HxxIIII")
        self.simple_packet = Struct(f"{order}I")
        self.packet = Struct(f"{order}IIIII")


_LITTLE: Final = _Layouts("<")
_BIG: Final = _Layouts(">")


def read_packets(path: Path) -> Iterator[LinkedPacket]:
    """Yield the packets of a file. Raises PcapngError behind the last one that can be read."""
    with path.open("rb") as file:
        yield from _Sections(file).packets()


class _Sections:
    """The sections of one file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._layouts = _LITTLE
        self._interfaces: list[_Interface] = []

    def packets(self) -> Iterator[LinkedPacket]:
        """Yield the packets. Raises PcapngError."""
        while (block := self._next_block()) is not None:
            kind, body = block
            if kind == _INTERFACE:
                self._add_interface(body)
            elif kind == _PACKET:
                yield self._packet(body, self._layouts.packet)
            elif kind == _SIMPLE_PACKET:
                yield self._simple_packet(body)
            elif kind == _OLD_PACKET:
                yield self._packet(body, self._layouts.old_packet)

    def _next_block(self) -> tuple[int, bytes] | None:
        """Return the kind and the body of the next block, None at the end. Raises PcapngError."""
        head = self._file.read(self._layouts.block.size)
        if not head:
            return None
        if head[:4] == _SECTION:
            self._begin_section()
        if len(head) < self._layouts.block.size:
            raise PcapngError("truncated: the file ends inside a block")
        kind, size_bytes = self._layouts.block.unpack(head)
        body_bytes = size_bytes - len(head)
        if not _END_BYTES <= body_bytes <= BLOCK_BYTES_MAX or size_bytes % 4:
            raise PcapngError(f"a block of {size_bytes} bytes is none")
        body = self._file.read(body_bytes)
        if len(body) < body_bytes:
            raise PcapngError("truncated: the file ends inside a block")
        return kind, body[:-_END_BYTES]

    def _begin_section(self) -> None:
        """Take the order of bytes of a section. Raises PcapngError."""
        order = self._file.read(len(_ORDER_LITTLE))
        if order not in {_ORDER_LITTLE, _ORDER_BIG}:
            raise PcapngError("a section without an order of bytes")
        self._layouts = _LITTLE if order == _ORDER_LITTLE else _BIG
        self._file.seek(-len(order), 1)
        self._interfaces = []

    def _add_interface(self, body: bytes) -> None:
        """Take the description of an interface. Raises PcapngError."""
        layout = self._layouts.interface
        if len(body) < layout.size or len(self._interfaces) == INTERFACES_MAX:
            raise PcapngError("an interface too many, or one without its link type")
        link, snap_bytes = layout.unpack_from(body)
        unit = self._option(body, layout.size, _TIME_UNIT)
        units = 10.0**6
        if unit:
            units = 2.0 ** (unit[0] & 127) if unit[0] & 128 else 10.0 ** unit[0]
        self._interfaces.append(_Interface(link, snap_bytes, units))

    def _option(self, body: bytes, at: int, option: int) -> bytes:
        """Return the value of an option, nothing without it."""
        layout = self._layouts.option
        while len(body) - at >= layout.size:
            code, size_bytes = layout.unpack_from(body, at)
            at += layout.size
            if code == option:
                return body[at : at + size_bytes]
            at += (size_bytes + 3) // 4 * 4
        return b""

    def _packet(self, body: bytes, layout: Struct) -> LinkedPacket:
        """Return the packet of a block. Raises PcapngError."""
        if len(body) < layout.size:
            raise PcapngError("a packet without its head")
        number, high, low, captured, _ = layout.unpack_from(body)
        interface = self._interface(number)
        if captured > len(body) - layout.size:
            raise PcapngError(f"a packet of {captured} bytes in a block of {len(body)}")
        at_s = ((high << 32) + low) / interface.units
        return LinkedPacket(at_s, body[layout.size : layout.size + captured], interface.link)

    def _simple_packet(self, body: bytes) -> LinkedPacket:
        """Return a packet without a time. Raises PcapngError."""
        layout = self._layouts.simple_packet
        if len(body) < layout.size:
            raise PcapngError("a packet without its head")
        interface = self._interface(0)
        (size_bytes,) = layout.unpack_from(body)
        captured = min(size_bytes, interface.snap_bytes or size_bytes, len(body) - layout.size)
        return LinkedPacket(0.0, body[layout.size : layout.size + captured], interface.link)

    def _interface(self, number: int) -> _Interface:
        if number >= len(self._interfaces):
            raise PcapngError(f"a packet of interface {number}, which is not described")
        return self._interfaces[number]
