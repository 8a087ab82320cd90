"""The two walks along the batches of a `.log`: one trusts the file, one trusts no byte.

`walk_headers` is for readers that trust the file: segments use it for lookups by time, rebuilds of
indexes and replays of producers. A start uses it to see which offsets a finished `.swap` covers.

`checked_batches` yields the batches that can be believed: recovery looks for them behind a recovery
point. They are whole, their CRC fits, their offsets ascend and belong to the segment. The first
that is not so is where a crash tore the file; nothing behind it is looked at. A start may wait for
a million of them, so a batch is one unpack of its header and one CRC. No object is made for it: a
caller that needs one makes it (`header_of`).

Source: Kafka LogSegment.recover.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from minibroker.broker.storage.disk import Disk
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_BYTES,
    LENGTH_FIELD_END,
    MAGIC_AT,
    BatchHeader,
    read_header,
)
from minibroker.kafka.records.crc import crc32c

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
    chunk_at, chunk_bytes = position, _WALK_BYTES
    while position + MAGIC_AT < end:
        at = position - chunk_at
        if at + HEADER_BYTES > len(chunk):
            chunk = disk.pread(path, chunk_bytes, position)
            chunk_at, at = position, 0
        header = read_header(chunk, at)
        if position + header.size_bytes > end:
            return
        yield position, header
        position += header.size_bytes
        chunk_bytes = _WALK_BYTES if header.size_bytes < _LARGE_BYTES else HEADER_BYTES


Fields = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]
"""A header as `HEADER` unpacks it: the second field is the length, `LENGTH_FIELD_END` less than the
size of the batch. Fields that formats 0 and 1 lack are as in `BatchHeader`."""

_READ_BYTES: Final = 1 << 20
"""Read at once while checking CRCs; a larger batch is read as a whole."""
_HEADERS_READ_BYTES: Final = 8 << 10
"""Read at once while only headers are looked at, and batches are small: two index intervals."""
_LEGACY_CRC_AT: Final = 12
_LEGACY_CRC_FROM: Final = 16


def checked_batches(
    disk: Disk,
    path: str,
    start: int,
    end: int,
    *,
    expected_offset: int,
    max_offset: int,
    trusted_below: int = 0,
) -> Iterator[tuple[int, Fields]]:
    """Yield position and header of the batches in the `.log` at `path` from position `start` on, as
    long as they are whole, sound and ascending.

    Positions are bytes. The first batch begins at `expected_offset` or later, the last one ends at
    `max_offset` or earlier. Of a batch that ends below offset `trusted_below` only the
    header is read: it was synced. Ends at the first that is not sound (or at `end`); never raises
    CorruptionError. Raises OSError.
    """
    position = start
    chunk, chunk_at, chunk_end = b"", start, start
    view = memoryview(chunk)
    read_bytes = _READ_BYTES if expected_offset >= trusted_below else _HEADERS_READ_BYTES
    unpack, attributes_at = HEADER.unpack_from, ATTRIBUTES_AT
    while position < end:
        at = position - chunk_at
        if position + HEADER_BYTES > chunk_end and chunk_end < end:
            chunk = disk.files.pread(disk.handles.get(path), read_bytes, position)
            view, chunk_at, at = memoryview(chunk), position, 0
            chunk_end = position + len(chunk)
        if position + HEADER_BYTES <= chunk_end and chunk[at + MAGIC_AT] == 2:
            fields: Fields = unpack(chunk, at)
        else:
            try:
                fields = _fields_of(read_header(chunk, at))
            except CorruptionError:
                return
        base_offset, size_bytes = fields[0], fields[1] + LENGTH_FIELD_END
        last_offset = base_offset + fields[6]
        if (
            position + size_bytes > end
            or not expected_offset <= base_offset <= last_offset <= max_offset
            or (size_bytes < HEADER_BYTES and fields[3] == 2)
        ):
            return
        if last_offset < trusted_below:
            is_small = size_bytes < _HEADERS_READ_BYTES // 2
            read_bytes = _HEADERS_READ_BYTES if is_small else HEADER_BYTES
        else:
            read_bytes = _READ_BYTES
            if position + size_bytes > chunk_end:
                handle = disk.handles.get(path)
                chunk = disk.files.pread(handle, max(read_bytes, size_bytes), position)
                view, chunk_at, at = memoryview(chunk), position, 0
                chunk_end = position + len(chunk)
            if fields[3] != 2:
                if not _is_sound_message(view[at : at + size_bytes]):
                    return
            elif crc32c(view[at + attributes_at : at + size_bytes]) != fields[4]:
                return
        yield position, fields
        expected_offset = last_offset + 1
        position += size_bytes


def header_of(fields: Fields) -> BatchHeader:
    """Return the header that has these fields."""
    header = BatchHeader(*fields)
    header.size_bytes += LENGTH_FIELD_END
    return header


def _fields_of(header: BatchHeader) -> Fields:
    """Return the fields of a header, of formats 0 and 1 too."""
    return (
        header.base_offset,
        header.size_bytes - LENGTH_FIELD_END,
        header.leader_epoch,
        header.magic,
        header.crc,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.count,
    )


def _is_sound_message(message: memoryview) -> bool:
    """Return whether the CRC-32 of a message of format 0 or 1 fits."""
    stored = int.from_bytes(message[_LEGACY_CRC_AT:_LEGACY_CRC_FROM], "big")
    return zlib.crc32(message[_LEGACY_CRC_FROM:]) == stored
