"""Damaged frames in a trace: each is an exchange and a line, whatever its bytes are."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.protocol.api_keys import APIS, Api
from minibroker.trace.capture import CaptureError, read_capture
from minibroker.trace.connections import CapturedConnections
from minibroker.trace.decode import Frames, decode
from minibroker.trace.full_text import LINES_MAX, full_lines
from minibroker.trace.json_lines import DialogueError, from_json, to_json
from minibroker.trace.line import to_line
from minibroker.trace.packets import LINK_LAYERS, segment_of
from minibroker.trace.plain_values import HIDDEN
from minibroker.trace.subject import SUBJECT_MAX
from tests.fuzz.damage import damaged
from tests.support.packets import RAW, Packet, Wire
from tests.support.trace_frames import numbered, random_frames, recorded_frames

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTES_MAX = 700
"""Characters of a line beside the subjects: head, outcome, notes about damage."""
DAMAGES = 5
CAPTURES = 60


def broken(chance: random.Random, frames: Frames) -> Iterator[Frames]:
    """Yield the frames with damage, several times."""
    for _ in range(DAMAGES):
        yield frames._replace(
            request=damaged(chance, bytes(frames.request)),
            answer=damaged(chance, bytes(frames.answer or b"")),
        )


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_random_values_are_a_short_line(api: Api) -> None:
    for frames in random_frames(api, 1):
        exchange = decode(frames, {})
        assert exchange.request is not None, exchange.subject
        assert exchange.answer is not None, exchange.subject
        assert len(exchange.subject) <= 2 * SUBJECT_MAX + 3
        assert to_line(exchange).isprintable()


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_random_values_come_back_from_json(api: Api) -> None:
    """Passwords and keys aside: they are hidden, and read back as nothing."""
    for frames in random_frames(api, 3):
        exchange = decode(frames, {})
        line = to_json(exchange)
        again = from_json(line)
        assert HIDDEN in line or again == exchange
        assert to_json(from_json(to_json(again))) == to_json(again)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_random_values_in_full_are_lines(api: Api) -> None:
    for frames in random_frames(api, 4):
        lines = list(full_lines(decode(frames, {})))
        assert len(lines) < 2 * LINES_MAX
        assert all(line.isprintable() for line in lines)


def test_damaged_json_is_an_exchange_or_refused() -> None:
    chance = random.Random(2)
    for frames in recorded_frames()[::7]:
        line = to_json(decode(frames, {})).encode()
        for _ in range(DAMAGES):
            with contextlib.suppress(DialogueError):
                from_json(damaged(chance, line).decode("utf-8", "replace"))


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_damaged_values_are_a_line(api: Api) -> None:
    chance = random.Random(api.name)
    for whole in random_frames(api, 2):
        for frames in broken(chance, whole):
            line = to_line(decode(frames, {}))
            assert line.isprintable()
            assert len(line) < 2 * SUBJECT_MAX + NOTES_MAX


def test_a_damaged_capture_is_read_or_refused(tmp_path: Path) -> None:
    """Bytes of packets, of their headers and of the file's own."""
    chance = random.Random(3)
    whole = (Path(__file__).parents[1] / "golden" / "captures" / "clients.pcap").read_bytes()
    path = tmp_path / "kafka.pcap"
    for _ in range(CAPTURES):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 5, 200])):
            data[chance.randrange(chance.choice([40, len(data)]))] = chance.randrange(256)
        path.write_bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])
        connections = CapturedConnections()
        with contextlib.suppress(CaptureError):
            for frames in read_capture(path, connections):
                assert to_line(decode(frames, {})).isprintable()


def test_packets_in_a_random_order_are_exchanges() -> None:
    """Lost, sent again, cut, from several connections."""
    chance = random.Random(4)
    dialogue = numbered(recorded_frames())
    for _ in range(CAPTURES):
        packets: list[Packet] = []
        for port in range(3):
            wire = Wire((b"\x7f\x00\x00\x01", 40_000 + port))
            if chance.random() < 0.7:
                wire.begin()
            wire.talk(chance.sample(dialogue, 20), mss=chance.choice([50, 500, 5_000]))
            packets += wire.packets
        chosen = [packet for packet in packets if chance.random() < 0.9]
        chosen += chance.sample(packets, 20)
        if chance.random() < 0.5:
            chance.shuffle(chosen)
        reader = CapturedConnections()
        exchanges: list[Frames] = []
        for packet in chosen:
            data = packet.data[: chance.choice([len(packet.data)] * 9 + [60])]
            segment = segment_of(data, LINK_LAYERS[RAW])
            if segment is not None:
                exchanges += reader.add(segment, data, packet.at_us / 1_000)
        exchanges += reader.end(0.0)
        numbers = [frames.number for frames in exchanges]
        assert sorted(numbers) == list(range(1, reader.tally.requests + 1))
        for frames in exchanges:
            assert to_line(decode(frames, {})).isprintable()


def test_damaged_dialogues_are_lines() -> None:
    chance = random.Random(1)
    for whole in recorded_frames():
        for frames in broken(chance, whole):
            assert to_line(decode(frames, {})).isprintable()
