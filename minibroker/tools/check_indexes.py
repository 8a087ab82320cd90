"""Both indexes of a segment under `check-log`, compared entry by entry during the walk of the
batches.

An entry of the offset index must point to the start of a batch, and its offset must not be below
that batch: else a read at that offset starts behind it. An entry of the time index must name the
first batch at which its timestamp is the largest so far: else a lookup by time skips records.

Source: Kafka OffsetIndex, TimeIndex; FORMAT.md sections 3 and 4.
"""

from struct import Struct
from typing import ClassVar, NamedTuple

from minibroker.tools.dump_indexes import OFFSET_ENTRY, TIME_ENTRY, IndexEntries
from minibroker.tools.findings import Findings
from minibroker.tools.log_file import FileBatch


class SegmentEnd(NamedTuple):
    """The end of a segment.

    `sound_position` is behind its last sound batch, `next_offset` behind that batch's last record.
    `reason` says why the rest is not sound, None if there is no rest.
    """

    next_offset: int
    sound_position: int
    size_bytes: int
    reason: str | None


class _Entries:
    """Base of both checks: a file of entries, and the next entry to compare."""

    LAYOUT: ClassVar[Struct]
    RULE: ClassVar[str]

    def __init__(self, findings: Findings, path: str, base_offset: int, *, is_last: bool) -> None:
        """Open the index.

        `is_last`: the segment is the newest, where a killed Kafka leaves zeros. Raises OSError.
        """
        self.findings = findings
        self.path = path
        self.base_offset = base_offset
        self.index: IndexEntries | None = None
        self.number = self.count = 0
        try:
            self.index = IndexEntries(path, self.LAYOUT)
        except FileNotFoundError:
            findings.note(f"{self.RULE}-absent", path, "is not there and is made again when needed")
            return
        self.count = self.index.count
        if self.index.odd_bytes:
            self.broken(
                "size", self.count, f"{self.index.odd_bytes} bytes behind the last whole entry"
            )
        while is_last and self.count > 1 and self.index.entry(self.count - 1) == (0, 0):
            self.count -= 1

    def broken(self, rule: str, number: int, detail: str) -> None:
        """Report a finding about entry `number`."""
        self.findings.broken(f"{self.RULE}-{rule}", self.path, number * self.LAYOUT.size, detail)

    def stop(self) -> None:
        """Skip the rest of the entries, which cannot be compared."""
        self.number = self.count


class OffsetEntries(_Entries):
    """Check of a `.index`."""

    LAYOUT = OFFSET_ENTRY
    RULE = "index"

    def __init__(self, findings: Findings, path: str, base_offset: int, *, is_last: bool) -> None:
        super().__init__(findings, path, base_offset, is_last=is_last)
        self._last = (-1, -1)

    def pass_batch(self, batch: FileBatch) -> None:
        """Compare the entries that point before the end of `batch`."""
        index = self.index
        while index is not None and self.number < self.count:
            relative, position = index.entry(self.number)
            if position >= batch.end:
                return
            offset = self.base_offset + relative
            if relative <= self._last[0] or position <= self._last[1]:
                self.broken(
                    "order",
                    self.number,
                    f"offset {offset} at position {position} does not follow offset "
                    f"{self.base_offset + self._last[0]} at position {self._last[1]}",
                )
                self.stop()
                return
            if position != batch.position:
                self.broken("position", self.number, f"no batch begins at position {position}")
            elif offset < batch.header.base_offset:
                self.broken(
                    "offset",
                    self.number,
                    f"offset {offset} is said to be at position {position}, where offset "
                    f"{batch.header.base_offset} begins",
                )
            self._last = relative, position
            self.number += 1

    def finish(self, end: SegmentEnd) -> None:
        """Report entries that are left: they point beyond the segment."""
        if self.index is None:
            return
        if self.number and self.base_offset + self._last[0] >= end.next_offset:
            self.broken(
                "offset",
                self.number - 1,
                f"offset {self.base_offset + self._last[0]}, the segment ends before "
                f"{end.next_offset}",
            )
        if self.number < self.count and end.reason is None:
            relative, position = self.index.entry(self.number)
            self.broken(
                "position",
                self.number,
                f"offset {self.base_offset + relative} is said to be at position {position}, the "
                f"segment has {end.size_bytes} bytes",
            )


class TimeEntries(_Entries):
    """Check of a `.timeindex`."""

    LAYOUT = TIME_ENTRY
    RULE = "timeindex"

    def __init__(self, findings: Findings, path: str, base_offset: int, *, is_last: bool) -> None:
        super().__init__(findings, path, base_offset, is_last=is_last)
        self._last = (-1, -1)

    def pass_batch(self, batch: FileBatch, max_timestamp: int) -> None:
        """Compare the entries up to the last offset of `batch`.

        `max_timestamp`: the largest of the segment so far, that of `batch` included.
        """
        index = self.index
        header = batch.header
        while index is not None and self.number < self.count:
            timestamp, relative = index.entry(self.number)
            offset = self.base_offset + relative
            if offset > header.last_offset:
                return
            if timestamp <= self._last[0] or relative < self._last[1]:
                self.broken(
                    "order",
                    self.number,
                    f"timestamp {timestamp} at offset {offset} does not follow timestamp "
                    f"{self._last[0]} at offset {self.base_offset + self._last[1]}",
                )
                self.stop()
                return
            if offset < header.base_offset:
                self.broken("offset", self.number, f"no batch holds offset {offset}")
            elif timestamp != max_timestamp:
                self.broken(
                    "timestamp",
                    self.number,
                    f"timestamp {timestamp} at offset {offset}, the largest up to there is "
                    f"{max_timestamp}",
                )
            self._last = timestamp, relative
            self.number += 1

    def finish(self, end: SegmentEnd, max_timestamp: int, *, is_last: bool) -> None:
        """Report entries that are left, and a finished segment without its largest timestamp."""
        if self.index is None:
            return
        if self.number < self.count and end.reason is None:
            timestamp, relative = self.index.entry(self.number)
            self.broken(
                "offset",
                self.number,
                f"timestamp {timestamp} at offset {self.base_offset + relative}, the segment ends "
                f"before {end.next_offset}",
            )
        if not is_last and end.reason is None and self._last[0] < max_timestamp:
            self.broken(
                "largest",
                self.count,
                f"the largest timestamp of the segment, {max_timestamp}, is not in it",
            )
