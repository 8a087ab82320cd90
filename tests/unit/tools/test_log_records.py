"""Records of a batch as the tools show them, formats 0 to 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from minibroker.kafka.protocol.stored.transaction_log import TransactionLogKey, TransactionLogValue
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.control import TransactionMarker, build_marker
from minibroker.kafka.records.record import Record
from minibroker.tools.coordinator_records import (
    decode_group_record,
    decode_share_record,
    decode_transaction_record,
)
from minibroker.tools.log_file import LogFile
from minibroker.tools.log_records import (
    ControlRecord,
    LogRecord,
    control_of,
    delete_horizon_ms,
    records_of,
    timestamp_type,
)
from minibroker.tools.metadata_records import decode_metadata_record, raft_content
from minibroker.tools.remote_records import decode_remote_record
from tests.support import message_sets

if TYPE_CHECKING:
    from pathlib import Path


def records_in(path: Path, content: bytes) -> list[LogRecord]:
    file_path = path / "0.log"
    file_path.write_bytes(content)
    with LogFile(str(file_path)) as file:
        return [record for batch in file.batches() for record in records_of(batch)]


def test_sequences_follow_the_batch_s_first_and_wrap(tmp_path: Path) -> None:
    one_batch = build_batch(
        [Record(0, 1, b"k", None), Record(1, 2, None, b"v")],
        base_offset=5,
        producer_id=1,
        producer_epoch=0,
        base_sequence=2**31 - 1,
    )
    first, second = records_in(tmp_path, bytes(one_batch))
    assert (first.offset, first.sequence, first.key, first.crc) == (5, 2**31 - 1, b"k", None)
    assert (second.offset, second.sequence, second.value) == (6, 0, b"v")


def test_a_wrapper_of_format_1_counts_from_its_own_offset(tmp_path: Path) -> None:
    inner = message_sets.plain(b"a", b"b", b"c")
    wrapper = message_sets.wrapper(message_sets.GZIP, inner, offset=12)
    records = records_in(tmp_path, wrapper)
    assert [record.offset for record in records] == [10, 11, 12]
    assert [record.is_valid for record in records] == [True] * 3
    late = message_sets.wrapper(
        message_sets.GZIP, inner, offset=12, attributes=message_sets.APPEND_TIME, timestamp=99
    )
    assert {record.timestamp for record in records_in(tmp_path, late)} == {99}


def test_a_wrapper_of_format_0_keeps_its_offsets(tmp_path: Path) -> None:
    inner = message_sets.message(b"a", magic=0, offset=7)
    inner += message_sets.message(b"b", magic=0, offset=9, wrong_crc=True)
    wrapper = message_sets.wrapper(message_sets.SNAPPY, inner, magic=0, offset=9)
    records = records_in(tmp_path, wrapper)
    assert [(record.offset, record.timestamp, record.is_valid) for record in records] == [
        (7, -1, True),
        (9, -1, False),
    ]


@pytest.mark.parametrize(
    "content",
    [
        message_sets.wrapper(message_sets.GZIP, b"", offset=1),
        message_sets.wrapper(message_sets.GZIP, bytes(40), offset=1),
        message_sets.message(None, None, attributes=message_sets.GZIP),
        message_sets.wrapper(message_sets.GZIP, message_sets.message(b"a", offset=5) * 2, offset=3),
        message_sets.wrapper(message_sets.GZIP, message_sets.message(b"a", magic=3), offset=3),
    ],
)
def test_wrappers_that_cannot_be_opened(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CorruptionError):
        records_in(tmp_path, content)


def test_control_records(tmp_path: Path) -> None:
    marker = build_marker(
        TransactionMarker(is_commit=True, coordinator_epoch=8),
        producer_id=1,
        producer_epoch=0,
        timestamp_ms=1,
    )
    (record,) = records_in(tmp_path, bytes(marker))
    assert control_of(record) == ControlRecord(1, 8)
    assert control_of(record).name == "COMMIT"
    assert control_of(record._replace(key=b"\x00\x00\x00\x02")).name == "LEADER_CHANGE"
    assert control_of(record._replace(key=b"\x00\x00\x00\x63")).name == "UNKNOWN"
    for broken in (record._replace(key=b"\x00"), record._replace(value=None)):
        with pytest.raises(CorruptionError):
            control_of(broken)


def test_times_in_a_header(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    old = message_sets.message(b"a", magic=0)
    path.write_bytes(old + bytes(build_batch([Record(0, 1, None, b"v")], base_offset=1)))
    with LogFile(str(path)) as file:
        first, second = (batch.header for batch in file.batches())
    assert timestamp_type(first) == "NoTimestampType"
    assert timestamp_type(second) == "CreateTime"
    assert delete_horizon_ms(second) is None
    second.attributes |= 0x48
    assert timestamp_type(second) == "LogAppendTime"
    assert delete_horizon_ms(second) == 1


# Decoders of the internal topics: what cannot be decoded. (The rest: beside Kafka's tool.)


def record(key: bytes | None, value: bytes | None = None) -> LogRecord:
    return LogRecord(3, 0, key, value, (), -1, None, None)


def test_a_committed_offset_and_its_deletion() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=2).to_bytes(1)
    decoded = decode_group_record(record(key))
    assert decoded.key == '{"type":"1","data":{"group":"g","topic":"t","partition":2}}'
    assert decoded.value == "<DELETE>"
    value = OffsetCommitValue(offset=8).to_bytes(3)
    decoded = decode_group_record(record(key, value))
    assert decoded.value is not None
    assert decoded.value.startswith('{"version":"3","data":{"offset":8,"leaderEpoch":-1,')


def test_group_records_that_cannot_be_decoded() -> None:
    assert decode_group_record(record(b"\x00\x63")) == (
        "Unknown record type 99 at offset 3, skipping.",
        None,
    )
    torn = decode_group_record(record(b"\x00\x01\x00"))
    assert torn.key is not None
    assert torn.key.startswith("Error at offset 3, skipping.")
    with pytest.raises(CorruptionError, match="offset 3 has no key"):
        decode_group_record(record(None))


def test_transactions() -> None:
    key = TransactionLogKey(transactional_id="id").to_bytes(0)
    value = TransactionLogValue(producer_id=4, transaction_status=1).to_bytes(0)
    decoded = decode_transaction_record(record(key, value))
    assert decoded.key == "transaction_metadata::transactionalId=id"
    assert decoded.value is not None
    assert decoded.value.startswith("producerId:4,producerEpoch:0,state=Ongoing,partitions=[],")
    wrong = TransactionLogValue(transaction_status=77).to_bytes(0)
    with pytest.raises(CorruptionError, match="transaction state 77"):
        decode_transaction_record(record(key, wrong))
    with pytest.raises(CorruptionError, match="no key"):
        decode_transaction_record(record(None))


def test_metadata_of_a_controller() -> None:
    decoded = decode_metadata_record(record(None, b"\x01\x14\x00\x00"))
    assert decoded == (None, '{"type":"NO_OP_RECORD","version":0,"data":{}}')
    for torn, reason in (
        (None, "no value"),
        (b"", "does not fit"),
        (b"\x00\x03\x01\x09\x00", "frame has version 0"),
        (b"\x01\x63\x00", "type 99"),
        (b"\x01\x14\x01\x00", "NoOpRecord has versions 0 to 0, found 1"),
        (b"\x01\x14\x00\x00\x00", "1 bytes behind a NoOpRecord"),
        (b"\x01\x02\x00\x05a", ""),
    ):
        decoded = decode_metadata_record(record(None, torn))
        assert decoded.key is None
        assert str(decoded.value).startswith("Error at 3, skipping. ")
        assert reason in str(decoded.value)


def test_tagged_fields_of_a_changed_partition() -> None:
    """They stand in their place, and only if they do not have their default."""
    topic = bytes(16)
    head = b"\x01\x05\x02" + b"\x00\x00\x00\x01" + topic
    plain = decode_metadata_record(record(None, head + b"\x00"))
    data = '{"partitionId":1,"topicId":"' + "A" * 22 + '"'
    assert str(plain.value).endswith(f'"data":{data}}}}}')
    tags = (
        b"\x03"
        + b"\x00\x05\x02"
        + bytes(3)
        + b"\x07"
        + b"\x01\x04\xff\xff\xff\xfe"
        + b"\x63\x01\x00"
    )
    changed = decode_metadata_record(record(None, head + tags))
    assert str(changed.value).endswith(f'"data":{data},"isr":[7]}}}}')


def test_control_records_of_a_controller() -> None:
    assert raft_content(ControlRecord(4, None, b"\x00\x00\x00")) == (
        "SnapshotFooter",
        {"version": 0},
    )
    assert raft_content(ControlRecord(2, None, b"\x00\x00")) is None
    assert raft_content(ControlRecord(4, None, None)) is None


def test_share_groups() -> None:
    key = b"\x00\x01\x00\x01g" + bytes(16) + b"\x00\x00\x00\x02"
    decoded = decode_share_record(record(key))
    assert decoded.key is not None
    assert decoded.key.startswith('{"type":"1","data":{"groupId":"g","topicId":"AAAA')
    assert decoded.value == "<DELETE>"
    assert decode_share_record(record(b"\x00\x09")).key == (
        "Unknown record type 9 at offset 3, skipping."
    )
    torn = decode_share_record(record(key, b"\x00\x00\x01"))
    assert str(torn.key).startswith("Error at offset 3, skipping. ")
    with pytest.raises(CorruptionError, match="offset 3 has no key"):
        decode_share_record(record(None))


def test_tiered_storage() -> None:
    deleted = b"\x01\x02\x00" + b"\x02t" + bytes(16) + bytes(4) + b"\x00" + bytes(12)
    state = {0: "DELETE_PARTITION_MARKED", 2: "DELETE_PARTITION_FINISHED"}
    for number, name in state.items():
        value = decode_remote_record(record(None, deleted + bytes([number, 0]))).value
        assert value == (
            f"RemotePartitionDeleteMetadata{{topicPartition={'A' * 22}:t-0, state={name}, "
            "eventTimestampMs=0, brokerId=0}"
        )
    wrong = decode_remote_record(record(None, deleted + b"\x07\x00")).value
    assert wrong == "Error at offset 3, skipping. there is no state 7"
