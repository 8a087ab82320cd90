"""Open files: handles, mapped windows, and reads that would wait for the disk."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from minibroker.broker.storage import kept_maps, open_files
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import PROBE_BYTES, REAL_FILES, Files
from minibroker.broker.storage.open_files import (
    WINDOW_BYTES,
    WINDOW_STRIDE,
    ColdError,
    FileRange,
    Handles,
    WarmedEnds,
    WarmTask,
    Windows,
)
from minibroker.broker.worker import Caller
from tests.support.cold_files import ColdFiles
from tests.support.faulty_files import FaultyFiles
from tests.support.runners import TestRunner
from tests.support.watched_files import CountingFiles


def test_removing_an_absent_file_is_no_error(tmp_path: Path) -> None:
    Disk().remove(f"{tmp_path}/absent")


def test_the_handle_used_least_recently_is_closed(tmp_path: Path) -> None:
    handles = Handles(REAL_FILES, 2)
    paths = [f"{tmp_path}/{name}" for name in "abc"]
    first, second = (handles.get(path, create=True) for path in paths[:2])
    assert handles.get(paths[0]) == first
    handles.get(paths[2], create=True)
    assert len(handles) == 2
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(second) if second != handles.get(paths[2]) else os.fstat(-1)
    assert handles.get(paths[0]) == first
    handles.close()
    assert len(handles) == 0


def test_a_forgotten_file_is_opened_anew(tmp_path: Path) -> None:
    handles = Handles(REAL_FILES)
    path = f"{tmp_path}/a"
    handles.get(path, create=True)
    handles.forget(path)
    handles.forget(path)
    (tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError):
        handles.get(path)


class ClosingBadlyFiles(Files):
    """Closes a file, and says that the disk refused what was still to be written."""

    def close(self, fd: int) -> None:
        os.close(fd)
        raise OSError(errno.EIO, "Input/output error")


def test_a_file_that_closes_badly_is_nobody_else_s_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An open on one disk does not get the error of another disk's file, closed to make room."""
    handles = Handles(ClosingBadlyFiles(), 1)
    handles.get(f"{tmp_path}/a", create=True)
    handles.get(f"{tmp_path}/b", create=True)
    handles.forget(f"{tmp_path}/b")
    handles.get(f"{tmp_path}/c", create=True)
    handles.close()
    assert len(handles) == 0
    assert [f"{tmp_path}/{name} was closed with an error" in caplog.text for name in "abc"] == [
        True
    ] * 3


@pytest.fixture
def large(tmp_path: Path) -> tuple[str, int, int]:
    """A sparse file of six strides with its position written every 4096 bytes."""
    path, size = f"{tmp_path}/large", 6 * WINDOW_STRIDE
    handle = REAL_FILES.open(path, create=True)
    REAL_FILES.truncate(handle, size)
    for position in range(0, size, 4096):
        os.pwrite(handle, position.to_bytes(8, "big"), position)
    return path, handle, size


def test_slices_show_the_right_bytes_wherever_they_lie(large: tuple[str, int, int]) -> None:
    path, handle, size = large
    windows = Windows(REAL_FILES, Caller())
    for position in (0, 4096, WINDOW_STRIDE - 4096, WINDOW_STRIDE, 3 * WINDOW_STRIDE + 8192):
        for length in (4096, WINDOW_STRIDE, WINDOW_BYTES + 4096):
            end = min(position + length, size)
            view = windows.slice(path, handle, position, end - position, size)
            assert len(view) == end - position
            assert int.from_bytes(view[:8], "big") == position
            assert int.from_bytes(view[-4096:-4088], "big") == end - 4096
            assert view.readonly


