"""Calls that an operating system may lack, each with a way around: Windows has no reads and writes
at a position, no `fcntl` and no `resource`. Loops are in `event_loop`.

The broker takes these calls from here, so this module is the list of them. The choice between a
call of the system and its way around is made at the import.
The ways around are slower, and nothing else differs, except where a docstring says so.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

try:
    import fcntl
except ModuleNotFoundError:
    fcntl = None  # type: ignore[assignment]
try:
    import resource
except ModuleNotFoundError:
    resource = None  # type: ignore[assignment]

Buffer = bytes | bytearray | memoryview

OPEN_FLAGS: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Part of every open: no child gets the handle, and Windows changes no line ends."""
OPEN_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
"""Fails for a symbolic link, where the system can tell."""
HAS_MODES: Final = hasattr(os, "geteuid")
"""True where files have owners and modes; a file of Windows has the rights of its directory."""
_OPEN_DIRECTORY: Final = getattr(os, "O_DIRECTORY", None)
_OPEN_FILES_WINDOWS: Final = 8192
"""Files that a process may have open on Windows: a fixed number of its C library."""

_seeking = threading.Lock()
"""Held from a seek to the end of its read or write: a handle has one position for all threads."""


def read_after_seek(fd: int, size: int, position: int) -> bytes:
    """Return what `os.pread` returns: at most `size` bytes, fewer only at the end of the file."""
    with _seeking:
        os.lseek(fd, position, os.SEEK_SET)
        return os.read(fd, size)


def write_after_seek(fd: int, buffers: Sequence[Buffer], position: int) -> int:
    """Write as `os.pwritev` does; return how many bytes were written."""
    with _seeking:
        os.lseek(fd, position, os.SEEK_SET)
        return os.write(fd, b"".join(buffers))


pread: Final[Callable[[int, int, int], bytes]] = getattr(os, "pread", read_after_seek)
pwritev: Final[Callable[[int, Sequence[Buffer], int], int]] = getattr(
    os, "pwritev", write_after_seek
)


def sync_directory(path: str) -> None:
    """Make created, renamed and removed names in this directory durable. Windows opens no
    directory: there the file system's journal does it, some time later. Raises OSError.
    """
    if _OPEN_DIRECTORY is None:
        return
    fd = os.open(path, os.O_RDONLY | _OPEN_DIRECTORY | OPEN_FLAGS)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def take_lock(fd: int, *, is_for_java: bool = False) -> bool:
    """Lock an open file for this process; return False where another process holds it.

    The lock goes with the handle. `is_for_java`: a POSIX record lock, as Java's `tryLock` takes it;
    it also goes when any other handle of the file is closed in this process. Raises OSError, also
    where the system has no locks.
    """
    try:
        if fcntl is None:
            _lock_first_byte(fd)
        elif is_for_java:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _lock_first_byte(fd: int) -> None:
    """Lock as Windows does. Java's `tryLock` excludes it, and it excludes Java's. Raises OSError;
    PermissionError where another handle has the lock.
    """
    try:
        import msvcrt  # noqa: PLC0415  Windows alone
    except ModuleNotFoundError:
        raise OSError(errno.ENOTSUP, "this system has no locks for files") from None
    windows: Any = msvcrt
    os.lseek(fd, 0, os.SEEK_SET)
    windows.locking(fd, windows.LK_NBLCK, 1)


def allow_open_files() -> None:
    """Raise the soft limit of open files to the hard limit, as the JVM does before Kafka.
    The usual soft limit is 1,024, and each written partition and each connection needs a file. Call
    it before the broker is made, because the broker divides the limit among its parts.
    """
    if resource is None:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS refuses an unlimited value; then the limit stays
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_files_max() -> int:
    """Return how many files and sockets this process may hold open (the soft limit)."""
    if resource is None:
        return _OPEN_FILES_WINDOWS
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def room_bytes(path: str) -> tuple[int, int]:
    """Return (total, usable) bytes of the volume that holds `path`. Raises OSError."""
    if hasattr(os, "statvfs"):
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize
    import shutil  # noqa: PLC0415  elsewhere the start does without

    usage = shutil.disk_usage(path)
    return usage.total, usage.free


def make_temporary_directory(prefix: str) -> str:
    """Make a directory that this user alone may enter, where the system keeps temporary files;
    return its path. Raises OSError.

    `tempfile` does the same, but imports compression and random numbers: 2 % of a start. It is
    asked where the usual place refuses, because it tries others.
    """
    places = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    place = next(filter(None, places), "/tmp")
    directory = os.path.join(os.getcwd(), place)  # noqa: PTH109, PTH118  a start without pathlib
    path = f"{directory}/{prefix}{os.urandom(8).hex()}"
    try:
        os.mkdir(path, 0o700)  # noqa: PTH102  as above
    except OSError:
        import tempfile  # noqa: PLC0415  seldom needed

        return tempfile.mkdtemp(prefix=prefix)
    return path
