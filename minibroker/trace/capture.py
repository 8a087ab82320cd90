"""A capture of the network (pcap, pcapng) → the requests and answers in it, in their order.

libpcap reads the file, by way of `cypcap`: each form and precision of time that tcpdump and
Wireshark write; `pcapng` reads files whose interfaces differ. `packets` finds TCP in a packet,
`fragments` puts packets together that a router has cut, `connections` finds the exchanges.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import MinibrokerError
from minibroker.trace.fragments import Fragments
from minibroker.trace.packets import LINK_LAYERS, plain_ip, segment_of
from minibroker.trace.pcapng import PcapngError, read_packets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from minibroker.trace.connections import CapturedConnections, CaptureTally
    from minibroker.trace.decode import Frames

    _TimedPacket = tuple[float, bytes, Callable[[bytes], int]]
    """Seconds since 1970, the bytes, and the function that returns where IP begins in them."""

_INTERFACES_DIFFER: Final = "different from"
"""Words of libpcap's error about interfaces with several link types, or several lengths."""
HELD_MAX: Final = 10_000
"""Exchanges that wait for an earlier one, to come in the order of their requests."""


class CaptureError(MinibrokerError):
    """A file that is no capture, or one of a kind that cannot be read."""


def read_capture(path: Path, connections: CapturedConnections) -> Iterator[Frames]:
    """Yield the exchanges of a file in the order of their requests, as far as `HELD_MAX` allows.

    Raises CaptureError: the file is no capture, it is cut inside a packet, its link layer is
    unknown, or cypcap is not installed.
    """
    return in_order(_read(path, connections))


def _read(path: Path, connections: CapturedConnections) -> Iterator[Frames]:
    """Yield the exchanges of a file as they end."""
    tally, add, fragments = connections.tally, connections.add, Fragments()
    at_s = 0.0
    failure: CaptureError | None = None
    try:
        for at_s, packet, ip_start in _packets(path, tally):
            tally.packets += 1
            segment = segment_of(packet, ip_start)
            if segment is None:
                whole = fragments.add(packet, ip_start)
                if whole is None or (segment := segment_of(whole, plain_ip)) is None:
                    continue
                ended = add(segment, whole, at_s * 1_000)
            else:
                ended = add(segment, packet, at_s * 1_000)
            if ended:
                yield from ended
    except CaptureError as error:
        failure = error
    tally.lost_fragments = fragments.end()
    yield from connections.end(at_s * 1_000)
    if failure is not None:
        raise failure


def _packets(path: Path, tally: CaptureTally) -> Iterator[_TimedPacket]:
    """Yield the packets of a file. Raises CaptureError behind the last one that can be read."""
    try:
        from cypcap import Error, open_offline  # noqa: PLC0415  an extra
    except ImportError:
        raise CaptureError(
            "reading a capture needs cypcap: pip install 'minibroker[trace]'"
        ) from None
    try:
        with open_offline(path) as file:
            link = file.datalink()
            ip_start = LINK_LAYERS.get(int(link))
            if ip_start is None:
                name = getattr(link, "name", link)  # a number that libpcap does not know has none
                raise CaptureError(f"{path}: packets of link type {name} are not read")
            for header, packet in file:
                yield header.ts, packet, ip_start
        return
    except Error as error:
        reason = str(error.args[-1])
    if _INTERFACES_DIFFER not in reason or not path.is_file():
        raise CaptureError(f"{path}: {reason}")
    # libpcap does not read on.
    yield from _packets_of_interfaces(path, tally)


def _packets_of_interfaces(path: Path, tally: CaptureTally) -> Iterator[_TimedPacket]:
    """Yield the packets behind those that libpcap has read. Raises CaptureError."""
    try:
        for packet in islice(read_packets(path), tally.packets, None):
            ip_start = LINK_LAYERS.get(packet.link)
            if ip_start is None:
                tally.note_unread(packet.link)
            else:
                yield packet.at_s, packet.data, ip_start
    except PcapngError as error:
        raise CaptureError(f"{path}: {error}") from None


def in_order(exchanges: Iterable[Frames]) -> Iterator[Frames]:
    """Yield exchanges by number, from 1 on; at most `HELD_MAX` wait for an earlier one.

    Raises CaptureError as its source does, behind the last exchange.
    """
    waiting: list[tuple[int, Frames]] = []
    following = 1
    failure: CaptureError | None = None
    try:
        for frames in exchanges:
            if frames.number == following and not waiting:
                following += 1
                yield frames
                continue
            heappush(waiting, (frames.number, frames))
            while waiting and (waiting[0][0] <= following or len(waiting) > HELD_MAX):
                number, first = heappop(waiting)
                following = number + 1
                yield first
    except CaptureError as error:
        failure = error
    while waiting:
        yield heappop(waiting)[1]
    if failure is not None:
        raise failure