def test_without_maps_a_slice_is_what_was_read(
    large: tuple[str, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, handle, size = large
    monkeypatch.setattr(Files, "can_map", False)
    monkeypatch.delattr(Files, "map")
    windows = Windows(Files(), Caller())
    for position, length in ((0, 10), (WINDOW_STRIDE - 1, 2), (size - 5, 5)):
        expected = os.pread(handle, length, position)
        assert windows.slice(path, handle, position, length, size) == expected
    assert windows.mapped_bytes == 0
    windows.close()


def test_mapped_bytes_stay_bounded(large: tuple[str, int, int]) -> None:
    path, handle, size = large
    windows = Windows(REAL_FILES, Caller(), WINDOW_BYTES)
    for position in range(0, size, WINDOW_STRIDE):
        windows.slice(path, handle, position, 4096, size)
        assert windows.mapped_bytes <= WINDOW_BYTES
    windows.close()
    assert windows.mapped_bytes == 0


def test_a_window_is_closed_by_the_worker_and_not_while_a_slice_of_it_lives(
    large: tuple[str, int, int],
) -> None:
    path, handle, size = large
    tasks: list[Callable[[], None]] = []
    windows = Windows(REAL_FILES, TestRunner(tasks.append))
    view = windows.slice(path, handle, 0, 4096, size)
    windows.forget(path)
    assert windows.unclosed_count == 1
    tasks.pop()()
    assert windows.unclosed_count == 1
    assert int.from_bytes(view[:8], "big") == 0
    view.release()
    windows.close_unused()
    assert windows.unclosed_count == 0


SIZE = 5 * mmap.PAGESIZE + 77


def test_slices_of_a_kept_map_have_the_bytes_that_were_cut(tmp_path: Path) -> None:
    path = tmp_path / "f"
    content = os.urandom(SIZE)
    path.write_bytes(content)
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), SIZE, mmap.MAP_SHARED, mmap.PROT_READ)
        view = memoryview(mapped)[mmap.PAGESIZE :]
        kept_maps.keep(mapped)
        file.truncate(10)
        file.seek(10)
        file.write(b"new" * SIZE)
    assert bytes(view) == content[mmap.PAGESIZE :]
    view.release()
    mapped.close()


CONTENT = bytes(range(256)) * 2048


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    return str(path)


def test_a_file_that_is_not_open_is_cold(path: str) -> None:
    disk = Disk()
    with disk.resident_only, pytest.raises(ColdError) as caught:
        disk.pread(path, 10, 5)
    task = caught.value.task
    assert isinstance(task, WarmTask)
    file_range = task.file_range
    assert (file_range.path, file_range.position, file_range.size) == (path, 5, 10)
    assert disk.pread(path, 10, 5) == CONTENT[5:15]
    disk.close()


def test_pages_in_memory_are_read_and_mapped(path: str) -> None:
    disk = Disk()
    disk.handles.get(path)
    with disk.resident_only:
        assert disk.pread(path, 10, 5) == CONTENT[5:15]
        assert disk.pread(path, 10, len(CONTENT) - 3) == CONTENT[-3:]
        assert bytes(disk.slice(path, 1, len(CONTENT) - 1, len(CONTENT))) == CONTENT[1:]
    disk.close()


def test_pages_not_in_memory_are_neither_read_nor_mapped(path: str) -> None:
    files = ColdFiles()
    disk = Disk(files)
    disk.handles.get(path)
    files.drop(path)
    with disk.resident_only:
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
    with disk.resident_only, pytest.raises(ColdError):
        disk.slice(path, 0, len(CONTENT), len(CONTENT))
    disk.close()


def test_the_system_tells_or_waits_but_gives_nothing_else(path: str) -> None:
    handle = os.open(path, os.O_RDWR)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    content = REAL_FILES.pread_resident(handle, len(CONTENT), 0)
    assert content in (None, CONTENT)
    assert os.pread(handle, len(CONTENT), 0) == CONTENT
    os.close(handle)


@pytest.mark.parametrize(
    ("last", "is_resident"),
    [(None, True), (errno.EAGAIN, False), (errno.EOPNOTSUPP, True), (errno.EIO, None)],
)
def test_the_first_and_the_last_byte_of_a_range_and_some_between_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, last: int | None, is_resident: bool | None
) -> None:
    """The reader waits where the system cannot tell. An error of the disk is raised."""
    positions: list[int] = []

    def preadv(_fd: int, buffers: list[bytearray], position: int, _flags: int) -> int:
        assert [len(buffer) for buffer in buffers] == [1]
        positions.append(position)
        if last is not None and position == PROBE_BYTES + 8:
            raise OSError(last, os.strerror(last))
        return 1

    monkeypatch.setattr(os, "preadv", preadv)
    if is_resident is None:
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            REAL_FILES.is_resident(-1, PROBE_BYTES + 2, 7)
    else:
        assert REAL_FILES.is_resident(-1, PROBE_BYTES + 2, 7) is is_resident
    assert positions == [7, PROBE_BYTES + 7, PROBE_BYTES + 8]


