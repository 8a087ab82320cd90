"""The offset and time index of a segment, made again from the headers in its `.log`.

Needed where an index file is missing or cannot be right: the first use of such a segment comes
here. What a broker writes as it goes, `Segment.note_append` keeps.

Source: Kafka LogSegment.recover; FORMAT.md sections 3 and 4.
"""

from collections.abc import Iterable
from typing import Final

from minibroker.broker.storage.index_rule import IndexRule
from minibroker.broker.storage.offset_index import OffsetIndex
from minibroker.broker.storage.time_index import TimeIndex
from minibroker.kafka.records.batch import BatchHeader

INDEX_INTERVAL_BYTES: Final = 4096
"""How dense an index is that is made again while nobody knows the topic's configuration."""


def rebuild(
    base_offset: int,
    headers: Iterable[tuple[int, BatchHeader]],
    offset_index: OffsetIndex,
    time_index: TimeIndex,
) -> None:
    """Fill both indexes anew, and write them.

    `headers`: (position in bytes, header) of every batch. The last entry of the time index is the
    largest timestamp, as at a roll. Raises CorruptionError of a header that cannot be, OSError.
    """
    for index in (offset_index, time_index):
        index.cut(0)
    rule = IndexRule(base_offset)
    for position, header in headers:
        last_offset = header.last_offset
        if rule.note(last_offset, header.max_timestamp, header.size_bytes, INDEX_INTERVAL_BYTES):
            rule.add_entry(offset_index, time_index, last_offset, position)
    rule.finish(time_index)
    for index in (offset_index, time_index):
        index.create()
        index.write()
