"""The disk of a broker under test."""

from __future__ import annotations

import errno
from time import perf_counter
from typing import TYPE_CHECKING

import pytest

from minibroker.rig.faulty_disk import FaultyDisk

if TYPE_CHECKING:
    from pathlib import Path


def test_a_full_disk_takes_nothing_new_and_gives_what_it_has(tmp_path: Path) -> None:
    disk = FaultyDisk()
    path = str(tmp_path / "a")
    handle = disk.open(path, create=True)
    disk.write_all(handle, [b"here"], 0)
    disk.is_full = True
    for refused in (
        lambda: disk.write_all(handle, [b"more"], 4),
        lambda: disk.open(str(tmp_path / "b"), create=True),
        lambda: disk.make_directory(str(tmp_path / "c")),
        lambda: disk.write_atomically(str(tmp_path / "d"), b"x"),
    ):
        with pytest.raises(OSError, match="No space left") as caught:
            refused()
        assert caught.value.errno == errno.ENOSPC
    assert disk.read_all(path) == b"here"
    disk.is_full = False
    disk.write_all(handle, [b"more"], 4)
    disk.close(handle)
    assert disk.read_all(path) == b"heremore"


def test_a_slow_sync_takes_its_time(tmp_path: Path) -> None:
    disk = FaultyDisk()
    handle = disk.open(str(tmp_path / "a"), create=True)
    disk.sync_delay_ms = 30
    began_s = perf_counter()
    disk.sync(handle)
    assert perf_counter() - began_s >= 0.03
    disk.close(handle)
