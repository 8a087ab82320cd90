"""One log directory: opened, claimed, checkpointed, released; and why it may be refused."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.log_directory import LogDirectory
from minibroker.kafka.errors import StorageError, SyncError
from minibroker.kafka.ids import TopicPartition

if TYPE_CHECKING:
    from pathlib import Path

OFFSETS = {TopicPartition("t", 0): 5}


class CountingFiles(Files):
    """Counts atomic writes."""

    __slots__ = ("writes",)

    def __init__(self) -> None:
        self.writes = 0

    def write_atomically(self, path: str, content: bytes) -> None:
        self.writes += 1
        super().write_atomically(path, content)


class ForbiddenFiles(Files):
    """A directory that may be listed and not written."""

    __slots__ = ()

    def is_usable_directory(self, path: str) -> bool:
        return False


def test_open_makes_it_and_takes_the_marker(tmp_path: Path) -> None:
    directory = LogDirectory(REAL_FILES, f"{tmp_path}/new/dir")
    directory.open()
    assert (directory.was_clean, directory.properties) == (False, None)
    directory.claim(1, "c", 0)
    directory.mark_clean()
    directory.release()
    again = LogDirectory(REAL_FILES, f"{tmp_path}/new/dir")
    again.open()
    assert again.was_clean
    assert again.properties is not None
    assert (again.properties.broker_id, again.properties.cluster_id) == (1, "c")
    assert not REAL_FILES.exists(f"{again.path}/{names.CLEAN_SHUTDOWN}")
    again.release()


def test_a_marker_that_may_come_back_is_the_directory_s_failure(tmp_path: Path) -> None:
    class Unsynced(Files):
        def sync_directory(self, path: str) -> None:
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(SyncError) as caught:
        LogDirectory(Unsynced(), str(tmp_path)).sync()
    assert caught.value.log_directory == str(tmp_path)
    assert caught.value.is_lasting


def test_a_checkpoint_is_written_when_it_says_something_new(tmp_path: Path) -> None:
    files = CountingFiles()
    directory = LogDirectory(files, str(tmp_path))
    for _ in range(3):
        directory.write_checkpoint(names.RECOVERY_POINTS, OFFSETS)
    assert files.writes == 1
    directory.write_checkpoint(names.RECOVERY_POINTS, {TopicPartition("t", 0): 6})
    assert files.writes == 2
    assert directory.read_checkpoint(names.RECOVERY_POINTS) == {TopicPartition("t", 0): 6}


def test_a_damaged_checkpoint_says_nothing(tmp_path: Path) -> None:
    (tmp_path / names.HIGH_WATERMARKS).write_text("rubbish")
    assert LogDirectory(REAL_FILES, str(tmp_path)).read_checkpoint(names.HIGH_WATERMARKS) == {}


def test_without_permission_it_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="permission denied"):
        LogDirectory(ForbiddenFiles(), str(tmp_path)).open()


def test_a_damaged_meta_properties_gives_the_lock_back(tmp_path: Path) -> None:
    (tmp_path / names.META_PROPERTIES).write_text("version=9\n")
    for _ in range(2):
        with pytest.raises(StorageError, match="version '9', expected 0 or 1"):
            LogDirectory(REAL_FILES, str(tmp_path)).open()
