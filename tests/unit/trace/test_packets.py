"""TCP in packets of every link layer."""

from __future__ import annotations

import random
import struct

import pytest

from minibroker.trace.packets import LINK_LAYERS, reversed_flow, segment_of, sides_of
from tests.support.packets import (
    ACK,
    BROKER,
    BROKER_6,
    CLIENT,
    CLIENT_6,
    ETHERNET,
    LINUX_COOKED,
    LINUX_COOKED_2,
    LOOPBACK,
    PSH,
    RAW,
    Wire,
    linked,
)


def packet(*, is_ipv6: bool = False) -> bytes:
    """Return an IP packet with the bytes `hello`."""
    wire = Wire(CLIENT_6, BROKER_6) if is_ipv6 else Wire()
    wire.send(b"hello")
    return wire.packets[0].data


@pytest.mark.parametrize("link", [ETHERNET, RAW, LINUX_COOKED, LINUX_COOKED_2, LOOPBACK])
@pytest.mark.parametrize("is_ipv6", [False, True])
def test_a_segment_is_found_behind_every_link_layer(link: int, is_ipv6: bool) -> None:
    frame = linked(packet(is_ipv6=is_ipv6), link)
    padded = frame + b"\x00\x00"  # as Ethernet pads short packets
    segment = segment_of(padded, LINK_LAYERS[link])
    assert segment is not None
    flow, sequence, acknowledged, flags, start, end = segment
    sides = (CLIENT_6, BROKER_6) if is_ipv6 else (CLIENT, BROKER)
    assert sides_of(flow) == sides
    assert sides_of(reversed_flow(flow)) == sides[::-1]
    assert (sequence, acknowledged) == (4_294_967_000, 7)
    assert flags == PSH | ACK
    assert padded[start:end] == b"hello"


def payload_of(data: bytes, link: int = RAW) -> bytes:
    """Return the bytes of the segment in a packet."""
    segment = segment_of(data, LINK_LAYERS[link])
    assert segment is not None
    return data[segment[4] : segment[5]]


@pytest.mark.parametrize("vlans", [1, 2])
def test_tags_of_virtual_networks_are_passed(vlans: int) -> None:
    assert payload_of(linked(packet(), ETHERNET, vlans), ETHERNET) == b"hello"


def test_options_of_ipv4_are_passed() -> None:
    data = packet()
    longer = b"\x46" + data[1:2] + struct.pack(">H", len(data) + 4) + data[4:20] + bytes(4)
    assert payload_of(longer + data[20:]) == b"hello"


def test_a_cut_packet_says_how_much_was_sent() -> None:
    data = packet()[:-3]
    segment = segment_of(data, LINK_LAYERS[RAW])
    assert segment is not None
    start, end = segment[4:]
    assert (data[start:end], end - start) == (b"he", 5)


def test_a_length_of_zero_means_the_whole_packet() -> None:
    """Network cards that cut segments themselves leave it."""
    data = bytearray(packet())
    data[2:4] = b"\x00\x00"
    assert payload_of(bytes(data)) == b"hello"


def test_headers_of_ipv6_are_passed() -> None:
    data = packet(is_ipv6=True)
    options = struct.pack(">BB6x", 44, 0)
    fragment = struct.pack(">BBHI", 6, 0, 0, 0)
    body = options + fragment + data[40:]
    longer = data[:4] + struct.pack(">HB", len(body), 0) + data[7:40] + body
    assert payload_of(longer) == b"hello"
    for place in (1, 8):  # more fragments follow; not the first one
        part = bytearray(longer)
        part[40 + 8 + 2 : 40 + 8 + 4] = struct.pack(">H", place)
        assert segment_of(bytes(part), LINK_LAYERS[RAW]) is None


def test_other_packets_have_no_segment() -> None:
    data = packet()
    datagram = data[:9] + b"\x11" + data[10:]
    fragment = data[:6] + b"\x00\x10" + data[8:]
    short_header = data[:32] + b"\x40" + data[33:]
    for other in (datagram, fragment, short_header, b"\x50" + data[1:], b""):
        assert segment_of(other, LINK_LAYERS[RAW]) is None
    assert segment_of(bytes(12) + b"\x08\x06" + data, LINK_LAYERS[ETHERNET]) is None
    assert segment_of(bytes(12) + b"\x81\x00\x00\x01" * 9 + data, LINK_LAYERS[ETHERNET]) is None
    assert segment_of(bytes(14) + b"\x08\x06" + data, LINK_LAYERS[LINUX_COOKED]) is None
    assert segment_of(b"\x08\x06" + bytes(18) + data, LINK_LAYERS[LINUX_COOKED_2]) is None


def test_damaged_packets_are_no_error() -> None:
    chance = random.Random(5)
    for _ in range(3_000):
        data = bytearray(packet(is_ipv6=chance.random() < 0.5))
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        link = chance.choice(list(LINK_LAYERS))
        segment_of(
            linked(bytes(data[: chance.randrange(len(data) + 1)]) or b"\0", link), LINK_LAYERS[link]
        )
