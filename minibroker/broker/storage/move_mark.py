"""`moved-here`: the mark in the directory of a log that a move to another log directory made.

It says that a log of this name in another directory is older, and where the log starts:

    12

The checkpoints of the new place say that a moment later. A kill may come in between, and records
that were deleted must not come back with it. An empty mark says only that the other log is older.

Source: none. Kafka reads its checkpoints of the new place, and has such records again.
"""

from minibroker.broker.storage import names
from minibroker.broker.storage.files import Files

NOT_SAID = -1


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
