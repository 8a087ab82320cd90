"""Old clients get the same answers from minibroker as from Kafka 3.9.1 (`record_old_formats`)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.records.batch import HEADER_FIELDS, iterate_headers
from minibroker.kafka.records.record import decode_records
from tests.golden.old_format_cases import sets, topics
from tests.golden.record_old_formats import TARGET, create_topics, exchange
from tests.support.in_process import InProcessBroker, ManualClock
from tests.support.message_sets import Message, magics, parse, unpack
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from pathlib import Path

ROWS: list[dict[str, Any]] = json.loads(TARGET.read_text())
TOPICS = sorted(topics())


def test_every_set_was_recorded() -> None:
    assert [(row["topic"], row["set"]) for row in ROWS] == [
        (topic, name) for topic in topics() for name in sets(topic)
    ]


@pytest.mark.parametrize("topic", TOPICS)
async def test_old_formats_get_the_same_answers_as_kafka(topic: str, tmp_path: Path) -> None:
    clock = ManualClock()
    settings = {"num.partitions": "1"}
    async with InProcessBroker(tmp_path, settings, clock=clock) as running:
        host, port = running.address
        rows = [row for row in ROWS if row["topic"] == topic]
        problems = await asyncio.to_thread(_replay, host, port, clock, rows)
    assert not problems, "\n".join(problems)


def _replay(host: str, port: int, clock: ManualClock, rows: list[dict[str, Any]]) -> list[str]:
    """Return the differences from the recorded answers."""
    problems = []
    topic = rows[0]["topic"]
    with WireClient(host, port) as client:
        create_topics(client, [topic])
        for partition, row in enumerate(rows):
            version, records = sets(topic)[row["set"]]
            if row["produced"][2] > 0:
                clock.ms = row["produced"][2]
            elif topic.endswith("-limit"):
                clock.ms = RECORDED_MS
            got = exchange(client, topic, partition, row["set"], version, records)
            for key in sorted(row.keys() | got.keys()):
                expected, actual = _comparable(row.get(key)), _comparable(got.get(key))
                if expected != actual:
                    problems.append(f"{row['set']}, {key}:\n  kafka {expected}\n  we    {actual}")
    return problems


RECORDED_MS = max(row["produced"][2] for row in ROWS)
"""About when the golden file was made: the `-limit` topics compare with the clock."""


def _comparable(value: Any) -> Any:
    """Return decoded records, so that different compressors give the same."""
    if isinstance(value, dict):
        return {key: [code, _contents(bytes.fromhex(data))] for key, (code, data) in value.items()}
    return value


def _contents(data: bytes) -> Any:
    if 2 not in magics(data):
        return [_unfolded(message) for message in parse(data)]
    contents: list[Any] = []
    for position, header in iterate_headers(data):
        assert header.magic == 2
        fields = {
            name: getattr(header, name)
            for name in HEADER_FIELDS
            if name not in ("crc", "size_bytes")
        }
        contents.append((fields, decode_records(data, position)))
    return contents


def _unfolded(message: Message) -> Any:
    codec = message.attributes & 7
    if not codec:
        return tuple(message)
    assert message.value is not None
    inner = parse(unpack(codec, message.value, message.magic))
    return (*message[:-1], [tuple(item) for item in inner])
