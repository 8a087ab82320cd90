"""Ranges that are not in memory: what a reader is told, and what a worker does about it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from minibroker.storage.cold import ColdError, WarmTask
from minibroker.storage.disk import Disk
from minibroker.storage.files import PROBE_BYTES, REAL_FILES
from tests.support.cold_files import ColdFiles
from tests.support.counting_files import CountingFiles

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = bytes(range(256)) * 1024


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    return str(path)


def test_a_file_that_is_not_open_is_cold(path: str) -> None:
    disk = Disk()
    with disk.resident_only(), pytest.raises(ColdError) as caught:
        disk.pread(path, 10, 5)
    task = caught.value.task
    assert isinstance(task, WarmTask)
    assert (task.path, task.position, task.size) == (path, 5, 10)
    assert disk.pread(path, 10, 5) == CONTENT[5:15]
    disk.close()


def test_pages_in_memory_are_read_and_mapped(path: str) -> None:
    disk = Disk()
    disk.handles.get(path)
    with disk.resident_only():
        assert disk.pread(path, 10, 5) == CONTENT[5:15]
        assert disk.pread(path, 10, len(CONTENT) - 3) == CONTENT[-3:]
        assert bytes(disk.slice(path, 1, len(CONTENT) - 1, len(CONTENT))) == CONTENT[1:]
    disk.close()


def test_pages_not_in_memory_are_neither_read_nor_mapped(path: str) -> None:
    files = ColdFiles()
    disk = Disk(files)
    disk.handles.get(path)
    files.drop(path)
    with disk.resident_only():
        with pytest.raises(ColdError):
            disk.pread(path, 10, 5)
        with pytest.raises(ColdError):
            disk.slice(path, 0, len(CONTENT), len(CONTENT))
    assert files.waits == []
    disk.close()


def test_a_map_with_a_hole_is_cold(path: str) -> None:
    files = ColdFiles()
    disk = Disk(files)
    handle = disk.handles.get(path)
    files.drop(path)
    files.pread(handle, PROBE_BYTES, 0)
    files.pread(handle, PROBE_BYTES, len(CONTENT) - PROBE_BYTES)
    with disk.resident_only(), pytest.raises(ColdError):
        disk.slice(path, 0, len(CONTENT), len(CONTENT))
    disk.close()


def test_the_system_tells_or_waits_but_gives_nothing_else(path: str) -> None:
    handle = os.open(path, os.O_RDWR)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    found = REAL_FILES.pread_resident(handle, len(CONTENT), 0)
    assert found in (None, CONTENT)
    assert os.pread(handle, len(CONTENT), 0) == CONTENT
    os.close(handle)


def test_a_worker_reads_the_range_and_leaves_the_file_open(path: str) -> None:
    files = CountingFiles()
    disk = Disk(files)
    task = WarmTask(files, disk.handles, path, 5, 10)
    task()
    assert files.read_bytes == len(CONTENT) - 5  # more than was asked for, up to the file's end
    task.apply()
    with disk.resident_only():
        assert disk.pread(path, 10, 5) == CONTENT[5:15]
    disk.close()


def test_a_file_that_left_service_meanwhile_is_not_kept_open(path: str) -> None:
    """Its name may be another file's by now."""
    disk = Disk()
    task = WarmTask(disk.files, disk.handles, path, 0, 10)
    task()
    disk.handles.forget(path)
    task.apply()
    assert not disk.handles.is_open(path)


def test_a_file_that_cannot_be_read_is_left_to_its_reader(tmp_path: Path) -> None:
    disk = Disk()
    task = WarmTask(disk.files, disk.handles, str(tmp_path / "absent"), 0, 10)
    task()
    task.apply()
    assert len(disk.handles) == 0
