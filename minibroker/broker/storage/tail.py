"""The batches appended to a log that are not written yet, in log order, and the room behind.

On the way of a record: *staged*. `PartitionLog.append_as_leader` stages a checked, numbered batch:
no system call, the request's own bytes are kept by reference. `PartitionLog.write_staged` hands all
of it to the system in one call, and only then may a reader see it and the answers leave.

All staged batches belong to the active segment. So the tail also knows how much that segment still
takes, and an append need not look at the segment.

Source: none; Kafka writes each batch as it comes.
"""

from __future__ import annotations

from typing import Final

STAGED_BYTES_MAX: Final = 1 << 20
"""More than this is written without waiting for the end of the socket read."""

ALWAYS_ASK: Final = -2
"""`roll_after_ms` where the age of the segment has to be computed first."""


class AppendInfo:
    """The entry of one append, from staged to written: what Produce answers.

    Constant after construction, but for `is_written`, which the log sets.
    """

    __slots__ = (
        "append_time_ms",
        "duplicate",
        "first_offset",
        "is_written",
        "last_offset",
        "log_start_offset",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        append_time_ms: int,
        log_start_offset: int,
        duplicate: bool = False,
    ) -> None:
        """Take inclusive offsets; `append_time_ms` is -1 for CreateTime.

        `duplicate`: the batch was there already, and nothing was appended. The offsets are those of
        the first append, and `append_time_ms` is its largest timestamp, as in Kafka's answer.
        """
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.append_time_ms = append_time_ms
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate
        self.is_written = False
        """True once its bytes are in the file. Where a write fails, the log takes staged batches
        back, and a later append may get their offsets."""


class Tail:
    """The tail of one log. All fields belong to the loop."""

    __slots__ = (
        "_max_offset",
        "_roll_after_ms",
        "_room_bytes",
        "_room_entries",
        "batches",
        "buffers",
        "entries",
        "next_offset",
        "size_bytes",
    )

    def __init__(self, log_end_offset: int) -> None:
        """Begin empty, behind a log that ends at `log_end_offset`."""
        self.next_offset = log_end_offset
        """The offset that the next record gets."""
        self.buffers: list[memoryview] = []
        """Bytes to write, one view for each batch."""
        self.batches: list[tuple[int, int, int]] = []
        """(last offset, largest timestamp in ms, bytes): what `Segment.note_append` wants."""
        self.size_bytes = 0
        """Size of all `buffers`, bytes."""
        self.entries: list[AppendInfo] = []
        """One for each staged batch, and one for each repetition of a batch that is staged."""
        self.forget_room()

    def forget_room(self) -> None:
        """Make the next append look at the active segment again."""
        self._room_bytes = self._room_entries = 0
        self._roll_after_ms = ALWAYS_ASK
        self._max_offset = -1

    def set_room(
        self, size_bytes: int, entry_count: int, *, roll_after_ms: int, max_offset: int
    ) -> None:
        """Set the room of the active segment behind the written bytes: bytes of `.log`, entries of
        its indexes, timestamps up to `roll_after_ms` (or ALWAYS_ASK), offsets up to `max_offset`.
        """
        self._room_bytes = size_bytes
        self._room_entries = entry_count
        self._roll_after_ms = roll_after_ms
        self._max_offset = max_offset

    def fits(self, last_offset: int, max_timestamp: int, size_bytes: int) -> bool:
        """Return whether the batch fits into the active segment; False where nobody looked yet."""
        return (
            size_bytes <= self._room_bytes
            and max_timestamp <= self._roll_after_ms
            and len(self.batches) < self._room_entries
            and last_offset <= self._max_offset
        )

    def stage(
        self,
        records: memoryview,
        entry: AppendInfo,
        last_offset: int,
        max_timestamp: int,
        first_part: tuple[int, int, int] | None = None,
    ) -> bool:
        """Put `records` behind what is staged. Return whether it is enough to be written now.

        `entry`: the entry of this batch (of a leader), or of several (of a follower).
        `last_offset`, `max_timestamp` (ms): of `records`. `first_part`: last offset, largest
        timestamp and size of those that the indexes count separately; then `max_timestamp` is that
        of the rest.
        """
        size_bytes = len(records)
        if first_part is None:
            self.batches.append((last_offset, max_timestamp, size_bytes))
        else:
            rest = last_offset, max_timestamp, size_bytes - first_part[2]
            self.batches += first_part, rest
        self.buffers.append(records)
        self.entries.append(entry)
        self.next_offset = last_offset + 1
        self._room_bytes -= size_bytes
        self.size_bytes += size_bytes
        return self.size_bytes > STAGED_BYTES_MAX

    def note_written(self, index_entry_count: int) -> None:
        """Note that all of it is in the file, and that the indexes got so many entries."""
        for entry in self.entries:
            entry.is_written = True
        # At least this is left; when it looks like nothing it is counted anew.
        self._room_entries -= index_entry_count
        self._forget()

    def drop(self, log_end_offset: int) -> None:
        """Forget all of it: nothing is in the log, which ends at `log_end_offset`."""
        self._forget()
        self.next_offset = log_end_offset
        self.forget_room()

    def _forget(self) -> None:
        self.buffers = []
        self.batches = []
        self.size_bytes = 0
        self.entries = []
