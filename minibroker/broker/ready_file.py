"""The file of `--ready-file`: it tells other programs that clients can connect.

`process` writes it when the broker serves. Its directory may be one that everybody writes to, such
as /tmp. So nothing is written through a name that somebody else may have put there: the lines go to
a new file with a name that cannot be guessed, and that one takes the place of the name.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from minibroker.broker import system

_MODE: Final = 0o644
"""Other users may wait for the broker, too; the umask still holds."""


def write_ready_file(path: str, lines: str) -> None:
    """Write the file whole, so that a reader never sees half of it. A symbolic link of that name is
    replaced, not followed. A pipe or a terminal gets the lines, if it is this user's or root's.

    Raises OSError, and then leaves no file behind.
    """
    file = Path(path)
    if file.exists() and not file.is_file():
        _write_stream(file, lines)
        return
    part = file.with_name(f"{file.name}.{os.urandom(8).hex()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.OPEN_NO_LINK | system.OPEN_FLAGS
    try:
        with os.fdopen(os.open(part, flags, _MODE), "w", encoding="utf-8") as stream:
            stream.write(lines)
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _write_stream(file: Path, lines: str) -> None:
    """Write to what is there, unless it became a file meanwhile. Raises OSError."""
    with os.fdopen(os.open(file, os.O_WRONLY | system.OPEN_FLAGS), "w", encoding="utf-8") as stream:
        status = os.fstat(stream.fileno())
        is_ours = not system.HAS_MODES or status.st_uid in (0, os.geteuid())
        if not is_ours or stat.S_ISREG(status.st_mode):
            raise OSError(errno.EPERM, "it is no pipe of this user")
        stream.write(lines)
