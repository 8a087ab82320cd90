"""The batches of a `.log` that can be believed: what recovery looks for behind a recovery point.

They are whole, their CRC fits, their offsets ascend and belong to the segment. The first that is
not so is where a crash tore the file; nothing behind it is looked at.

Source: Kafka LogSegment.recover.
"""

import zlib
from collections.abc import Iterator
from typing import Final

from minibroker.errors import CorruptionError
from minibroker.records.batch import HEADER_BYTES, BatchHeader, crc_is_valid, read_header
from minibroker.storage.disk import Disk
from minibroker.storage.segment import Segment

_READ_BYTES: Final = 1 << 20
"""Read at once while checking CRCs; a larger batch is read as a whole."""
_HEADERS_READ_BYTES: Final = 8 << 10
"""Read at once while only headers are looked at, and batches are small: two index intervals."""
_LEGACY_CRC_AT: Final = 12
_LEGACY_CRC_FROM: Final = 16


def checked_batches(
    disk: Disk,
    segment: Segment,
    start: int,
    end: int,
    expected_offset: int,
    *,
    trusted_below: int = 0,
) -> Iterator[BatchHeader]:
    """Headers of the batches from position `start` on, as long as they are whole, sound and
    ascending.

    Of a batch that ends below offset `trusted_below` only the header is read: it was synced. Ends
    at the first that is not sound (or at `end`); never raises CorruptionError. Raises OSError.
    """
    position = start
    chunk, chunk_at = b"", start
    wanted = _READ_BYTES if expected_offset >= trusted_below else _HEADERS_READ_BYTES
    while position < end:
        at = position - chunk_at
        if at + HEADER_BYTES > len(chunk) and chunk_at + len(chunk) < end:
            handle = disk.handles.get(segment.log_path)
            chunk = disk.files.pread(handle, wanted, position)
            chunk_at, at = position, 0
        try:
            header = read_header(chunk, at)
        except CorruptionError:
            return
        if position + header.size_bytes > end or header.base_offset < expected_offset:
            return
        if not header.base_offset <= header.last_offset <= segment.max_offset:
            return
        if header.last_offset < trusted_below:
            is_small = header.size_bytes < _HEADERS_READ_BYTES // 2
            wanted = _HEADERS_READ_BYTES if is_small else HEADER_BYTES
        else:
            wanted = _READ_BYTES
            if at + header.size_bytes > len(chunk):
                handle = disk.handles.get(segment.log_path)
                chunk = disk.files.pread(handle, max(wanted, header.size_bytes), position)
                chunk_at, at = position, 0
            if not _is_sound(chunk, at, header):
                return
        yield header
        expected_offset = header.last_offset + 1
        position += header.size_bytes


def _is_sound(chunk: bytes, at: int, header: BatchHeader) -> bool:
    """Does the CRC fit? CRC-32C for format 2, CRC-32 for 0 and 1."""
    if header.magic == 2:
        return crc_is_valid(chunk, at, header.size_bytes)
    content = memoryview(chunk)[at + _LEGACY_CRC_FROM : at + header.size_bytes]
    stored = int.from_bytes(chunk[at + _LEGACY_CRC_AT : at + _LEGACY_CRC_FROM], "big")
    return zlib.crc32(content) == stored
