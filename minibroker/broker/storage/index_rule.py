"""The rule for index entries of a segment: the batches that get one, and their timestamps.

All code that fills indexes uses this rule: an append (`Segment.note_append`), recovery, compaction
(`SegmentWriter`), and a rebuild of lost indexes (`index_rebuild`). A batch gets an entry when more
than `index.interval.bytes` came since the last one. The offset index gets the batch's last offset,
the time index the largest timestamp so far and the last offset of the batch that holds it.

Source: Kafka LogSegment.append, LogSegment.recover; FORMAT.md sections 3 and 4.
"""

from minibroker.broker.storage.offset_index import OffsetIndex
from minibroker.broker.storage.time_index import NO_TIMESTAMP, TimeIndex


class IndexRule:
    """The state of one segment between two batches. Belongs to the code that fills its indexes."""

    __slots__ = ("bytes_since_entry", "max_timestamp", "offset_of_max_timestamp")

    def __init__(self, base_offset: int, max_timestamp: int = NO_TIMESTAMP) -> None:
        self.bytes_since_entry = 0
        self.max_timestamp = max_timestamp
        """The largest of all batches, ms."""
        self.offset_of_max_timestamp = base_offset
        """Last offset of the first batch that holds it."""

    def note(self, last_offset: int, max_timestamp: int, size_bytes: int, interval: int) -> bool:
        """Note the next batch. Return whether it gets an entry (`add_entry`).

        `interval`: `index.interval.bytes`. `max_timestamp` in ms.
        """
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self.bytes_since_entry <= interval:
            self.bytes_since_entry += size_bytes
            return False
        self.bytes_since_entry = size_bytes
        return True

    def add_entry(
        self, offset_index: OffsetIndex, time_index: TimeIndex, last_offset: int, position: int
    ) -> None:
        """Add the entries of the batch that was noted last and begins at `position` (bytes)."""
        offset_index.append(last_offset, position)
        time_index.append(self.max_timestamp, self.offset_of_max_timestamp)

    def finish(self, time_index: TimeIndex) -> None:
        """Add an entry for the largest timestamp, unless the last entry has it: nothing follows."""
        if self.max_timestamp >= 0:
            time_index.append(self.max_timestamp, self.offset_of_max_timestamp)
