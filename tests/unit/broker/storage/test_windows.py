"""Mapped windows: bounded, found again, closed elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import run_now
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.open_files import WINDOW_BYTES, WINDOW_STRIDE, Windows

if TYPE_CHECKING:
    from pathlib import Path


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
    windows = Windows(REAL_FILES, run_now)
    for position in (0, 4096, WINDOW_STRIDE - 4096, WINDOW_STRIDE, 3 * WINDOW_STRIDE + 8192):
        for length in (4096, WINDOW_STRIDE, WINDOW_BYTES + 4096):
            end = min(position + length, size)
            view = windows.slice(path, handle, position, end - position, size)
            assert len(view) == end - position
            assert int.from_bytes(view[:8], "big") == position
            assert int.from_bytes(view[-4096:-4088], "big") == end - 4096
            assert view.readonly


def test_mapped_bytes_stay_bounded(large: tuple[str, int, int]) -> None:
    path, handle, size = large
    windows = Windows(REAL_FILES, run_now, WINDOW_BYTES)
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
    windows = Windows(REAL_FILES, tasks.append)
    view = windows.slice(path, handle, 0, 4096, size)
    windows.forget(path)
    assert windows.unclosed_count == 1
    tasks.pop()()
    assert windows.unclosed_count == 1
    assert int.from_bytes(view[:8], "big") == 0
    view.release()
    windows.close_unused()
    assert windows.unclosed_count == 0
