"""A `.log` file, read by the tools batch by batch, in bounded memory, without any change.

`storage.segment` trusts its file. This reader is for files that may be torn, damaged, foreign or
still growing: it keeps one window of the file and checks every batch. The walk ends by Kafka's
rule, so that the tools of both see the same batches.

Source: Kafka FileRecords, FileLogInputStream.
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from types import TracebackType
from typing import Final, Self

from minibroker.broker.storage.files import REAL_FILES
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import (
    ATTRIBUTES_AT,
    HEADER_BYTES,
    LEGACY_LENGTH_MIN,
    LENGTH_FIELD_END,
    MAGIC_AT,
    BatchHeader,
    read_header,
)
from minibroker.kafka.records.crc import crc32c
from minibroker.kafka.records.message_set import COVERED_AT

WINDOW_BYTES: Final = 1 << 20
_PREFIX_BYTES: Final = MAGIC_AT + 1
_NUMBERING: Final = Struct(">qi")


def _header(head: bytes) -> BatchHeader:
    """Return the header in `head`; a magic above 2 is read in the newest format, as Kafka does.

    Raises CorruptionError.
    """
    magic = head[MAGIC_AT]
    if not 2 < magic < 128:
        return read_header(head)
    header = read_header(head[:MAGIC_AT] + b"\x02" + head[MAGIC_AT + 1 :])
    header.magic = magic
    return header


class FileBatch:
    """One batch (or message of format 0 or 1) of a file; it begins at `position`."""

    __slots__ = ("_file", "header", "position")

    def __init__(self, file: "LogFile", position: int, header: BatchHeader) -> None:
        self._file = file
        self.position = position
        self.header = header

    @property
    def end(self) -> int:
        """Return the position behind the batch."""
        return self.position + self.header.size_bytes

    def content(self) -> bytes:
        """Return a copy of the whole batch.

        Raises OSError, CorruptionError if the file got shorter.
        """
        return self._file.read(self.position, self.header.size_bytes)

    def crc_is_valid(self) -> bool:
        """Return whether the CRC is right: CRC-32C for format 2, CRC-32 for 0 and 1.

        A large batch is read piece by piece.
        """
        is_v2 = self.header.magic >= 2
        position = self.position + (ATTRIBUTES_AT if is_v2 else COVERED_AT)
        crc = 0
        while position < self.end:
            piece = self._file.read(position, min(WINDOW_BYTES, self.end - position))
            crc = crc32c(piece, crc) if is_v2 else zlib.crc32(piece, crc)
            position += len(piece)
        return crc == self.header.crc


class LogFile:
    """An open `.log`, a context manager; `size_bytes` is its size at that time."""

    __slots__ = ("_handle", "_window", "_window_at", "path", "size_bytes")

    def __init__(self, path: str) -> None:
        """Open the file. Raises OSError."""
        self.path = path
        self._handle = REAL_FILES.open_to_read(path)
        self.size_bytes = REAL_FILES.size_of(self._handle)
        self._window = b""
        self._window_at = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        REAL_FILES.close(self._handle)

    def read(self, position: int, size: int) -> bytes:
        """Return `size` bytes from `position`, from the window if they are in it.

        Raises CorruptionError where the file ends before, OSError.
        """
        at = position - self._window_at
        if at < 0 or at + size > len(self._window):
            window_bytes = max(size, min(WINDOW_BYTES, self.size_bytes - position))
            data = REAL_FILES.pread(self._handle, window_bytes, position)
            if len(data) < size:
                raise CorruptionError(
                    f"{self.path}: {len(data)} bytes at position {position}, expected {size}"
                )
            if size > WINDOW_BYTES:
                return data
            self._window, self._window_at, at = data, position, 0
        return self._window[at : at + size]

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[FileBatch]:
        """Yield every whole batch from `start` (the start of a batch) to `end`, by default the
        file's end.

        A batch that is cut at the end is left out. Raises CorruptionError for a length or a magic
        that no format has, OSError.
        """
        limit = self.size_bytes if end is None else min(end, self.size_bytes)
        position = start
        while position < limit - _PREFIX_BYTES:
            base_offset, length = _NUMBERING.unpack(self.read(position, _NUMBERING.size))
            if length < LEGACY_LENGTH_MIN:
                raise CorruptionError(
                    f"{self.path}: length {length} in the batch at position {position} "
                    f"(offset {base_offset}), expected at least {LEGACY_LENGTH_MIN}"
                )
            if position + LENGTH_FIELD_END + length > limit:
                return
            head = self.read(position, min(HEADER_BYTES, length + LENGTH_FIELD_END))
            try:
                header = _header(head)
            except CorruptionError as error:
                raise CorruptionError(f"{self.path}: at position {position}: {error}") from error
            batch = FileBatch(self, position, header)
            yield batch
            position = batch.end
