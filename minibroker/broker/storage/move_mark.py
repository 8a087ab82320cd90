"""The mark of a move between log directories: `moved-here`, in the directory of the log it made.

`log_move` writes it, a start reads it. It says that a log of this name in another directory is
older, and where the log starts:

    12

The checkpoints of the new place say that a moment later. A kill may come in between, and records
that were deleted must not come back with it: Kafka reads its checkpoints of the new place, and has
such records again. An empty mark says only that the other log is older.

Source: none of Kafka's; its ReplicaAlterLogDirsThread has no such mark.
"""

from __future__ import annotations

from typing import Final

from minibroker.broker.storage import names
from minibroker.broker.storage.files import Files

NOT_SAID: Final = -1


def mark_path(directory: str) -> str:
    """Return the path of the mark in a log's directory."""
    return f"{directory}/{names.MOVED_HERE}"


def encode_mark(log_start_offset: int) -> bytes:
    """Return the content of a mark."""
    return b"%d\n" % log_start_offset


def read_mark(files: Files, directory: str) -> int:
    """Return the log start offset that the mark in a log's directory says, -1 where it says none or
    is not there. Raises OSError.
    """
    try:
        content = files.read_all(mark_path(directory)).strip()
    except FileNotFoundError:
        return NOT_SAID
    return int(content) if content.isdigit() else NOT_SAID
