"""Log directories under check-log: owner, checkpoints, one home for every partition."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.files import REAL_FILES
from minibroker.tools.kraft.log_directory import SnapshotId, write_metadata_directory
from minibroker.tools.kraft.records import records_of
from tests.support.check import broken_things
from tests.support.kraft_metadata import full_metadata

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.tools.conftest import Outcome


@pytest.mark.parametrize("name", ["recovery-point", "log-start", "replication", "cleaner"])
def test_checkpoints_beyond_the_log_or_damaged(data: Path, name: str) -> None:
    path = data / f"{name}-offset-checkpoint"
    path.write_text("0\n1\nt 0 24\n")
    assert "24 of t-0, the log ends at 23 [checkpoint-offset]" in "\n".join(broken_things(data))
    path.write_text("0\n2\nt 0 3\n")
    assert "1 entries, 2 announced [checkpoint]" in "\n".join(broken_things(data))


def test_two_directories_of_one_broker(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(data, other)
    shutil.rmtree(other / "t-0")
    shutil.copytree(data / "t-0", other / "t-1")
    for name in ("recovery-point", "replication"):
        (other / f"{name}-offset-checkpoint").write_text("0\n1\nt 1 23\n")
    assert broken_things(data, other) == []
    (other / "t-1" / "partition.metadata").write_text("version: 0\ntopic_id: " + "B" * 21 + "A")
    shutil.copytree(data / "t-0", other / "t-0")
    text = (other / "meta.properties").read_text().replace("broker.id=0", "broker.id=1")
    (other / "meta.properties").write_text(text)
    findings = "\n".join(broken_things(data, other))
    assert f"{other}/t-0: the partition is in {data}/t-0, too [duplicate]" in findings
    assert "[topic-id]" in findings
    assert "broker 1 of cluster" in findings


def test_directories_that_are_no_partitions_are_notes(
    check: Callable[..., Outcome], data: Path
) -> None:
    (data / "lost+found").mkdir()
    (data / f"t-1.{'0' * 32}-delete").mkdir()
    shutil.copytree(data / "t-0", data / f"t-0.{'0' * 32}-future")
    report = check("--strict", data)
    assert report.code == 0
    assert report.output.count("[directory]") == 3


def test_an_owner_that_cannot_be_read(data: Path) -> None:
    (data / "meta.properties").write_text("version=7\n")
    assert "[owner]" in "\n".join(broken_things(data))


# Files beside the segments: leader epochs, topic id, leftovers.


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("0\n1\n0 0\n", "offset 12 belongs to epoch 0, its batch says epoch 1"),
        ("0\n2\n0 0\n1 13\n", "offset 12 belongs to epoch 0, its batch says epoch 1"),
        ("0\n3\n0 0\n2 5\n1 12\n", "does not follow epoch 2"),
        ("0\n3\n0 0\n1 12\n2 99\n", "the log ends at 23 [epochs-end]"),
        ("0\n7\n0 0\n", "expected version 0 and 7 entries"),
        ("0\n1\nzero 0\n", "not a leader epoch checkpoint"),
    ],
)
def test_leader_epochs(data: Path, content: str, words: str) -> None:
    (data / "t-0" / "leader-epoch-checkpoint").write_text(content)
    assert words in "\n".join(broken_things(data))


def test_a_topic_id_that_is_none(data: Path) -> None:
    (data / "t-0" / "partition.metadata").write_text("version: 1\n")
    assert "[metadata]" in "\n".join(broken_things(data))


def test_leftovers_are_notes(check: Callable[..., Outcome], data: Path) -> None:
    for name in ("00000000000000000000.log.deleted", "00000000000000000000.log.cleaned"):
        (data / "t-0" / name).touch()
    (data / "t-0" / "00000000000000000005.index").touch()
    report = check("--strict", data)
    assert report.code == 0
    assert report.output.count("[leftover]") == 2
    assert "00000000000000000005.index: no .log beside it" in report.output


def test_an_empty_partition(check: Callable[..., Outcome], data: Path) -> None:
    (data / "empty-3").mkdir()
    report = check(data)
    assert report.code == 0
    assert "empty-3: no segment: an empty log [no-segment]" in report.output
    metadata = "version: 0\ntopic_id: " + "B" * 21 + "A"
    (data / "empty-3" / "partition.metadata").write_text(metadata)
    assert "0 broken, 0 notes" in check(data).output


def test_metadata_of_kraft_are_read(check: Callable[..., Outcome], data: Path) -> None:
    records = list(records_of(full_metadata("4.4", bytes(16))))
    path = Path(write_metadata_directory(REAL_FILES, str(data), records, SnapshotId(9, 1), 0))
    answer = check(str(data))
    assert (answer.code, "__cluster_metadata" in answer.output) == (0, False)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    (line,) = broken_things(data)
    assert "bytes are sound, expected a whole snapshot" in line
    assert line.endswith("[kraft-metadata]")
    shutil.rmtree(path.parent)
    path.parent.mkdir()
    (line,) = broken_things(data)
    assert "has no snapshot and no log of KRaft" in line
