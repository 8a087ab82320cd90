"""Fragments in any order are a packet; those that become none are counted, within a bound."""

from __future__ import annotations

import random

import pytest

from minibroker.trace import fragments as limits
from minibroker.trace.fragments import FRAGMENTS_MAX, PACKETS_MAX, Fragments
from minibroker.trace.packets import plain_ip
from tests.support.packets import BROKER_6, CLIENT_6, Wire, fragments

DATA = bytes(range(256)) * 5


def packet(*, is_ipv6: bool = False) -> bytes:
    wire = Wire(CLIENT_6, BROKER_6) if is_ipv6 else Wire()
    wire.send(DATA)
    return wire.packets[0].data


def parts_of(number: int = 1, part_bytes: int = 200, *, is_ipv6: bool = False) -> list[bytes]:
    """Return the fragments of a packet with this id."""
    wire = Wire(CLIENT_6, BROKER_6) if is_ipv6 else Wire()
    wire.send(DATA)
    return [part.data for part in fragments(wire.packets[0], part_bytes, number)]


def all_of(waiting: Fragments, parts: list[bytes]) -> list[bytes]:
    """Return the packets that parts become."""
    packets = [waiting.add(part, plain_ip) for part in parts]
    return [whole for whole in packets if whole is not None]


@pytest.mark.parametrize("is_ipv6", [False, True])
def test_every_order_gives_the_packet(is_ipv6: bool) -> None:
    chance = random.Random(2)
    waiting = Fragments()
    for number in range(50):
        parts = parts_of(number, is_ipv6=is_ipv6)
        parts += chance.sample(parts[:-1], 2)  # sent again
        chance.shuffle(parts)
        (whole,) = all_of(waiting, parts)[:1]
        assert whole[8:] == packet(is_ipv6=is_ipv6)[8:]
        waiting.end()


def test_other_packets_are_none() -> None:
    data = packet()
    datagram = bytearray(parts_of()[0])
    datagram[9] = 17
    waiting = Fragments()
    assert all_of(waiting, [data, bytes(datagram), b"", data[:3], b"\x50" + data[1:]]) == []
    assert waiting.end() == 0


def test_a_fragment_that_was_cut_is_lost() -> None:
    first, *others = parts_of()
    waiting = Fragments()
    assert all_of(waiting, [first[:-1], *others]) == []
    assert waiting.end() == len(others) + 1


def test_an_id_that_is_used_again_begins_anew() -> None:
    waiting = Fragments()
    old = [bytes([*part[:-1], part[-1] ^ 1]) for part in parts_of()]
    assert all_of(waiting, old[:-1]) == []
    (whole,) = all_of(waiting, parts_of())
    assert whole[8:] == packet()[8:]
    assert waiting.end() == len(old) - 1


def test_waiting_packets_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Fragments()
    for number in range(PACKETS_MAX + 3):
        waiting.add(parts_of(number)[0], plain_ip)
    assert waiting.lost == 3
    monkeypatch.setattr(limits, "BYTES_MAX", 300)
    for number in range(1_000, 1_003):
        waiting.add(parts_of(number)[0], plain_ip)
    assert waiting.lost == PACKETS_MAX + 3 + 2


def test_parts_of_a_packet_are_bounded() -> None:
    waiting = Fragments()
    first = parts_of()[0]
    for place in range(1, FRAGMENTS_MAX + 2):
        part = first[:2] + (28).to_bytes(2, "big") + first[4:6]
        part += (place | 1 << 13).to_bytes(2, "big") + first[8:28]
        waiting.add(part, plain_ip)
    assert waiting.lost == FRAGMENTS_MAX


def test_damaged_fragments_are_no_error() -> None:
    chance = random.Random(3)
    waiting = Fragments()
    for number in range(1_500):
        for part in parts_of(number % 20, is_ipv6=number % 2 == 0):
            data = bytearray(part)
            data[chance.randrange(60)] = chance.randrange(256)
            waiting.add(bytes(data[: chance.randrange(len(data) + 1)]), plain_ip)
    assert waiting.end() > 0
