"""The records of `__consumer_offsets`, both ways."""

from __future__ import annotations

import tracemalloc

import pytest

from minibroker.broker.groups.offsets import CommittedOffset
from minibroker.broker.groups.records import (
    decode_record,
    decode_records,
    encode_offset_key,
    encode_offset_value,
    offset_version_for,
)
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.protocol.stored.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from minibroker.kafka.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from minibroker.kafka.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from minibroker.kafka.records.batch import read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record

TOPIC_ID = bytes(range(16))
GROUP = "gruppe \N{GRINNING FACE}"


def test_a_key_is_what_the_generated_class_writes() -> None:
    expected = OffsetCommitKey(group=GROUP, topic="t.1", partition=7).to_bytes(1)
    assert encode_offset_key(GROUP, "t.1", 7) == expected


@pytest.mark.parametrize(
    ("committed", "asked_version", "written_version"),
    [
        (CommittedOffset(5, 3, "", 1000), 3, 3),
        (CommittedOffset(5, -1, "M\N{LATIN SMALL LETTER U WITH DIAERESIS}", 1000), 3, 3),
        (CommittedOffset(5, 3, "m", 1000, 2000), 3, 1),
        (CommittedOffset(5, 3, "m", 1000, topic_id=TOPIC_ID), 3, 4),
        (CommittedOffset(5, -1, "m", 1000), 1, 1),
        (CommittedOffset(5, 3, "m", 1000), 2, 2),
        (CommittedOffset(5, 3, "m", 1000), 0, 0),
        (CommittedOffset(5, 3, "m", 1000), 4, 4),
    ],
)
def test_a_value_is_what_the_generated_class_writes(
    committed: CommittedOffset, asked_version: int, written_version: int
) -> None:
    stored = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    value = encode_offset_value(committed, asked_version)
    assert value == stored.to_bytes(written_version)
    entry = decode_record(encode_offset_key("g", "t", 0), value, 77)
    assert entry is not None
    value_read = OffsetCommitValue.from_bytes(value)
    assert entry.value == committed._replace(
        leader_epoch=value_read.leader_epoch, topic_id=value_read.topic_id, record_offset=77
    )


@pytest.mark.parametrize("kind", [0, 1])
def test_both_kinds_of_offset_keys_are_read(kind: int) -> None:
    key = OffsetCommitKey(group=GROUP, topic="t", partition=2).to_bytes(kind)
    entry = decode_record(key, None)
    assert entry is not None
    assert (entry.kind, entry.key, entry.value) == (kind, (GROUP, "t", 2), None)


def test_other_kinds_are_read_as_generated_messages() -> None:
    value = GroupMetadataValue(protocol_type="consumer", generation=3)
    entry = decode_record(GroupMetadataKey(group="g").to_bytes(2), value.to_bytes(3))
    assert entry is not None
    assert (entry.kind, entry.key.group, entry.value.generation) == (2, "g", 3)
    epoch = ConsumerGroupMetadataValue(epoch=9).to_bytes(0)
    entry = decode_record(ConsumerGroupMetadataKey(group_id="g").to_bytes(3), epoch)
    assert entry is not None
    assert (entry.kind, entry.key.group_id, entry.value.epoch) == (3, "g", 9)


def test_an_unknown_kind_is_skipped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    batch = build_batch(
        [Record(0, 0, b"\0\x63..", b"x"), Record(0, 0, encode_offset_key("g", "t", 0), None)]
    )
    header = read_header(batch)
    entries = decode_records(
        header,
        [Record(0, 0, b"\0\x63..", b"x"), Record(1, 0, encode_offset_key("g", "t", 0), None)],
    )
    assert [entry.key for entry in entries] == [("g", "t", 0)]
    assert "unknown kind 99" in caplog.text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"", None),
        (b"\0", None),
        (b"\0\1\0\1g\0\1t\0\0", None),
        (b"\0\1\0\x09g\0\1t\0\0\0\0", None),
        (b"\0\1\xff\xffg\0\1t\0\0\0\0", None),
        (b"\0\1\0\1\xff\0\1t\0\0\0\0", None),
        (b"\0\1\0\1g\0\1t\0\0\0\0", b""),
        (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\x09" + bytes(22)),
        (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\3" + bytes(12) + b"\0\1" + bytes(8)),
        (b"\0\2\0\1g", b"\0\x09"),
        (b"\0\2\0\1g!", None),
    ],
)
def test_a_malformed_record_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptionError):
        decode_record(key, value)


@pytest.mark.parametrize(
    ("inter_broker", "version"),
    [("0.10.2-IV0", 1), ("2.0-IV1", 1), ("2.1-IV2", 3), ("3.9-IV0", 3), ("", 3)],
)
def test_old_brokers_can_read_what_is_written_beside_them(inter_broker: str, version: int) -> None:
    assert offset_version_for(inter_broker) == version


def test_long_names_are_not_kept() -> None:
    tracemalloc.start()
    try:
        for number in range(200):
            decode_record(encode_offset_key(f"{number}" + "x" * 2_000, "t", 0), None)
        assert tracemalloc.get_traced_memory()[0] < 200_000
    finally:
        tracemalloc.stop()
