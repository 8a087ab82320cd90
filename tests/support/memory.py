"""Directories in the machine's memory, for tests that do not judge the disk.

A broker writes a hundred small files and syncs them. On a busy disk, a test of its answers waits
longer for that than it computes. Where a test judges what a disk keeps, either the disk is
simulated (`faulty_files`), or the test stays on the machine's own.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

MOUNT = Path("/dev/shm")
FREE_BYTES_MIN = 2 << 30
"""Free memory that the tests need; containers have 64 MB there by default."""


@functools.cache
def memory() -> str | None:
    """Return a directory that is kept in memory, None (the usual one) where there is none."""
    if not MOUNT.is_dir() or not os.access(MOUNT, os.W_OK):
        return None
    mounted = os.statvfs(MOUNT)
    return str(MOUNT) if mounted.f_bavail * mounted.f_frsize >= FREE_BYTES_MIN else None


@contextlib.contextmanager
def directory_in_memory(request: pytest.FixtureRequest | None = None) -> Iterator[Path]:
    """Give an empty directory, gone afterwards.

    Of the test of `request`, if it fails, the files stay in pytest's own directory.
    """
    failed_before = request.session.testsfailed if request is not None else 0
    factory: pytest.TempPathFactory | None = None
    if request is not None:
        factory = request.getfixturevalue("tmp_path_factory")  # not allowed at the end of a test
    with tempfile.TemporaryDirectory(
        prefix="minibroker-test-", dir=memory(), ignore_cleanup_errors=True
    ) as name:
        yield Path(name)
        if request is None or factory is None:
            return
        if request.session.testsfailed > failed_before:
            copy = factory.mktemp(request.node.name[:30])
            shutil.copytree(name, copy, dirs_exist_ok=True, ignore=_neither_file_nor_directory)


def _neither_file_nor_directory(directory: str, names: list[str]) -> list[str]:
    paths = [Path(directory, name) for name in names]
    return [path.name for path in paths if not (path.is_file() or path.is_dir())]
