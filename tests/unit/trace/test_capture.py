"""Files of captures: both forms, both orders of bytes, every precision, real ones."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from minibroker.trace.capture import HELD_MAX, CaptureError, in_order, read_capture
from minibroker.trace.connections import CapturedConnections
from minibroker.trace.decode import Frames, decode
from tests.support.packets import (
    BROKER_6,
    CLIENT_6,
    ETHERNET,
    LINUX_COOKED_2,
    RAW,
    Packet,
    Wire,
    fragments,
    pcap,
    pcapng,
)
from tests.support.trace_frames import recorded_frames

REAL = Path(__file__).parents[2] / "golden" / "captures" / "clients.pcap"
REAL_PORT = 42_113
TALK = recorded_frames()[:20]


def wire() -> Wire:
    """Return a connection with a conversation."""
    result = Wire()
    result.begin()
    result.talk(TALK)
    result.end()
    return result


def requests_of(path: Path) -> list[bytes]:
    return [bytes(frames.request) for frames in read_capture(path, CapturedConnections())]


@pytest.mark.parametrize(
    "data",
    [
        pcap(wire().packets),
        pcap(wire().packets, order=">"),
        pcap(wire().packets, nanoseconds=True),
        pcap(wire().packets, vlans=2),
        pcap(wire().packets, link=RAW),
        pcapng(wire().packets),
        pcapng(wire().packets, link=LINUX_COOKED_2),
        pcapng(wire().packets, link=ETHERNET, others=[RAW, LINUX_COOKED_2]),
        pcapng(wire().packets, link=ETHERNET, others=[ETHERNET], order=">"),
    ],
    ids=[
        "little",
        "big",
        "nanoseconds",
        "vlans",
        "raw",
        "pcapng",
        "pcapng cooked",
        "interfaces with several link types",
        "interfaces with several lengths",
    ],
)
def test_every_form_is_read(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "kafka.pcap"
    path.write_bytes(data)
    exchanges = list(read_capture(path, CapturedConnections()))
    assert [bytes(frames.request) for frames in exchanges] == [
        bytes(frames.request) for frames in TALK
    ]
    assert exchanges[0].at_ms == pytest.approx(1_700_000_000_000.004, abs=0.001)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"not a capture at all", "unknown file format"),
        (b"", "truncated"),
        (pcap(wire().packets, link=127), "link type IEEE802_11_RADIO are not read"),
        (pcap(wire().packets, link=9_999), "link type 9999 are not read"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "kafka.pcap"
    path.write_bytes(data)
    with pytest.raises(CaptureError, match=message):
        requests_of(path)


def test_packets_of_unknown_links_are_counted_beside_others(tmp_path: Path) -> None:
    path = tmp_path / "kafka.pcapng"
    packets = wire().packets
    path.write_bytes(pcapng(packets, link=ETHERNET, others=[127]))
    reader = CapturedConnections()
    list(read_capture(path, reader))
    assert reader.tally.unread_packets == {127: len(packets) // 2}
    assert reader.tally.packets == len(packets)


def test_interfaces_that_differ_end_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "kafka.pcapng"
    path.write_bytes(pcapng(wire().packets, others=[RAW])[:-5])
    exchanges: list[Frames] = []
    with pytest.raises(CaptureError, match="truncated"):  # noqa: PT012  what came before counts
        for frames in read_capture(path, CapturedConnections()):
            exchanges.append(frames)  # noqa: PERF402
    assert len(exchanges) == len(TALK)


@pytest.mark.parametrize("is_ipv6", [False, True])
def test_fragments_of_packets_are_put_together(tmp_path: Path, is_ipv6: bool) -> None:
    talk = Wire(CLIENT_6, BROKER_6) if is_ipv6 else Wire()
    talk.begin()
    talk.talk(TALK)
    packets: list[Packet] = []
    for number, packet in enumerate(talk.packets):
        parts = fragments(packet, 64, number)
        packets += reversed(parts) if number % 2 else parts
    path = tmp_path / "kafka.pcap"
    path.write_bytes(pcap(packets, link=RAW))
    reader = CapturedConnections()
    exchanges = [bytes(frames.request) for frames in read_capture(path, reader)]
    assert exchanges == [bytes(frames.request) for frames in TALK]
    assert (reader.tally.lost_bytes, reader.tally.lost_fragments) == (0, 0)


def test_fragments_without_the_others_are_counted(tmp_path: Path) -> None:
    talk = Wire()
    talk.begin()
    talk.talk(TALK[:1])
    parts = [fragments(packet, 64, number) for number, packet in enumerate(talk.packets)]
    last = next(number for number, packet in enumerate(parts) if len(packet) > 1)
    packets = [*parts[:last], parts[last][:-1], *parts[last + 1 :]]
    path = tmp_path / "kafka.pcap"
    path.write_bytes(pcap([part for packet in packets for part in packet], link=RAW))
    reader = CapturedConnections()
    list(read_capture(path, reader))
    assert reader.tally.lost_fragments == len(parts[last]) - 1


def test_a_file_that_ends_inside_a_packet_gives_what_is_before(tmp_path: Path) -> None:
    path = tmp_path / "kafka.pcap"
    path.write_bytes(pcap(wire().packets)[:-1])
    exchanges: list[Frames] = []
    with pytest.raises(CaptureError, match="truncated"):  # noqa: PT012  what came before counts
        for frames in read_capture(path, CapturedConnections()):
            exchanges.append(frames)  # noqa: PERF402
    assert len(exchanges) == len(TALK)


def test_exchanges_come_in_the_order_of_their_requests() -> None:
    first, second, third = TALK[:3]
    assert list(in_order([third, first, second])) == [first, second, third]
    many = [first._replace(number=number) for number in range(2, HELD_MAX + 5)]
    assert [frames.number for frames in in_order([*many, first])][:2] == [2, 3]


def test_a_capture_of_real_clients_is_read_whole() -> None:
    """librdkafka and kafka-python at minibroker, captured by tcpdump on the loopback."""
    reader, names = CapturedConnections(), {}
    exchanges = [decode(frames, names) for frames in read_capture(REAL, reader)]
    assert (len(exchanges), reader.tally.connections, reader.tally.lost_bytes) == (55, 12, 0)
    assert not any("not read" in exchange.subject for exchange in exchanges)
    sync = next(exchange for exchange in exchanges if exchange.api == "SyncGroup")
    assert sync.subject.endswith("→ gets orders-0 orders-1 orders-2")
    fetch = next(exchange for exchange in exchanges if exchange.api == "Fetch")
    assert fetch.subject.startswith("orders-2 @0 → orders-2 21 records")
    unanswered = [exchange.api for exchange in exchanges if exchange.answer_bytes is None]
    assert unanswered == ["FindCoordinator", "Fetch", "Produce"]


def tshark_requests(path: Path, port: int) -> list[tuple[str, str, str]]:
    """Return API key, version and correlation id of the requests that tshark reads."""
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("no tshark here (Debian: apt install tshark)")
    fields = ("kafka.api_key", "kafka.api_version", "kafka.correlation_id")
    command = [tshark, "-r", str(path), "-d", f"tcp.port=={port},kafka", "-T", "json", "-Y"]
    command += [f"kafka.api_key && tcp.dstport=={port}", "--no-duplicate-keys"]
    output = subprocess.run(
        [*command, *(word for field in fields for word in ("-e", field))],
        capture_output=True,
        check=True,
        timeout=120,
    ).stdout
    rows: list[tuple[str, str, str]] = []
    for packet in json.loads(output):
        layers = packet["_source"]["layers"]
        rows += zip(*(layers[field] for field in fields), strict=True)
    return rows


@pytest.mark.parametrize("mss", [200, 1_448])
def test_tshark_reads_the_same_requests(tmp_path: Path, mss: int) -> None:
    path = tmp_path / "kafka.pcap"
    talk = Wire()
    talk.begin()
    for broker in ("3.9.1", "4.4.0"):
        talk.talk([frames for frames in recorded_frames(broker) if frames.answer], mss=mss)
    path.write_bytes(pcap(talk.packets, link=ETHERNET))
    compare(path, 9_092)


def test_tshark_reads_the_same_requests_of_real_clients() -> None:
    compare(REAL, REAL_PORT)


def compare(path: Path, port: int) -> None:
    """Check that tshark has the same requests, in the same order."""
    names: dict[bytes, str] = {}
    ours = [decode(frames, names) for frames in read_capture(path, CapturedConnections())]
    theirs = tshark_requests(path, port)
    heads = [
        (
            str(int.from_bytes(bytes(frames.request[:2]))),
            str(exchange.version),
            str(exchange.correlation_id),
        )
        for frames, exchange in zip(read_capture(path, CapturedConnections()), ours, strict=True)
    ]
    assert heads == theirs
