"""The records of `__consumer_offsets`: bytes ↔ what they say.

A record's key begins with an int16 that says what kind it is; its value with an int16 version.

| kind   | what                                   | key                     | written by |
|--------|----------------------------------------|-------------------------|------------|
| 0, 1   | a committed offset                     | group, topic, partition | `shard`    |
| 2      | a classic group                        | group                   | `classic`  |
| 3 to 8 | a consumer group, its members, targets | group, member …         | `consumer` |
| 16     | a resolved regular expression          | group, expression       | `consumer` |

A null value deletes (tombstone). `kinds` says which records a kind of groups has. Kinds of records
that are not in the table (share and streams groups, which Kafka 4 keeps beside these) are skipped
with a warning, as Kafka does; a *value* of an unknown version cannot be skipped without losing
something, so it ends the load, as in Kafka.

Offsets are read and written by hand: a broker with a hundred thousand of them wants to start
within a second, and every OffsetCommit writes some.

Source: Kafka GroupMetadataManager (3.9), GroupCoordinatorRecordSerde and
GroupCoordinatorRecordHelpers (4.4).
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.groups.kinds import classes_of
from minibroker.broker.groups.offsets import NO_EXPIRY, CommittedOffset
from minibroker.kafka.errors import CorruptionError, ProtocolError
from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.protocol.stored.offset_commit import OffsetCommitValue
from minibroker.kafka.records.turns import in_turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from minibroker.broker.groups.offsets import OffsetKey
    from minibroker.kafka.records.batch import BatchHeader
    from minibroker.kafka.records.record import Record

logger = logging.getLogger(__name__)

OFFSET_RUN: Final = -1
"""No kind of a record: many of kind 1, as `offset_runs` reads them."""
OFFSET_COMMIT: Final = 1
"""Kinds 0 and 1 are the same; new ones are written as 1."""

EXPIRING_VERSION: Final = 1
"""Version of an offset's value: the only one with an explicit time of expiry."""
USUAL_VERSION: Final = 3
TOPIC_ID_VERSION: Final = 4
_LEADER_EPOCHS_SINCE: Final = (2, 1)

PREFIXES_KEPT: Final = 1024
PREFIX_BYTES_MAX: Final = 1024
"""The names of longer bytes are not kept: they and the bytes would be kept together."""

_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")
_V3_HEAD: Final = Struct(">hqih")
"""Version, offset, leader epoch, bytes of metadata."""
_PLAIN: Final = Struct(">hqihq")
"""The same with no metadata, and the commit time."""
_KEY_MARK: Final = b"\0\1"


class GroupEntry(NamedTuple):
    """One record, decoded."""

    kind: int
    key: Any
    """Kinds 0 and 1: (group id, topic, partition); `OFFSET_RUN`: (group id, topic); else the
    generated key."""
    value: Any
    """Kinds 0 and 1: `CommittedOffset`; `OFFSET_RUN`: partition → `CommittedOffset`, at least one,
    whoever replays it keeps it; else the generated value. None: a tombstone."""


def decode_records(header: BatchHeader, records: Sequence[Record]) -> Sequence[GroupEntry | Record]:
    """Return every record of a batch that is known here; those of a control batch stay as they are.

    Called on the worker while a partition loads. Raises CorruptionError.
    """
    if header.is_control:
        return records
    entries = []
    for offset, _, key, value, _ in in_turns(records):
        if key is not None and key[:2] == _KEY_MARK:
            entry = GroupEntry(OFFSET_COMMIT, _offset_key(key), _offset_value(value, offset))
            entries.append(entry)
        elif (group_record := decode_record(key, value, offset)) is not None:
            entries.append(group_record)
    return entries


def decode_record(
    key: bytes | None, value: bytes | None, record_offset: int = -1
) -> GroupEntry | None:
    """Decode a record; None for a kind that is not known. Raises CorruptionError."""
    if key is None or len(key) < _SHORT.size:
        raise CorruptionError(f"record {record_offset} of a group has no key that says its kind")
    kind = _SHORT.unpack_from(key)[0]
    if kind in (0, OFFSET_COMMIT):
        return GroupEntry(kind, _offset_key(key), _offset_value(value, record_offset))
    classes = classes_of(kind)
    if classes is None:
        logger.warning(
            "record %d has a key of the unknown kind %d; it is ignored, it may be left from an"
            " upgrade that was taken back, or belong to a newer broker",
            record_offset,
            kind,
        )
        return None
    key_class, value_class = classes
    try:
        return GroupEntry(
            kind,
            key_class.from_bytes(key),
            None if value is None else value_class.from_bytes(value),
        )
    except ProtocolError as error:
        raise CorruptionError(f"record {record_offset} of a group: {error}") from error


