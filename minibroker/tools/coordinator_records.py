"""Decoders of `dump-log` for the topics of coordinators: groups, transactions, share groups.

The number at the start of a key is the type of the record. Keys and values are shown as JSON, those
of `__transaction_state` in a form of their own. Subscriptions and assignments of classic consumers
are opaque to the coordinator; they are decoded here if the group has the consumers' protocol type.

Source: Kafka DumpLogSegments.OffsetsMessageParser, .ShareGroupStateMessageParser,
GroupCoordinatorRecordSerde, ShareCoordinatorRecordSerde, TransactionLog.formatRecordKeyAndValue.
Differs: the partitions of a transaction are in the order of their names (Kafka: of their hashes).
"""

from typing import Any, Final

from minibroker.kafka.errors import CorruptionError, ProtocolError
from minibroker.kafka.protocol.primitives import Reader
from minibroker.kafka.protocol.stored.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
)
from minibroker.kafka.protocol.stored.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from minibroker.kafka.protocol.stored.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from minibroker.kafka.protocol.stored.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from minibroker.kafka.protocol.stored.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from minibroker.kafka.protocol.stored.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
)
from minibroker.kafka.protocol.stored.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from minibroker.kafka.protocol.stored.consumer_protocol_assignment import ConsumerProtocolAssignment
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from minibroker.kafka.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from minibroker.kafka.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from minibroker.kafka.protocol.stored.share_snapshot import ShareSnapshotKey, ShareSnapshotValue
from minibroker.kafka.protocol.stored.share_update import ShareUpdateKey, ShareUpdateValue
from minibroker.kafka.protocol.stored.transaction_log import TransactionLogKey, TransactionLogValue
from minibroker.kafka.protocol.versioned import VersionedMessage, version_of
from minibroker.tools.decoders import Decoded
from minibroker.tools.log_records import LogRecord
from minibroker.tools.stored_json import Json, to_json, to_line

Kinds = dict[int, tuple[type[Any], type[Any]]]

_GROUP_KINDS: Final[Kinds] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}
"""Type of a record in `__consumer_offsets` → classes of key and value."""
_SHARE_KINDS: Final[Kinds] = {
    0: (ShareSnapshotKey, ShareSnapshotValue),
    1: (ShareUpdateKey, ShareUpdateValue),
}
"""Type of a record in `__share_group_state` → classes of key and value."""
_TRANSACTION_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
_CONSUMER: Final = "consumer"
_DELETED: Final = "<DELETE>"


def decode_group_record(record: LogRecord) -> Decoded:
    """Return key and value as JSON; the key of an unknown record is a sentence.

    Raises CorruptionError for a record without a key: this topic has none.
    """
    return _decode(record, _GROUP_KINDS)


def decode_share_record(record: LogRecord) -> Decoded:
    """Return key and value as JSON; the key of an unknown record is a sentence.

    Raises CorruptionError for a record without a key: this topic has none.
    """
    return _decode(record, _SHARE_KINDS)


def _decode(record: LogRecord, kinds: Kinds) -> Decoded:
    key_data = _key_of(record)
    try:
        kind = version_of(key_data)
        if kind not in kinds:
            return Decoded(f"Unknown record type {kind} at offset {record.offset}, skipping.", None)
        key_class, value_class = kinds[kind]
        key = to_json(key_class.from_bytes(key_data), kind)
        key_line = to_line({"type": str(kind), "data": key})
        if record.value is None:
            return Decoded(key_line, _DELETED)
        version = version_of(record.value)
        value = _with_opened_members(value_class.from_bytes(record.value), version)
        return Decoded(key_line, to_line({"version": str(version), "data": value}))
    except ProtocolError as error:
        return Decoded(f"Error at offset {record.offset}, skipping. {error}", None)


def _key_of(record: LogRecord) -> bytes:
    """Return the key. Raises CorruptionError if there is none."""
    if record.key is None:
        raise CorruptionError(f"the record at offset {record.offset} has no key")
    return record.key


def _with_opened_members(value: VersionedMessage, version: int) -> dict[str, Json]:
    content = to_json(value, version)
    if not isinstance(value, GroupMetadataValue) or value.protocol_type != _CONSUMER:
        return content
    members = content["members"]
    if isinstance(members, list):
        for member, fields in zip(value.members, members, strict=True):
            if isinstance(fields, dict):
                _open(fields, "subscription", member.subscription, ConsumerProtocolSubscription)
                _open(fields, "assignment", member.assignment, ConsumerProtocolAssignment)
    return content


def _open(
    member: dict[str, Json],
    name: str,
    data: bytes,
    kind: type[ConsumerProtocolSubscription | ConsumerProtocolAssignment],
) -> None:
    """Replace the bytes `data` by their decoded fields, if possible; more bytes may follow."""
    try:
        reader = Reader(data)
        version = reader.int16()
        first, last = kind.VERSIONS
        if first <= version <= last:
            member[name] = to_json(kind.read(reader, version), version)
    except ProtocolError:
        return  # another protocol of the same name: the bytes stay


def decode_transaction_record(record: LogRecord) -> Decoded:
    """Return the transactional id and its state. Raises CorruptionError, ProtocolError."""
    data = _key_of(record)
    version = version_of(data)
    first, last = TransactionLogKey.VERSIONS
    if not first <= version <= last:
        return Decoded(f"unknown::version={version}", None)
    key = TransactionLogKey.from_bytes(data)
    key_text = f"transaction_metadata::transactionalId={key.transactional_id}"
    if record.value is None:
        return Decoded(key_text, _DELETED)
    value = TransactionLogValue.from_bytes(record.value)
    return Decoded(key_text, _transaction_state(value, record.offset))


def _transaction_state(value: TransactionLogValue, offset: int) -> str:
    if not 0 <= value.transaction_status < len(_TRANSACTION_STATES):
        raise CorruptionError(
            f"the record at offset {offset} has transaction state {value.transaction_status}, "
            f"expected 0 to {len(_TRANSACTION_STATES) - 1}"
        )
    partitions = sorted(
        (topic.topic, partition)
        for topic in value.transaction_partitions or ()
        for partition in topic.partition_ids
    )
    names = ",".join(f"{topic}-{partition}" for topic, partition in partitions)
    return (
        f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch},"
        f"state={_TRANSACTION_STATES[value.transaction_status]},partitions=[{names}],"
        f"txnLastUpdateTimestamp={value.transaction_last_update_timestamp_ms},"
        f"txnTimeoutMs={value.transaction_timeout_ms}"
    )
