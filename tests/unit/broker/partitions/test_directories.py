"""A disk that refuses: which errors take a directory offline, and what goes with it."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.partitions.log_directories import FailedDirectories
from minibroker.broker.partitions.partition import READ_UNCOMMITTED
from minibroker.broker.partitions.waiters import DelayedFetch, FetchPosition
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError
from minibroker.kafka.ids import TopicPartition
from tests.unit.broker.partitions.conftest import World, partition_image

if TYPE_CHECKING:
    from pathlib import Path


class Rig(World):
    """Two directories with one partition of `t` each, and who is told what."""

    def __init__(self, directory: Path, *, essential: bool = False) -> None:
        self.paths = [str(directory / "data"), str(directory / "other")]
        super().__init__(directory, more_directories=self.paths[1:])
        self.lost: list[TopicPartition] = []
        self.fatal: list[str] = []
        self.failed = FailedDirectories(
            logs=self.logs,
            partitions=self.manager,
            on_offline=self.lost.extend,
            on_fatal=self.fatal.append,
            essential=self.paths[0] if essential else None,
        )
        self.manager.on_storage_error = self.failed.note
        self.manager.is_started = True
        self.create("t", partition_image(), partition_image())

    def directory_of(self, index: int) -> str:
        return self.partition("t", index).log.log_directory

    def break_disk(self, index: int, code: int = errno.EIO) -> None:
        """The next write of this partition is refused."""
        error = StorageError("refused", log_directory=self.directory_of(index))
        error.__cause__ = OSError(code, "refused")
        self.manager.appends.log_failed(self.partition("t", index), error)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def code_of(rig: Rig, index: int) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        rig.partition("t", index)
    return caught.value.code


def test_the_partitions_of_a_failed_directory_are_offline_and_the_others_served(rig: Rig) -> None:
    rig.break_disk(1)
    assert rig.lost == [TopicPartition("t", 1)]
    assert code_of(rig, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.append(b"v", index=0).base_offset == 0
    assert [view.is_offline for view in rig.manager.log_directories()] == [False, True]
    assert rig.fatal == []


def test_a_disk_that_is_full_stays(rig: Rig) -> None:
    rig.break_disk(1, errno.ENOSPC)
    assert rig.lost == []
    assert rig.append(b"v", index=1).base_offset == 0


def test_answers_about_unwritten_records_fail(rig: Rig) -> None:
    claim = rig.append(b"v", index=1)
    kept = rig.append(b"v", index=0)
    rig.break_disk(1)
    rig.manager.commit()
    assert claim.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (kept.error_code, kept.base_offset) == (ErrorCode.NONE, 0)


async def test_a_wait_for_a_lost_partition_is_answered(rig: Rig) -> None:
    position = FetchPosition(rig.partition("t", 1), 0, 1000, READ_UNCOMMITTED)
    waiter = DelayedFetch(asyncio.get_running_loop(), [position], 1, 60_000, lambda: "answered")
    rig.break_disk(1)
    assert waiter.future.result() == "answered"


def test_a_partition_does_not_come_back_with_a_new_epoch(rig: Rig) -> None:
    rig.break_disk(1)
    rig.change("t", 1, partition_image(epoch=1))
    assert code_of(rig, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.manager.lost == [TopicPartition("t", 1)]


def test_new_partitions_go_to_what_is_left_and_deleted_names_are_free_again(rig: Rig) -> None:
    rig.break_disk(1)
    rig.create("u", partition_image(), partition_image())
    assert {rig.partition("u", n).log.log_directory for n in (0, 1)} == {rig.directory_of(0)}
    rig.delete("t")
    rig.create("t", partition_image(), partition_image())
    assert rig.append(b"v", index=1).base_offset == 0


def test_without_any_directory_the_broker_ends(rig: Rig) -> None:
    rig.break_disk(1)
    rig.break_disk(0)
    assert len(rig.fatal) == 1
    assert "all log directories have failed" in rig.fatal[0]


def test_without_the_metadata_the_broker_ends(tmp_path: Path) -> None:
    rig = Rig(tmp_path, essential=True)
    rig.break_disk(0)
    assert len(rig.fatal) == 1
    assert "which holds the metadata" in rig.fatal[0]


def test_at_start_a_log_that_may_be_offline_is_not_begun_anew(rig: Rig) -> None:
    rig.logs.fail_directory(rig.paths[1])
    rig.manager.is_started = False
    rig.create("old")
    with pytest.raises(KafkaError) as caught:
        rig.partition("old")
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.fatal == []