def _offset_key(key: bytes) -> OffsetKey:
    """Kind (int16), group and topic (int16 length, UTF-8), partition (int32), and nothing else."""
    group_id, topic = group_and_topic(key[: -_INT.size])
    return group_id, topic, int.from_bytes(key[-_INT.size :], "big", signed=True)


def group_and_topic(data: bytes) -> tuple[str, str]:
    """(group id, topic) of a key, without its partition: the same for all partitions of a topic.

    Raises CorruptionError.
    """
    return _kept_names(data) if len(data) <= PREFIX_BYTES_MAX else _names(data)


def _names(data: bytes) -> tuple[str, str]:
    try:
        end = 4 + _SHORT.unpack_from(data, 2)[0]
        topic_end = end + 2 + _SHORT.unpack_from(data, end)[0]
        if 4 <= end <= topic_end - 2 and len(data) == topic_end:
            return data[4:end].decode(), data[end + 2 :].decode()
    except (struct_error, UnicodeDecodeError) as error:
        raise CorruptionError(f"key of a committed offset {data.hex()}…: {error}") from error
    raise CorruptionError(f"key of a committed offset {data.hex()}…: its lengths do not fit it")


_kept_names = lru_cache(PREFIXES_KEPT)(_names)


def _offset_value(value: bytes | None, record_offset: int) -> CommittedOffset | None:
    if value is None:
        return None
    if len(value) == _PLAIN.size:
        # The usual one: version 3 without metadata.
        version, offset, leader_epoch, size_bytes, timestamp_ms = _PLAIN.unpack(value)
        if version == USUAL_VERSION and size_bytes == 0:
            return CommittedOffset(
                offset, leader_epoch, "", timestamp_ms, NO_EXPIRY, ZERO_TOPIC_ID, record_offset
            )
    try:
        message = OffsetCommitValue.from_bytes(value)
    except ProtocolError as error:
        raise CorruptionError(f"committed offset in record {record_offset}: {error}") from error
    return CommittedOffset(
        message.offset,
        message.leader_epoch,
        message.metadata,
        message.commit_timestamp,
        message.expire_timestamp,
        message.topic_id,
        record_offset,
    )


def encode_offset_key(group_id: str, topic: str, partition: int) -> bytes:
    """Return the key of a committed offset, of kind 1."""
    group, name = group_id.encode(), topic.encode()
    return b"".join(
        (
            _KEY_MARK,
            _SHORT.pack(len(group)),
            group,
            _SHORT.pack(len(name)),
            name,
            _INT.pack(partition),
        )
    )


def encode_offset_value(committed: CommittedOffset, version: int = USUAL_VERSION) -> bytes:
    """Return the value of a committed offset, of `version` where nothing in it asks for another
    one.

    Kafka 3.9 writes version 3 (and reads 4), Kafka 4.4 version 4. An explicit expiry has a place in
    version 1 only; a topic id, in version 4 only, is kept where the client said it.
    """
    if committed.expire_timestamp_ms != NO_EXPIRY:
        version = EXPIRING_VERSION
    elif committed.topic_id != ZERO_TOPIC_ID and version == USUAL_VERSION:
        version = TOPIC_ID_VERSION
    if version == USUAL_VERSION:
        metadata = committed.metadata.encode()
        return b"".join(
            (
                _V3_HEAD.pack(version, committed.offset, committed.leader_epoch, len(metadata)),
                metadata,
                _LONG.pack(committed.commit_timestamp_ms),
            )
        )
    message = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    return message.to_bytes(version)


def offset_records(
    commits: Iterable[tuple[OffsetKey, CommittedOffset]], version: int
) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of each committed offset; `version` as in `encode_offset_value`."""
    for (group_id, topic, partition), committed in commits:
        yield (
            encode_offset_key(group_id, topic, partition),
            encode_offset_value(committed, version),
        )


def offset_version_for(inter_broker_protocol: str) -> int:
    """Return the version of new values that brokers of this `inter.broker.protocol.version` can
    read.
    """
    release = re.match(r"(\d+)\.(\d+)", inter_broker_protocol)
    if release is not None and tuple(map(int, release.groups())) < _LEADER_EPOCHS_SINCE:
        return EXPIRING_VERSION
    return USUAL_VERSION
