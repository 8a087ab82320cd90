"""Hides what a system may lack, in each Python that has this directory in PYTHONPATH.

The variable MINIBROKER_HIDDEN names modules (`fcntl`) and attributes (`os.pwritev`), separated by
commas; `tests/support/bare.py` has the lists. Python imports this module at its start, so what is
hidden is gone before anything of minibroker is loaded. `msvcrt` is the one thing that it adds: the
locks of Windows, on those of POSIX.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import importlib
import os
import shutil
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

HIDDEN = [name for name in os.environ.get("MINIBROKER_HIDDEN", "").split(",") if name]
_lockf, _flags = fcntl.lockf, fcntl.LOCK_EX | fcntl.LOCK_NB


def _locking(fd: int, mode: int, size: int) -> None:
    """Lock `size` bytes at the handle's position. Raises PermissionError: another process did."""
    try:
        _lockf(fd, _flags, size, os.lseek(fd, 0, os.SEEK_CUR))
    except BlockingIOError:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def _hide_module(name: str) -> None:
    sys.modules[name] = None  # type: ignore[assignment]  Python's own way to say: not here


def _find_spec(name: str, *arguments: Any) -> Any:
    return None if name.partition(".")[0] in HIDDEN else _find_any_spec(name, *arguments)


def _no_signals(*_: Any) -> None:
    raise NotImplementedError


_find_any_spec = PathFinder.find_spec
PathFinder.find_spec = _find_spec  # type: ignore[method-assign]
for hidden in HIDDEN:
    module, dot, attribute = hidden.rpartition(".")
    if not dot:
        _hide_module(hidden)
    elif hidden == "asyncio.add_signal_handler":
        asyncio.SelectorEventLoop.add_signal_handler = _no_signals  # type: ignore[method-assign]
    elif hasattr(importlib.import_module(module), attribute):
        delattr(importlib.import_module(module), attribute)
if "os.O_DIRECTORY" in HIDDEN:
    os.supports_dir_fd.clear()
    os.supports_fd.clear()
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
if "fcntl" in HIDDEN:
    windows = ModuleType("msvcrt")
    windows.LK_NBLCK = 2  # type: ignore[attr-defined]
    windows.locking = _locking  # type: ignore[attr-defined]
    sys.modules["msvcrt"] = windows
