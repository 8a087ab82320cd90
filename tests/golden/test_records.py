"""Batches, snapshots and epoch checkpoints that Apache Kafka 3.9.1 left, read by our code."""

from __future__ import annotations

from pathlib import Path

import pytest

from minibroker.broker.storage.epochs import LeaderEpochs
from minibroker.broker.storage.producer_state import ProducerState
from minibroker.kafka.records.batch import crc_is_valid, iterate_headers
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.control import read_marker
from minibroker.kafka.records.record import decode_records
from tests.golden.cases import RECORDS, TIMESTAMP_MS

DIRECTORY = Path(__file__).parent / "records"
LOGS = sorted(DIRECTORY.glob("*.log"))
SAME_RECORDS = [
    path for path in LOGS if path.stem not in ("librdkafka-several", "librdkafka-transactions")
]
LONG_MAX = 2**63 - 1


def name_of(path: Path) -> str:
    return path.stem


def test_every_client_and_codec_was_recorded() -> None:
    assert len(SAME_RECORDS) == 17
    assert len(LOGS) == 19


@pytest.mark.parametrize("path", SAME_RECORDS, ids=name_of)
def test_records_of_every_client_and_codec(path: Path) -> None:
    data = path.read_bytes()
    client, codec = path.stem.rsplit("-", 1)
    [(position, header)] = iterate_headers(data)
    assert position == 0
    assert header.size_bytes == len(data)
    assert CODEC_NAMES[header.codec] == codec
    assert crc_is_valid(data, 0, len(data))
    records = decode_records(data)
    assert [record.offset for record in records] == list(range(len(RECORDS)))
    assert [(record.key, record.value, record.headers) for record in records] == list(RECORDS)
    if client != "java":
        assert {record.timestamp for record in records} == {TIMESTAMP_MS}
    assert max(record.timestamp for record in records) == header.max_timestamp


@pytest.mark.parametrize("path", [p for p in SAME_RECORDS if p.stem.endswith("-none")], ids=name_of)
def test_built_batches_equal_recorded_ones(path: Path) -> None:
    """Every client encodes records in one way only, so ours must be the same bytes."""
    data = path.read_bytes()
    [(_, header)] = iterate_headers(data)
    built = build_batch(
        decode_records(data),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        leader_epoch=header.leader_epoch,
    )
    assert built == data


def replay(path: Path) -> tuple[ProducerState, list[tuple[int, bool]]]:
    """Return the producer state as recovery builds it, and (marker's offset, is aborted) of
    transactions.
    """
    data = path.read_bytes()
    state = ProducerState(path.stem)
    ended = []
    for position, header in iterate_headers(data):
        if header.is_control:
            marker = read_marker(data, position, header)
            assert marker is not None
            completed = state.append_marker(header, marker, "replication")
            assert completed is not None
            ended.append((completed.last_offset, completed.is_aborted))
        else:
            assert state.append(header, "replication") is None
    state.commit()
    return state, ended


@pytest.mark.parametrize("path", LOGS, ids=name_of)
def test_snapshot_equals_the_one_kafka_wrote(path: Path) -> None:
    state, _ = replay(path)
    snapshot = path.with_suffix(".snapshot").read_bytes()
    assert state.to_snapshot() == snapshot
    loaded = ProducerState(path.stem)
    loaded.load_snapshot(snapshot, 0, 0, LONG_MAX)
    assert loaded.to_snapshot() == snapshot
    assert loaded.first_unstable_offset == (4 if path.stem.endswith("transactions") else None)


def test_transactions_of_a_real_producer_are_read() -> None:
    state, ended = replay(DIRECTORY / "librdkafka-transactions.log")
    assert ended == [(1, False), (3, True)]
    assert state.first_unstable_offset == 0
    state.on_high_watermark(5)
    assert state.first_unstable_offset == 4


@pytest.mark.parametrize("path", LOGS, ids=name_of)
def test_epoch_checkpoint_equals_the_one_kafka_wrote(path: Path) -> None:
    text = path.with_suffix(".epochs").read_text()
    history = LeaderEpochs.from_text(text)
    assert history.entries == [(0, 0)]
    assert history.to_text() == text
