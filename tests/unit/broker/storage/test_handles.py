"""Open handles: bounded, opened anew, closed whatever the disk says."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.open_files import Handles

if TYPE_CHECKING:
    from pathlib import Path


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
