"""Partitions of nodes that do not run: no leaders, known directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.storage.files import REAL_FILES
from minibroker.kafka.ids import TopicId, TopicPartition
from minibroker.tools.kraft.metadata import (
    UNASSIGNED_DIRECTORY,
    Metadata,
    PartitionValue,
    TopicValue,
)
from minibroker.tools.kraft.stopped import replica_directories, without_leaders

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = b"1" * 16, b"2" * 16
LED = PartitionValue((0, 1), (0, 1), 0, 7)


def metadata_with(*partitions: PartitionValue) -> Metadata:
    topic = TopicValue(TopicId(b"t" * 16), partitions)
    return Metadata(topics={"t": topic}, features={"metadata.version": 33}, epoch=4)


def test_a_partition_without_a_leader_keeps_its_epoch_and_knows_its_directories() -> None:
    metadata = metadata_with(LED, LED)
    stopped = without_leaders(metadata, {(0, TopicPartition("t", 1)): FIRST})
    nowhere = LED._replace(leader=-1, directories=(UNASSIGNED_DIRECTORY, UNASSIGNED_DIRECTORY))
    assert stopped == metadata_with(
        nowhere, nowhere._replace(directories=(FIRST, UNASSIGNED_DIRECTORY))
    )
    assert metadata == metadata_with(LED, LED)


def test_logs_are_found_in_every_directory(tmp_path: Path) -> None:
    for name in ("a/t-0", "a/__cluster_metadata-0", "b/t-1", "b/u-0.0123-delete", "b/lost+found"):
        (tmp_path / name).mkdir(parents=True)
    paths = {str(tmp_path / "a"): FIRST, str(tmp_path / "b"): SECOND}
    assert replica_directories(REAL_FILES, 3, paths) == {
        (3, TopicPartition("t", 0)): FIRST,
        (3, TopicPartition("__cluster_metadata", 0)): FIRST,
        (3, TopicPartition("t", 1)): SECOND,
    }
