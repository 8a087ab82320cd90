"""The directory of a partition: whose it is, and how it leaves service and comes back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.kafka.errors import KafkaError, StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

ID = TopicId(b"1" * 16)
OTHER_ID = TopicId(b"2" * 16)


@pytest.fixture
def path(tmp_path: Path) -> str:
    made = tmp_path / "t-0"
    made.mkdir()
    return str(made)


def directory(
    path: str, topic_id: TopicId | None = None, disk: Disk | None = None
) -> PartitionDirectory:
    return PartitionDirectory(
        disk or Disk(), TopicPartition("t", 0), path, topic_id, has_new_names=False
    )


def test_the_first_id_stays(path: str) -> None:
    place = directory(path)
    assert place.topic_id == ZERO_TOPIC_ID
    assert not place.is_of_other_topic(ID)
    place.assign_topic_id(ZERO_TOPIC_ID)
    place.assign_topic_id(ID)
    place.assign_topic_id(ID)
    assert directory(path).topic_id == ID
    assert place.is_of_other_topic(OTHER_ID)
    with pytest.raises(KafkaError, match="belongs to topic id"):
        place.assign_topic_id(OTHER_ID)


def test_no_id_is_written_once_the_log_has_left(path: str) -> None:
    tasks: list[Callable[[], None]] = []
    place = directory(path, disk=Disk(run_later=tasks.append))
    place.assign_topic_id(ID)
    place.is_deleted = True
    tasks.pop()()
    assert list(Path(path).iterdir()) == []


def test_it_is_renamed_when_the_log_is_out_of_service_and_comes_back(path: str) -> None:
    place = directory(path)

    def abandon() -> None:
        assert place.names_lock.locked()
        place.is_deleted = True

    place.rename(path + "-delete", abandon)
    assert Path(path + "-delete").is_dir()
    assert (place.path, place.is_deleted) == (path + "-delete", True)
    place.take_back(path)
    assert Path(path).is_dir()
    assert (place.path, place.is_deleted) == (path, False)


def test_a_rename_that_fails_leaves_the_name(path: str) -> None:
    place = directory(path)
    Path(path).rmdir()
    with pytest.raises(StorageError, match=f"cannot delete t-0 in {path}"):
        place.rename(path + "-delete", lambda: None)
    assert place.path == path
    place.take_back(path)  # there is nothing to rename
    assert not place.is_deleted


def test_errors_name_the_log_directory(path: str) -> None:
    error = directory(path).failed("flush", OSError("gone"))
    assert str(error) == f"cannot flush t-0 in {path}: gone"
    assert error.log_directory == str(Path(path).parent)
