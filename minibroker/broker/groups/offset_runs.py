"""The usual batch of committed offsets, read in one pass: what a broker has most of at start.

Kafka and minibroker write offsets without metadata as records of one length (but for their offset
delta), those of one topic one after the other. Here nothing is made of a record but the committed
offset itself; a batch that has anything else in it gives None and is read as every other
(`records.decode_records`), which is the reference: a property test compares the two.

    length │ 0 0 │ offset delta │ key: length, 0 1, group, topic │ partition │ 24 bytes of value │ 0
                                 └─ compared with the one before ─┘└────── unpacked at once ───────┘
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812  a class, named as the others are
from typing import TYPE_CHECKING, Final

from minibroker.broker.groups.offsets import NO_EXPIRY, CommittedOffset
from minibroker.broker.groups.records import (
    OFFSET_RUN,
    USUAL_VERSION,
    GroupEntry,
    group_and_topic,
)
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.records.batch import RECORDS_AT
from minibroker.kafka.records.compression import NONE
from minibroker.kafka.records.record import read_varint

if TYPE_CHECKING:
    from minibroker.kafka.records.batch import BatchHeader

_REST: Final = Struct(">iBhqihqB")
"""Partition, length of the value (zigzag); version, offset, leader epoch, bytes of metadata, commit
time; number of headers."""
_REST_BYTES: Final = _REST.size
_VALUE_SIZE: Final = 48
"""24 bytes, as a varint."""
_KEY_MARK: Final = b"\0\1"
_KEY_BYTES_MIN: Final = 10
"""Kind, two lengths, partition."""
_PARTITION_BYTES: Final = 4
_TWO_BYTES_END: Final = 1 << 14
"""Lengths from here on take more than two bytes."""


def decode_runs(data: memoryview, position: int, header: BatchHeader) -> list[GroupEntry] | None:
    """Return the offsets of the whole batch at `position`, as entries of kind `OFFSET_RUN`.

    None for a batch with anything but plain offsets in it, transactional ones too, and for one that
    is malformed: whoever reads it otherwise says how.
    """
    if (
        header.magic != 2
        or header.codec != NONE
        or header.is_control
        or header.is_transactional
        or header.count < 1
    ):
        return None
    body = bytes(data[position + RECORDS_AT : position + header.size_bytes])
    try:
        return _runs_in(body, header.count, header.base_offset)
    except (IndexError, StructError, CorruptionError):
        return None


def _runs_in(body: bytes, count: int, base_offset: int) -> list[GroupEntry] | None:
    """Return the runs in `body`, None if it has anything else in it.

    Raises IndexError and StructError where it ends too soon, CorruptionError for a damaged key.
    """
    runs: list[GroupEntry] = []
    run: dict[int, CommittedOffset] = {}
    key_head, key_head_bytes = b"", 0
    unpack_from = _REST.unpack_from
    new = tuple.__new__
    at = 0
    for _ in range(count):
        # Two lengths of at most two bytes, read here: a call for each would double the time.
        size = body[at]
        start = at + 1
        if size >= 0x80:
            size = size & 0x7F | body[start] << 7
            start += 1
        delta = body[start + 2]
        key_at = start + 3
        if delta >= 0x80:
            delta = delta & 0x7F | body[key_at] << 7
            key_at += 1
        if (
            size & 1
            or delta & 1
            or size >= _TWO_BYTES_END
            or delta >= _TWO_BYTES_END
            or body[start]  # attributes
            or body[start + 1]  # time
        ):
            return None
        if not key_head_bytes or body[key_at : key_at + key_head_bytes] != key_head:
            key_size, kind_at = read_varint(body, key_at)
            if body[kind_at : kind_at + 2] != _KEY_MARK or key_size < _KEY_BYTES_MIN:
                return None
            key_head = body[key_at : kind_at + key_size - _PARTITION_BYTES]
            key_head_bytes = len(key_head)
            run = {}
            name = group_and_topic(key_head[kind_at - key_at :])
            runs.append(GroupEntry(OFFSET_RUN, name, run))
        rest_at = key_at + key_head_bytes
        partition, value_size, version, offset, leader_epoch, metadata_bytes, time_ms, headers = (
            unpack_from(body, rest_at)
        )
        at = rest_at + _REST_BYTES
        if (
            value_size != _VALUE_SIZE
            or version != USUAL_VERSION
            or metadata_bytes
            or headers
            or at - start != size >> 1
        ):
            return None
        run[partition] = new(
            CommittedOffset,
            (
                offset,
                leader_epoch,
                "",
                time_ms,
                NO_EXPIRY,
                ZERO_TOPIC_ID,
                base_offset + (delta >> 1),
            ),
        )
    return runs if at == len(body) else None
