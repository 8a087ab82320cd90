"""The walk along the batch headers of a `.log`, for readers that trust the file.

Segments use it for lookups by time, rebuilds of indexes and replays of producers. A start uses it
to see which offsets a finished `.swap` covers. Recovery trusts no byte and has a walk of its own
(`checked_batches`).
"""

from collections.abc import Iterator
from typing import Final

from minibroker.broker.storage.disk import Disk
from minibroker.kafka.records.batch import HEADER_BYTES, MAGIC_AT, BatchHeader, read_header

_WALK_BYTES: Final = 64 << 10
"""Read at once while batches are small."""
_LARGE_BYTES: Final = 8 << 10
"""Behind a batch of this size only a header is read."""


def walk_headers(
    disk: Disk, path: str, position: int, end: int
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of every batch in the file at `path`, from `position` (the start of
    one) to `end`, in bytes.

    Reads headers only; a batch that reaches beyond the end is not given. Raises CorruptionError
    for a header no format has, OSError, ColdError.
    """
    chunk: bytes | bytearray = b""
    chunk_at, wanted = position, _WALK_BYTES
    while position + MAGIC_AT < end:
        at = position - chunk_at
        if at + HEADER_BYTES > len(chunk):
            chunk = disk.pread(path, wanted, position)
            chunk_at, at = position, 0
        header = read_header(chunk, at)
        if position + header.size_bytes > end:
            return
        yield position, header
        position += header.size_bytes
        wanted = _WALK_BYTES if header.size_bytes < _LARGE_BYTES else HEADER_BYTES
