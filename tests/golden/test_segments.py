"""Directories that Apache Kafka 3.9.1 wrote (`segments/record.py`) are opened and read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import (
    MetaProperties,
    encode_properties,
    read_properties,
)
from minibroker.broker.storage.log_manager import LogManager
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import topic_id_to_text
from tests.support.logs import ManualClock, append, config, records_of

RECORDED = Path(__file__).parent / "segments"
CLUSTER_ID = "eefzwkngRlefhjYRimzJ9g"
SETTINGS = config(segment_bytes=8192, index_interval_bytes=512, segment_index_bytes=4096)


@pytest.fixture
def kafka_directory(tmp_path: Path) -> Path:
    return shutil.copytree(RECORDED / "kafka-3.9.1", tmp_path / "data")


def serve(path: Path, clock: ManualClock | None = None) -> LogManager:
    manager = LogManager([str(path)], clock=clock or ManualClock(), config_of=lambda _: SETTINGS)
    manager.open()
    manager.claim(0, CLUSTER_ID)
    manager.load()
    return manager


def expected_records() -> list[tuple[int, int, str, str]]:
    content = json.loads((RECORDED / "expected.json").read_text())
    return [
        (record["offset"], record["timestamp"], record["key"], record["value"])
        for record in content
    ]


@pytest.mark.parametrize("state", ["clean", "killed", "without indexes"])
def test_every_record_kafka_wrote_is_read(kafka_directory: Path, state: str) -> None:
    if state != "clean":
        (kafka_directory / ".kafka_cleanshutdown").unlink()
    if state == "without indexes":
        for path in kafka_directory.glob("golden-0/*index"):
            path.unlink()
    manager = serve(kafka_directory)
    log = manager.get("golden", 0)
    assert log is not None
    records = [
        (
            record.offset,
            record.timestamp,
            (record.key or b"").decode(),
            (record.value or b"").decode(),
        )
        for record in records_of(log)
    ]
    assert records == expected_records()
    assert log.end_offset_for_epoch(0) == (0, 240)
    assert log.high_watermark == 240
    assert len(topic_id_to_text(log.place.topic_id)) == 22
    manager.close()


def test_indexes_made_again_are_kafka_s_bytes(kafka_directory: Path) -> None:
    """Kafka adds an entry per append and so do we: the same batches give the same index files."""
    names = sorted(path.name for path in kafka_directory.glob("golden-0/*index"))
    indexes = {name: (kafka_directory / "golden-0" / name).read_bytes() for name in names}
    (kafka_directory / ".kafka_cleanshutdown").unlink()
    (kafka_directory / "recovery-point-offset-checkpoint").unlink()
    for name in names:
        (kafka_directory / "golden-0" / name).unlink()
    serve(kafka_directory).close()
    after = {name: (kafka_directory / "golden-0" / name).read_bytes() for name in names}
    assert after == indexes


def test_files_beside_the_log_are_written_as_kafka_writes_them(kafka_directory: Path) -> None:
    """A clean start and stop without a change leaves every byte as it was.

    A start after a kill writes the same checkpoints again.
    """

    def contents() -> dict[str, bytes]:
        paths = [path for path in kafka_directory.rglob("*") if path.is_file()]
        files = {str(path.relative_to(kafka_directory)): path.read_bytes() for path in paths}
        files.pop(".lock", None)
        return files

    first_contents = contents()
    serve(kafka_directory).close()
    assert contents() == first_contents
    meta = (kafka_directory / "meta.properties").read_bytes()
    assert meta == encode_properties(serve_properties(kafka_directory), 1_795_225_152_000)


def serve_properties(path: Path) -> MetaProperties:
    properties = read_properties(REAL_FILES, str(path))
    assert properties is not None
    return properties


def test_producers_of_kafka_s_snapshot_are_known(kafka_directory: Path) -> None:
    manager = serve(kafka_directory, ManualClock(1_700_000_300_000))
    log = manager.get("golden", 0)
    assert log is not None
    producers = log.producers.loaded().producers
    assert len(producers) == 5
    assert {entry.last_sequence for entry in producers.values()} == {47}
    assert append(log, b"ours") == 240
    manager.close()


def test_another_cluster_s_directory_is_refused(kafka_directory: Path) -> None:
    manager = LogManager([str(kafka_directory)], clock=ManualClock(), config_of=lambda _: SETTINGS)
    manager.open()
    assert manager.cluster_id == CLUSTER_ID
    with pytest.raises(StorageError, match="belongs to cluster eefzwkngRlefhjYRimzJ9g"):
        manager.claim(0, "another")
    with pytest.raises(StorageError, match=r"belongs to broker\.id 0"):
        manager.claim(1, CLUSTER_ID)
    manager.close()
