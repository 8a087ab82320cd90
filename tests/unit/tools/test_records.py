"""Decoders of the internal topics: what cannot be decoded. (The rest: beside Kafka's tool.)"""

from __future__ import annotations

import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from minibroker.kafka.protocol.stored.transaction_log import TransactionLogKey, TransactionLogValue
from minibroker.tools.coordinator_records import (
    decode_group_record,
    decode_share_record,
    decode_transaction_record,
)
from minibroker.tools.log_records import ControlRecord, LogRecord
from minibroker.tools.metadata_records import decode_metadata_record, raft_content
from minibroker.tools.remote_records import decode_remote_record


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
        shown = decode_remote_record(record(None, deleted + bytes([number, 0]))).value
        assert shown == (
            f"RemotePartitionDeleteMetadata{{topicPartition={'A' * 22}:t-0, state={name}, "
            "eventTimestampMs=0, brokerId=0}"
        )
    wrong = decode_remote_record(record(None, deleted + b"\x07\x00")).value
    assert wrong == "Error at offset 3, skipping. there is no state 7"
