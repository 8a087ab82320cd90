"""Open handles and mapped windows: bounded, found again, closed elsewhere."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from minibroker.storage.disk import WINDOW_BYTES, WINDOW_STRIDE, Disk
from minibroker.storage.files import REAL_FILES, Files

if TYPE_CHECKING:
    from pathlib import Path


def test_the_handle_used_least_recently_is_closed(tmp_path: Path) -> None:
    handles = Disk(handles_max=2).handles
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
    handles = Disk().handles
    path = f"{tmp_path}/a"
    handles.get(path, create=True)
    handles.forget(path)
    handles.forget(path)
    (tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError):
        handles.get(path)


class ClosingBadlyFiles(Files):
    """Closes a file, and says that the disk refused what was still to be written."""

    def close(self, fd: int) -> None:  # type: ignore[override]
        os.close(fd)
        raise OSError(errno.EIO, "Input/output error")


def test_a_file_that_closes_badly_is_nobody_else_s_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who opens a file on one disk must not hear of the other disk's, which made room for it."""
    handles = Disk(ClosingBadlyFiles(), handles_max=1).handles
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
    windows = Disk().windows
    for position in (0, 4096, WINDOW_STRIDE - 4096, WINDOW_STRIDE, 3 * WINDOW_STRIDE + 8192):
        for length in (4096, WINDOW_STRIDE, WINDOW_BYTES + 4096):
            end = min(position + length, size)
            view = windows.slice(path, handle, position, end - position, size)
            assert len(view) == end - position
            assert int.from_bytes(view[:8], "big") == position
            assert int.from_bytes(view[-4096:-4088], "big") == end - 4096
            assert view.readonly


def test_what_is_mapped_stays_bounded(large: tuple[str, int, int]) -> None:
    path, handle, size = large
    windows = Disk(mapped_bytes_max=WINDOW_BYTES).windows
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
    windows = Disk(run_later=tasks.append).windows
    view = windows.slice(path, handle, 0, 4096, size)
    windows.forget(path)
    assert windows.unclosed_count == 1
    tasks.pop()()
    assert windows.unclosed_count == 1
    assert int.from_bytes(view[:8], "big") == 0
    view.release()
    windows.close_unused()
    assert windows.unclosed_count == 0


def test_removing_an_absent_file_is_no_error(tmp_path: Path) -> None:
    Disk().remove(f"{tmp_path}/absent")
