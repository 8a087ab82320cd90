"""The output of dump-log. (Beside Kafka's tool: tests/integration/test_dump_log.py.)"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.tools.conftest import Said

NAME = "00000000000000000000"


def test_batches_and_records(dump: Callable[..., Said], data: Path) -> None:
    said = dump("--print-data-log", data / "t-0" / f"{NAME}.log")
    lines = said.output.splitlines()
    assert lines[:2] == [f"Dumping {data}/t-0/{NAME}.log", "Log starting offset: 0"]
    assert lines[2].startswith("baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1")
    assert lines[3].startswith("| offset: 0 CreateTime: 1700000000000 keySize: -1 valueSize: 35")
    assert lines[3].endswith("headerKeys: [] payload: " + "value-0" * 5)
    assert lines[-1].endswith("endTxnMarker: ABORT coordinatorEpoch: 0")
    assert (said.errors, said.code) == ("", 0)


def test_without_metadata_and_only_some_bytes(dump: Callable[..., Said], data: Path) -> None:
    path = data / "t-0" / f"{NAME}.log"
    said = dump("--print-data-log", "--skip-record-metadata", "--max-bytes", 250, path)
    assert said.output.splitlines()[3] == " payload: " + "value-0" * 5
    assert "invalid bytes" not in said.output
    assert said.output.count("baseOffset") == 2


def test_a_torn_end_and_gaps(dump: Callable[..., Said], tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    record = [Record(0, 1, None, b"v")]
    path.write_bytes(build_batch(record) + build_batch(record, base_offset=4) + b"torn")
    said = dump("--deep-iteration", path)
    assert said.output.endswith(f"Found 4 invalid bytes at the end of {NAME}.log\n")
    assert said.errors == f"Non-consecutive offsets in {path}\n  0 is followed by 4\n"
    assert said.code == 0


def test_damage_beyond_reading_on_is_one_sentence(
    dump: Callable[..., Said], tmp_path: Path
) -> None:
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(bytes(100))
    said = dump(path, path)
    assert said.code == 1
    assert said.output.count("Dumping") == 1
    assert said.errors.startswith(f"minibroker dump-log: {path}: length 0 in the batch")
    assert dump(tmp_path / "absent.log").code == 1
    assert dump(tmp_path / "notes.txt").errors.startswith("Ignoring unknown file")
    (tmp_path / f"{NAME}9.log").mkdir()
    assert "is a directory" in dump(tmp_path / f"{NAME}9.log").errors.lower()


def test_a_metadata_snapshot_by_its_name(dump: Callable[..., Said], tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}-0000000003.checkpoint"
    path.write_bytes(b"")
    assert "Snapshot end offset: 0, epoch: 3" in dump(path).output
    other = tmp_path / "other.checkpoint"
    other.write_bytes(b"")
    assert dump(other).code == 1
