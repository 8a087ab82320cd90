"""One `.log` file or a part of it, read batch by batch in bounded memory, up to a defect.

First station of raw segments: `records` and `batches` (headers alone) read their files through
here, and `transactions` the newest one. The file is neither changed nor mapped: a broker may be
writing or truncating it.

The walk ends, like a broker's recovery, at a batch that is cut, has a wrong CRC, or has offsets
that do not ascend. `SegmentDefect` says which.

Source: Kafka LogSegment.recover, FileLogInputStream; `storage/FORMAT.md` sections 2 and 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.storage.files import REAL_FILES
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records import batch as v2
from minibroker.kafka.records.batch import batch_size_at, read_header
from minibroker.kafka.records.stored_batch import StoredBatch, check_crc

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from minibroker.kafka.records.batch import BatchHeader

WINDOW_BYTES: Final = 2 << 20
"""Bytes of one read; a larger batch needs a larger window."""
_PREFIX_BYTES: Final = v2.MAGIC_AT + 1


class SegmentDefect(NamedTuple):
    """The unreadable end of a file: `size_bytes` from `position` on."""

    position: int
    size_bytes: int
    reason: str


class SegmentFile:
    """One walk through one file; `defect` is set when `batches` has ended."""

    def __init__(
        self,
        path: str,
        window_bytes: int = WINDOW_BYTES,
        *,
        begin: int = 0,
        end: int | None = None,
    ) -> None:
        """Args:
        path: of the `.log`.
        window_bytes: of one read.
        begin: byte where the walk begins; a batch begins there.
        end: byte where it ends, None for the end of the file as it is then.
        """
        self.path = path
        self._begin = begin
        self._end = end
        self.defect: SegmentDefect | None = None
        self.size_bytes = 0
        """Byte where the walk ends: `end`, or less in a file that is shorter."""
        self._window_bytes = window_bytes
        self._last_offset = -1

    def batches(self) -> Generator[StoredBatch, None, None]:
        """Yield every sound batch from `begin` on; its content is valid until the next batch.

        Raises OSError.
        """
        handle = REAL_FILES.open_to_read(self.path)
        try:
            size_bytes = REAL_FILES.size_of(handle)
            self.size_bytes = size_bytes if self._end is None else min(self._end, size_bytes)
            position, window_bytes = self._begin, self._window_bytes
            while position < self.size_bytes and self.defect is None:
                room = self.size_bytes - position
                window = REAL_FILES.pread(handle, min(window_bytes, room), position)
                used_bytes = 0
                for batch in self._in_window(window, position):
                    used_bytes = batch.position + batch.header.size_bytes - position
                    yield batch
                if self.defect is not None:
                    return
                window_bytes = self._next_window(window, position, used_bytes)
                position += used_bytes
        finally:
            REAL_FILES.close(handle)

    def _in_window(self, window: bytes, window_at: int) -> Iterator[StoredBatch]:
        """Yield the batches that are entirely in the window, up to a defect."""
        view = memoryview(window)
        at = 0
        while True:
            try:
                size_bytes = batch_size_at(window, at)
                if size_bytes is None:
                    return
                header = read_header(window, at)
                self._check(window, at, header)
            except CorruptionError as error:
                self._note_defect(window_at + at, str(error))
                return
            yield StoredBatch(window_at + at, header, view[at : at + size_bytes])
            at += size_bytes

    def _check(self, window: bytes, at: int, header: BatchHeader) -> None:
        """Raise CorruptionError for a wrong CRC or an offset that does not ascend."""
        check_crc(window, at, header)
        if (
            header.magic == 2 and header.base_offset <= self._last_offset
        ) or header.last_offset < max(self._last_offset, header.base_offset):
            raise CorruptionError(
                f"a batch with the offsets {header.base_offset} to {header.last_offset} stands "
                f"behind offset {self._last_offset}"
            )
        self._last_offset = header.last_offset

    def _next_window(self, window: bytes, position: int, used_bytes: int) -> int:
        """Return how much to read next when the window ends inside a batch; record a torn batch."""
        rest = len(window) - used_bytes
        room = self.size_bytes - position - used_bytes
        needed = _PREFIX_BYTES
        if rest >= _PREFIX_BYTES:
            length = int.from_bytes(
                window[used_bytes + v2.LENGTH_AT : used_bytes + v2.LENGTH_FIELD_END],
                "big",
                signed=True,
            )
            needed = length + v2.LENGTH_FIELD_END
        if room and (needed > room or len(window) < min(self._window_bytes, room)):
            self._note_defect(
                position + used_bytes,
                f"the last batch is cut: {room} bytes, {needed} or more expected",
            )
        return max(needed, self._window_bytes)

    def _note_defect(self, position: int, reason: str) -> None:
        self.defect = SegmentDefect(position, self.size_bytes - position, reason)