def test_a_worker_reads_the_range_and_leaves_the_file_open(path: str) -> None:
    files = CountingFiles()
    disk = Disk(files)
    task = WarmTask(files, disk.handles, WarmedEnds(), FileRange(path, 5, 10))
    task()
    assert files.read_bytes == len(CONTENT) - 5  # more than was asked for, up to the file's end
    task.apply()
    with disk.resident_only:
        assert disk.pread(path, 10, 5) == CONTENT[5:15]
    disk.close()


def test_a_bug_in_the_task_lets_the_reader_go_on(caplog: pytest.LogCaptureFixture) -> None:
    class Task:
        def __call__(self) -> None:
            raise RuntimeError("a bug")

        def apply(self) -> None:
            raise AssertionError("there is no result")

    calls: list[str] = []
    ColdError("x", Task(), Disk().worker).load(lambda: calls.append("done"))
    assert calls == ["done"]
    assert "a bug" in caplog.text


def test_a_file_that_left_service_meanwhile_is_not_kept_open(path: str) -> None:
    """Its name may be another file's by now."""
    disk = Disk()
    task = WarmTask(disk.files, disk.handles, WarmedEnds(), FileRange(path, 0, 10))
    task()
    disk.handles.forget(path)
    task.apply()
    assert disk.handles.find(path) is None


def test_a_file_that_cannot_be_read_is_left_to_its_reader(tmp_path: Path) -> None:
    disk = Disk()
    task = WarmTask(
        disk.files, disk.handles, WarmedEnds(), FileRange(str(tmp_path / "absent"), 0, 10)
    )
    task()
    task.apply()
    assert len(disk.handles) == 0


def test_a_reader_goes_to_the_worker_again_where_the_worker_stopped(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "WARM_BYTES_MIN", 1000)
    disk = Disk()
    with disk.resident_only:
        with pytest.raises(ColdError) as caught:
            disk.slice(path, 0, 400, len(CONTENT))
        caught.value.load(lambda: None)
        for position in (0, 400, 600):
            disk.slice(path, position, 400, len(CONTENT))
        disk.slice(path, 5000, 400, len(CONTENT))  # in memory, and no worker stopped there
        with pytest.raises(ColdError) as caught:
            disk.slice(path, 800, 400, len(CONTENT))
        caught.value.load(lambda: None)
        assert bytes(disk.slice(path, 800, 400, len(CONTENT))) == CONTENT[800:1200]
    disk.close()


def test_a_reader_at_the_end_of_a_file_is_not_sent_to_the_worker(path: str) -> None:
    disk = Disk()
    with disk.resident_only:
        with pytest.raises(ColdError) as caught:
            disk.slice(path, 0, len(CONTENT), len(CONTENT))
        caught.value.load(lambda: None)
        with open(path, "ab") as file:  # noqa: PTH123
            file.write(b"more")
        piece = disk.slice(path, len(CONTENT) - 4, 8, len(CONTENT) + 4)
        assert bytes(piece) == CONTENT[-4:] + b"more"
    disk.close()


def test_the_ends_of_a_bounded_number_of_files_are_remembered() -> None:
    ends = WarmedEnds()
    for number in range(open_files.WARMED_FILES_MAX + 1):
        ends.note(str(number), 10)
    assert not ends.is_crossed("0", 0, 100)
    assert ends.is_crossed("1", 0, 100)
    assert ends.is_crossed("1", 10, 1)
    assert not ends.is_crossed("1", 0, 10)
    assert not ends.is_crossed("1", 11, 10)
    ends.note("1", None)
    assert not ends.is_crossed("1", 0, 100)


@pytest.mark.parametrize(("code", "line_count"), [(errno.ENOENT, 0), (errno.EIO, 1)])
def test_a_file_that_retention_took_is_no_error_of_a_read_ahead(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, code: int, line_count: int
) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"v" * 100)
    files = FaultyFiles(str(tmp_path))
    disk = Disk(files)
    with disk.resident_only, pytest.raises(ColdError) as caught:
        disk.pread(str(path), 100, 0)
    files.counts_reads, files.fail_errno, files.fail_at = True, code, files.call_count + 1
    caught.value.task()
    caught.value.task.apply()
    assert len([line for line in caplog.messages if "cannot read ahead" in line]) == line_count
    assert len(disk.handles) == 0
