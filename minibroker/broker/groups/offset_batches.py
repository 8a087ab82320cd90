"""The usual batch of committed offsets, ready but for its numbers.

A consumer commits the same partitions of a topic again and again, mostly without metadata. Such a
batch differs from the one before in times, offsets and epochs only, which stand at the same places
because nothing in it changes its length. So the general encoder (`records`, `builder`) writes it
once, with zeros, and `CommitTemplate.fill` puts the numbers in and computes the CRC anew.

`handlers/offset_commit_fast` commits so; `GroupShard.commit_offsets` is the general way.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Final

from minibroker.broker.groups.offsets import CommittedOffset
from minibroker.broker.groups.records import (
    TOPIC_ID_VERSION,
    USUAL_VERSION,
    encode_offset_key,
    encode_offset_value,
)
from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.records.batch import ATTRIBUTES_AT, CRC_AT, RECORDS_AT
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.crc import crc32c
from minibroker.kafka.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

OFFSETS_MAX: Final = 64
"""In one template: up to here every offset delta is one byte, so all records have one length."""
TEMPLATES_KEPT: Final = 1024
"""A template has about 100 bytes for each offset."""
GROUP_ID_LENGTH_MAX: Final = 256
"""A template of a longer group id is not kept: each of its offsets has the group id."""

_BASE_TIMESTAMP_AT: Final = 27
_TIMES: Final = Struct(">qq")
"""Base and maximum timestamp of the batch, ms."""
_UINT32: Final = Struct(">I")
_NAMED: Final = Struct(">iBhqihq")
"""From the end of the key on: partition, length of the value (zigzag), then the value of version 3:
version, offset, leader epoch, bytes of metadata, commit time."""
_IDENTIFIED: Final = Struct(">iBhqiBq")
"""The same with a value of version 4; its topic id stands behind."""
_PARTITION_BYTES: Final = 4
_NO_METADATA: Final = (0, 1)
"""Its length in version 3, and compact in version 4."""


class CommitTemplate:
    """The batch for so many offsets of one group and topic."""

    __slots__ = ("_batch", "_constants", "_first_at", "_form", "_stride_bytes")

    def __init__(self, group_id: str, topic: str, topic_id: bytes, count: int) -> None:
        """`topic_id` is zero where the client named the topic; `count` is 1 to OFFSETS_MAX."""
        key = encode_offset_key(group_id, topic, 0)
        value = encode_offset_value(CommittedOffset(0, 0, "", 0, topic_id=topic_id))
        self._batch = build_batch([Record(0, 0, key, value)] * count, base_sequence=0)
        self._stride_bytes = (len(self._batch) - RECORDS_AT) // count
        self._first_at = self._batch.index(key, RECORDS_AT) + len(key) - _PARTITION_BYTES
        is_named = topic_id == ZERO_TOPIC_ID
        self._form = _NAMED if is_named else _IDENTIFIED
        version = USUAL_VERSION if is_named else TOPIC_ID_VERSION
        self._constants = 2 * len(value), version, _NO_METADATA[not is_named]

    def fill(self, offsets: Iterable[tuple[int, int, int]], now_ms: int) -> bytearray:
        """Return the batch that commits `offsets`, as many as the template is for: (partition,
        offset, leader epoch) each; committed and written now, wall clock in ms.
        """
        batch = bytearray(self._batch)
        _TIMES.pack_into(batch, _BASE_TIMESTAMP_AT, now_ms, now_ms)
        value_size, version, no_metadata = self._constants
        pack_into = self._form.pack_into
        at = self._first_at
        for partition, offset, leader_epoch in offsets:
            pack_into(
                batch, at, partition, value_size, version, offset, leader_epoch, no_metadata, now_ms
            )
            at += self._stride_bytes
        with memoryview(batch) as view:
            _UINT32.pack_into(batch, CRC_AT, crc32c(view[ATTRIBUTES_AT:]))
        return batch


def template_of(group_id: str, topic: str, topic_id: bytes, count: int) -> CommitTemplate:
    """Return a `CommitTemplate`; the ones used last are kept, but not that of a long group id."""
    if len(group_id) > GROUP_ID_LENGTH_MAX:
        return CommitTemplate(group_id, topic, topic_id, count)
    return _kept_template(group_id, topic, topic_id, count)


_kept_template = lru_cache(TEMPLATES_KEPT)(CommitTemplate)
