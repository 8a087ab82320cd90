"""A capture of the network (pcap, pcapng) → the requests and answers in it, in their order.

libpcap reads the file, by way of `cypcap`: each form and precision of time that tcpdump and
Wireshark write. `packets` finds TCP in a packet, `connections` the exchanges.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import MinibrokerError
from minibroker.trace.packets import LINK_LAYERS, segment_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from minibroker.trace.connections import CapturedConnections
    from minibroker.trace.decode import Frames

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
    try:
        from cypcap import Error, open_offline  # noqa: PLC0415  an extra
    except ImportError:
        raise CaptureError(
            "reading a capture needs cypcap: pip install 'minibroker[trace]'"
        ) from None
    at_ms = 0.0
    try:
        with open_offline(path) as file:
            link = file.datalink()
            ip_start = LINK_LAYERS.get(int(link))
            if ip_start is None:
                name = getattr(link, "name", link)  # a number that libpcap does not know has none
                raise CaptureError(f"{path}: packets of link type {name} are not read")
            tally = connections.tally
            for header, packet in file:
                tally.packets += 1
                segment = segment_of(packet, ip_start)
                if segment is not None:
                    at_ms = header.ts * 1_000
                    yield from connections.add(segment, at_ms)
    except Error as error:
        yield from connections.end(at_ms)
        raise CaptureError(f"{path}: {error.args[-1]}") from None
    yield from connections.end(at_ms)


def in_order(exchanges: Iterable[Frames]) -> Iterator[Frames]:
    """Yield exchanges by number, from 1 on; at most `HELD_MAX` wait for an earlier one.

    Raises CaptureError as its source does, behind the last exchange.
    """
    waiting: list[tuple[int, Frames]] = []
    following = 1
    failure: CaptureError | None = None
    try:
        for frames in exchanges:
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
