"""The ways around what a system lacks do what the system's own calls do."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from minibroker.broker import system
from minibroker.broker.system import read_after_seek, write_after_seek


def test_a_write_and_a_read_at_a_position_are_those_of_the_system(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        assert write_after_seek(fd, [b"ab", bytearray(b"cd"), memoryview(b"ef")], 3) == 6
        assert os.pread(fd, 100, 0) == b"\0\0\0abcdef"
        for size, position in ((100, 0), (2, 4), (5, 8), (5, 9), (5, 100)):
            assert read_after_seek(fd, size, position) == os.pread(fd, size, position)
    finally:
        os.close(fd)


def test_the_room_of_a_volume_is_known_without_statvfs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    total, usable = system.room_bytes(str(tmp_path))
    assert total >= usable > 0
    usage = SimpleNamespace(total=1000, used=400, free=600)
    monkeypatch.setattr("shutil.disk_usage", {str(tmp_path): usage}.__getitem__)
    monkeypatch.delattr(os, "statvfs")
    assert system.room_bytes(str(tmp_path)) == (1000, 600)


def test_without_limits_of_files_there_is_a_number_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(system, "resource", None)
    system.allow_open_files()
    assert system.open_files_max() == 8192


def test_without_any_locks_nothing_is_taken_for_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", None)
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        with pytest.raises(OSError, match="has no locks for files"):
            system.take_lock(fd)
    finally:
        os.close(fd)


def test_a_temporary_directory_is_new_and_of_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    first, second = (Path(system.make_temporary_directory("data-")) for _ in range(2))
    assert first != second
    for directory in (first, second):
        assert directory.parent == tmp_path
        assert directory.name.startswith("data-")
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_without_the_usual_place_a_temporary_directory_has_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    monkeypatch.setenv("TEMP", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert Path(system.make_temporary_directory("data-")).parent == tmp_path
