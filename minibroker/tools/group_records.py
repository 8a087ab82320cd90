"""`dump-log --offsets-decoder`: the records of `__consumer_offsets`, as JSON.

The number at the start of a key is the type of the record. Subscriptions and assignments of classic
consumers are opaque to the coordinator; they are decoded here if the group has the consumers'
protocol type.

Source: Kafka DumpLogSegments.OffsetsMessageParser, GroupCoordinatorRecordSerde.
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
from minibroker.kafka.protocol.versioned import VersionedMessage
from minibroker.tools.decoders import Decoded
from minibroker.tools.log_records import LogRecord
from minibroker.tools.stored_json import Json, to_json, to_line

_KINDS: Final[dict[int, tuple[type[Any], type[Any]]]] = {
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
_CONSUMER: Final = "consumer"
_DELETED: Final = "<DELETE>"


def decode_group_record(record: LogRecord) -> Decoded:
    """Return key and value as JSON; the key of an unknown record is a sentence.

    Raises CorruptionError for a record without a key: this topic has none.
    """
    if record.key is None:
        raise CorruptionError(f"the record at offset {record.offset} has no key")
    try:
        kind = Reader(record.key).int16()
        if kind not in _KINDS:
            return Decoded(f"Unknown record type {kind} at offset {record.offset}, skipping.", None)
        key_class, value_class = _KINDS[kind]
        key = to_json(key_class.from_bytes(record.key), kind)
        shown = to_line({"type": str(kind), "data": key})
        if record.value is None:
            return Decoded(shown, _DELETED)
        version = Reader(record.value).int16()
        value = _with_opened_members(value_class.from_bytes(record.value), version)
        return Decoded(shown, to_line({"version": str(version), "data": value}))
    except ProtocolError as error:
        return Decoded(f"Error at offset {record.offset}, skipping. {error}", None)


def _with_opened_members(value: VersionedMessage, version: int) -> dict[str, Json]:
    shown = to_json(value, version)
    if not isinstance(value, GroupMetadataValue) or value.protocol_type != _CONSUMER:
        return shown
    members = shown["members"]
    if isinstance(members, list):
        for member, opened in zip(value.members, members, strict=True):
            if isinstance(opened, dict):
                _open(opened, "subscription", member.subscription, ConsumerProtocolSubscription)
                _open(opened, "assignment", member.assignment, ConsumerProtocolAssignment)
    return shown


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
