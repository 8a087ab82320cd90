"""Connections of a capture: whose they are, where they begin and end, what is lost; their TLS."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from minibroker.trace import connections
from minibroker.trace.connections import CapturedConnections
from minibroker.trace.decode import Frames, decode
from minibroker.trace.packets import LINK_LAYERS, segment_of
from minibroker.trace.tls_hello import is_tls_data, is_tls_start, server_name
from tests.support.packets import (
    BROKER,
    BROKER_6,
    CLIENT,
    CLIENT_6,
    RAW,
    RST,
    Packet,
    Wire,
    client_hello,
)
from tests.support.trace_frames import numbered, recorded_frames

if TYPE_CHECKING:
    from collections.abc import Iterable


TALK = numbered(recorded_frames())[:40]


def exchanges_of(reader: CapturedConnections, packets: Iterable[Packet]) -> list[Frames]:
    """Return the exchanges of packets, those that are open at the end as well."""
    result: list[Frames] = []
    for packet in packets:
        segment = segment_of(packet.data, LINK_LAYERS[RAW])
        assert segment is not None
        result += reader.add(segment, packet.data, packet.at_us / 1_000)
    result += reader.end(0.0)
    return sorted(result)


def content(exchanges: Iterable[Frames]) -> list[tuple[bytes, bytes | None]]:
    """Return the bytes of exchanges."""
    return [
        (bytes(frames.request), None if frames.answer is None else bytes(frames.answer))
        for frames in exchanges
    ]


def talk_on(wire: Wire, *, mss: int = 1_448) -> Wire:
    """Return the wire with a whole conversation on it."""
    wire.begin()
    wire.talk(TALK, mss=mss)
    wire.end()
    return wire


@pytest.mark.parametrize("mss", [7, 100, 1_448, 65_000])
def test_a_conversation_is_read_whole(mss: int) -> None:
    reader = CapturedConnections()
    exchanges = exchanges_of(reader, talk_on(Wire(), mss=mss).packets)
    assert content(exchanges) == content(TALK)
    assert (reader.tally.connections, reader.tally.lost_bytes) == (1, 0)
    first = exchanges[0]
    assert (first.number, first.connection) == (1, 1)
    assert (first.client_address, first.broker) == ("127.0.0.1:50000", "127.0.0.1:9092")
    assert first.duration_ms is not None


def test_addresses_of_ipv6_have_brackets() -> None:
    (first, *_) = exchanges_of(CapturedConnections(), talk_on(Wire(CLIENT_6, BROKER_6)).packets)
    assert (first.client_address, first.broker) == ("[::1]:50000", "[::1]:9092")


def test_packets_may_come_twice_and_in_another_order() -> None:
    packets = talk_on(Wire(), mss=100).packets
    mixed = packets[:3]
    for at in range(3, len(packets) - 2, 2):
        first, second = packets[at : at + 2]
        mixed += [second, first, second]
    assert content(exchanges_of(CapturedConnections(), [*mixed, *packets[-2:]])) == content(TALK)


def test_a_capture_may_begin_in_the_middle() -> None:
    reader = CapturedConnections()
    wire = Wire()
    wire.talk(TALK)
    for dropped in range(1, 12):
        exchanges = exchanges_of(CapturedConnections(), wire.packets[dropped:])
        behind = content(exchanges)
        assert behind
        assert behind == content(TALK)[-len(behind) :]
        assert len(behind) >= len(TALK) - dropped
    assert exchanges_of(reader, wire.packets[1:])
    assert reader.tally.connections == 1


@pytest.mark.parametrize("lost", range(3, 20))
def test_a_lost_packet_costs_its_exchanges_alone(lost: int) -> None:
    reader = CapturedConnections()
    packets = talk_on(Wire(), mss=120).packets
    exchanges = exchanges_of(reader, packets[:lost] + packets[lost + 1 :])
    whole = [pair for pair in content(exchanges) if pair in content(TALK)]
    assert len(whole) >= len(TALK) - 2
    assert len(exchanges) <= len(TALK) + 1
    assert reader.tally.lost_bytes > 0


def test_packets_that_were_cut_still_say_which_request_it_is() -> None:
    """As with `tcpdump -s 96`: the heads of requests are there, the bodies are not."""
    reader = CapturedConnections()
    packets = [packet._replace(data=packet.data[: 40 + 30]) for packet in talk_on(Wire()).packets]
    apis = [decode(frames, {}).api for frames in exchanges_of(reader, packets)]
    assert apis == [decode(frames, {}).api for frames in TALK]


def test_a_reset_ends_a_connection_and_its_requests() -> None:
    wire = Wire()
    wire.begin()
    wire.talk(TALK[:1])
    wire.talk([TALK[1]._replace(answer=None)])
    wire.end(RST)
    again = Wire(at_us=wire.at_us)
    again.sequences = [1_000, 2_000]
    again.begin()
    again.talk(TALK[2:4])
    exchanges = exchanges_of(CapturedConnections(), [*wire.packets, *again.packets])
    assert content(exchanges) == content([TALK[0], TALK[1]._replace(answer=None), *TALK[2:4]])
    assert [frames.connection for frames in exchanges] == [1, 1, 2, 2]


def test_ports_that_are_used_again_are_another_connection() -> None:
    wire = Wire()
    wire.begin()
    wire.talk(TALK[:1])
    again = Wire(at_us=wire.at_us)
    again.sequences = [9_000, 8_000]
    again.begin()
    again.begin()  # the SYN is sent twice
    again.talk(TALK[1:2])
    exchanges = exchanges_of(
        CapturedConnections(),
        [
            *wire.packets,
            *again.packets[3:],
        ],
    )
    assert content(exchanges) == content(TALK[:2])


@pytest.mark.parametrize(
    ("data", "is_tls"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", False),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), True),
    ],
)
def test_other_protocols_are_passed_over(data: bytes, is_tls: bool) -> None:
    reader = CapturedConnections()
    wire = Wire()
    wire.begin()
    wire.send(data)
    wire.send(data, from_broker=True)
    wire.talk(TALK[:2])
    assert exchanges_of(reader, wire.packets) == []
    assert (reader.tally.connections, reader.tally.tls_connections) == (0, int(is_tls))


def test_connections_with_tls_are_named() -> None:
    reader = CapturedConnections()
    packets: list[Packet] = []
    for number, name in enumerate(("a.example", "b.example", "b.example")):
        wire = Wire((CLIENT[0], 40_000 + number))
        wire.begin()
        wire.send(client_hello(name))
        packets += wire.packets
    middle = Wire((CLIENT[0], 40_010))
    for _ in range(2):
        middle.send(b"\x17\x03\x03\x00\x20" + bytes(32))
        middle.send(b"\x17\x03\x03\x00\x20" + bytes(32), from_broker=True)
    packets += middle.packets
    assert exchanges_of(reader, packets) == []
    assert reader.tally.tls_connections == 4
    assert reader.tally.tls_servers == {
        "127.0.0.1:9092 (a.example)": 1,
        "127.0.0.1:9092 (b.example)": 2,
        "127.0.0.1:9092": 1,
    }


def test_only_the_brokers_of_the_given_ports_count() -> None:
    packets = talk_on(Wire()).packets
    assert content(exchanges_of(CapturedConnections([9_092]), packets)) == content(TALK)
    assert exchanges_of(CapturedConnections([9_093]), packets) == []
    assert exchanges_of(CapturedConnections([CLIENT[1]]), packets[3:]) == []


def test_open_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 3)
    packets: list[Packet] = []
    for number in range(6):
        wire = Wire((CLIENT[0], 40_000 + number), BROKER)
        wire.begin()
        wire.talk(TALK[:1])
        packets += wire.packets
    reader = CapturedConnections()
    assert len(exchanges_of(reader, packets)) == 6
    assert reader.tally.connections == 6


def test_the_name_of_the_server_is_read() -> None:
    hello = client_hello("kafka.example")
    assert is_tls_start(hello)
    assert server_name(hello) == "kafka.example"
    assert server_name(hello[:60]) == ""


def test_only_records_of_tls_begin_it() -> None:
    assert is_tls_data(b"\x17\x03\x03\x00\x20abc")
    for other in (b"", b"\x17\x03\x03", b"\x17\x04\x03\x00\x20", b"\x17\x03\x03\xff\xff", b"GET /"):
        assert not is_tls_data(other)
        assert not is_tls_start(other)


def test_damaged_hellos_are_no_error() -> None:
    chance = random.Random(8)
    for _ in range(2_000):
        hello = bytearray(client_hello("kafka.example"))
        for _ in range(3):
            hello[chance.randrange(len(hello))] = chance.randrange(256)
        server_name(bytes(hello[: chance.randrange(len(hello) + 1)]))
