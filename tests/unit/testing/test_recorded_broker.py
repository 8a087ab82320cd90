"""A recorded broker in a test: answers of then, and a sentence for everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from minibroker.testing import RecordedBroker
from minibroker.trace.decode import decode
from minibroker.trace.json_lines import DialogueError, to_json
from tests.support.trace_frames import recorded_frames
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def dialogue(tmp_path: Path) -> Path:
    """Return the file of a conversation with Kafka 3.9.1."""
    path = tmp_path / "conversation.jsonl"
    names: dict[bytes, str] = {}
    lines = [to_json(decode(frames, names)) for frames in recorded_frames()]
    path.write_text("\n".join(lines))
    return path


def test_a_client_sees_the_broker_of_then(dialogue: Path) -> None:
    with RecordedBroker(dialogue) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        metadata = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(
            "golden", timeout=60
        )
        assert [(node.host, node.port) for node in metadata.brokers.values()] == [(host, int(port))]
        assert set(metadata.topics) == {"golden"}
        assert {exchange.api for exchange in broker.exchanges} == {"ApiVersions", "Metadata"}
        assert broker.refusals == []


async def test_a_request_that_was_not_recorded_is_told(dialogue: Path) -> None:
    async with RecordedBroker(dialogue) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        with WireClient(host, int(port)) as client, pytest.raises(ConnectionError):
            client.call("metadata", 9, topics=[{"name": "other"}])
        (refusal,) = broker.refusals
        assert refusal.startswith("not recorded: Metadata v9 about other; Metadata v9 was recorded")


def test_a_recorded_broker_has_an_address_while_it_runs(dialogue: Path) -> None:
    broker = RecordedBroker(dialogue)
    with pytest.raises(RuntimeError, match="not running"):
        assert broker.bootstrap
    with broker:
        assert broker.bootstrap
    with pytest.raises(RuntimeError, match="not running"):
        assert broker.bootstrap


def test_a_file_that_is_no_dialogue_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text("{}")
    with pytest.raises(DialogueError, match="line 1: number"), RecordedBroker(path):
        pass
    with pytest.raises(FileNotFoundError), RecordedBroker(tmp_path / "none"):
        pass
