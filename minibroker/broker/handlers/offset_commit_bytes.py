"""The parts of the usual OffsetCommit request: versions 7-10, one topic, no metadata.

Nothing is decoded but the partitions and their numbers; `offset_commit_fast` knows what the bytes
before them say.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812  a class, named as the others are
from typing import Final

from minibroker.broker.groups.offset_batches import OFFSETS_MAX

FIRST_VERSION: Final = 7
FLEXIBLE_FROM: Final = 8
TOPIC_IDS_FROM: Final = 10

_SHORT: Final = Struct(">h")
_INT32: Final = Struct(">i")
_COUNT_LENGTH: Final = Struct(">ih")
"""Number of topics, length of the first one's name."""
_ENTRY: Final = Struct(">iqih")
"""Version 7: partition, offset, leader epoch, length of the metadata."""
_COMPACT_ENTRY: Final = Struct(">iqiBB")
"""Versions 8-10: the same with a compact length, and tags."""
_ENTRY_BYTES: Final = 18
"""Bytes of an entry in both forms."""
_NO_TAGS: Final = b"\0\0"
"""Empty tagged fields of the topic and of the request."""

Offset = tuple[int, int, int]
"""Partition, offset, leader epoch."""


def split(frame: memoryview, position: int, version: int) -> tuple[bytes, list[Offset]] | None:
    """Return the body at `position` of `frame`: bytes before the number of partitions, and the
    offsets.

    None for any other shape. Where lengths lie the bytes are not what they should be: who takes
    them for something has to have seen a whole request that begins with them.
    """
    if version < FLEXIBLE_FROM:
        return _split_plain(frame, position)
    return _split_compact(frame, position, version)


def _split_compact(
    frame: memoryview, position: int, version: int
) -> tuple[bytes, list[Offset]] | None:
    """Versions 8-10: (bytes before the number of partitions, the offsets)."""
    try:
        at = position + frame[position] + 4  # group id, generation
        at += frame[at]  # member id
        at += frame[at] or 1  # instance id
        topic_count = frame[at]
        at += 1
        at += 16 if version >= TOPIC_IDS_FROM else frame[at]
        count = frame[at] - 1
    except IndexError:
        return None
    start = at + 1
    end = len(frame) - len(_NO_TAGS)
    if (
        topic_count != 2
        or not 0 < count <= OFFSETS_MAX
        or end - start != count * _ENTRY_BYTES
        or bytes(frame[end:]) != _NO_TAGS
    ):
        return None
    offsets = []
    for partition, offset, leader_epoch, size, tag_count in _COMPACT_ENTRY.iter_unpack(
        frame[start:end]
    ):
        if size > 1 or tag_count:
            return None
        offsets.append((partition, offset, leader_epoch))
    return bytes(frame[position:at]), offsets


def _split_plain(frame: memoryview, position: int) -> tuple[bytes, list[Offset]] | None:
    """Version 7: (bytes before the number of partitions, the offsets)."""
    length_at = _SHORT.unpack_from
    try:
        at = position + 6 + length_at(frame, position)[0]  # group id, generation
        at += 2 + length_at(frame, at)[0]  # member id
        at += 2 + max(0, length_at(frame, at)[0])  # instance id
        topic_count, name_length = _COUNT_LENGTH.unpack_from(frame, at)
        at += 6 + name_length
        (count,) = _INT32.unpack_from(frame, at)
    except StructError:
        return None
    start = at + 4
    if (
        topic_count != 1
        or not 0 < count <= OFFSETS_MAX
        or len(frame) - start != count * _ENTRY_BYTES
    ):
        return None
    offsets = []
    for partition, offset, leader_epoch, size in _ENTRY.iter_unpack(frame[start:]):
        if size not in {0, -1}:
            return None
        offsets.append((partition, offset, leader_epoch))
    return bytes(frame[position:at]), offsets
