"""Two directories change their names in one step: readers see the one or the other."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pathlib import Path

_HERE: Final = -100
"""AT_FDCWD: paths are relative to the directory of the process."""
_LINUX_EXCHANGE: Final = 2
_MACOS_SWAP: Final = 2


def exchange(path: Path, other: Path) -> None:
    """Exchange two directories of a file system; on the disk when this returns.

    Raises PipelineError if the system or the file system cannot do it.
    """
    library = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(path), os.fsencode(other)
    if sys.platform == "darwin":
        failed = library.renamex_np(*paths, _MACOS_SWAP)
    elif hasattr(library, "renameat2"):
        failed = library.renameat2(_HERE, paths[0], _HERE, paths[1], _LINUX_EXCHANGE)
    else:
        failed, _ = -1, ctypes.set_errno(38)
    if failed:
        raise PipelineError(
            f"small files of {path} are not merged: its file system cannot exchange two "
            f"directories in one step ({os.strerror(ctypes.get_errno())})"
        )
    for directory in {path.parent, other.parent}:
        _sync(directory)


def _sync(directory: Path) -> None:
    """Put the names in a directory on the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
