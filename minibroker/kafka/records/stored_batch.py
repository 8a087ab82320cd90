"""A batch as a log stores it, found sound by its reader: in a segment's file or in an answer of
Fetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records import batch as v2
from minibroker.kafka.records import message_set

if TYPE_CHECKING:
    from minibroker.kafka.records.batch import BatchHeader


class StoredBatch(NamedTuple):
    """A sound batch, or message of format 0 or 1. `content`: its bytes, header included."""

    position: int
    header: BatchHeader
    content: memoryview


def check_crc(buffer: bytes | memoryview, at: int, header: BatchHeader) -> None:
    """Raise CorruptionError if the batch at `at` has a wrong CRC."""
    is_valid = v2.crc_is_valid if header.magic == 2 else message_set.crc_is_valid
    if not is_valid(buffer, at, header.size_bytes):
        raise CorruptionError(f"the batch of offset {header.base_offset} has a wrong CRC")
