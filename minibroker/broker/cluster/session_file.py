"""The ZooKeeper session's id and password, kept in the data directory over a crash.

A broker that was killed leaves ephemeral nodes behind that stand until its session times out (18 s
by default); a new session would have to wait for that. Taking the old session up again makes the
nodes ours at once. The caller holds the lock of the data directory, so the session's former owner
is dead; `restart` says what happens to the nodes. Removed by a clean stop; readable by the owner
only.

One line of text: `<session id, hexadecimal> <password, hexadecimal>`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def load_session(path: Path) -> tuple[int, bytes] | None:
    """Return session id and password (16 bytes), None if there is no file or no such line in it."""
    try:
        session_id, password = path.read_text("ascii").split()
        return int(session_id, 16), bytes.fromhex(password)
    except (OSError, ValueError):
        return None


def save_session(path: Path, session_id: int, password: bytes) -> None:
    """Replace the file. Raises OSError."""
    temporary = path.with_name(f"{path.name}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(f"{session_id:x} {password.hex()}\n")
    temporary.replace(path)


def forget_session(path: Path) -> None:
    """Remove the file, if there is one."""
    with suppress(FileNotFoundError):
        path.unlink()
