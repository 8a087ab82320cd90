"""The records of consumer groups in `__consumer_offsets`: kinds 3 to 8 and 16, written.

Key and value begin with an int16: the kind in a key, version 0 in a value; a tombstone has no
value. `replay.py` is the way back.

Source: Kafka 4.4, GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.groups.kinds import (
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    CONSUMER_GROUP_MEMBER_METADATA,
    CONSUMER_GROUP_METADATA,
    CONSUMER_GROUP_PARTITION_METADATA,
    CONSUMER_GROUP_REGULAR_EXPRESSION,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
)
from minibroker.kafka.protocol.stored import (
    consumer_group_current_member_assignment as current_stored,
)
from minibroker.kafka.protocol.stored import consumer_group_member_metadata as member_stored
from minibroker.kafka.protocol.stored import consumer_group_metadata as epoch_stored
from minibroker.kafka.protocol.stored import consumer_group_partition_metadata as partition_stored
from minibroker.kafka.protocol.stored import consumer_group_regular_expression as regex_stored
from minibroker.kafka.protocol.stored import (
    consumer_group_target_assignment_member as target_stored,
)
from minibroker.kafka.protocol.stored import (
    consumer_group_target_assignment_metadata as target_epoch_stored,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.broker.groups.consumer.assignor import Assignment
    from minibroker.broker.groups.consumer.member import Member, OwnedPartitions
    from minibroker.broker.groups.consumer.subscriptions import ResolvedRegex
    from minibroker.broker.groups.group import GroupRecord

VALUE_VERSION: Final = 0


def member_record(group_id: str, member: Member) -> GroupRecord:
    """Return the record of what the member told about itself."""
    classic = None
    if member.classic is not None:
        classic = member_stored.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                member_stored.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    value = member_stored.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor_name,
        classic_member_metadata=classic,
    )
    return _member_key(group_id, member.member_id), value.to_bytes(VALUE_VERSION)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """Return the record of the epoch of the group and the hash of its topics."""
    value = epoch_stored.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _epoch_key(group_id), value.to_bytes(VALUE_VERSION)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> GroupRecord:
    """Return the record of the target of a member."""
    value = target_stored.ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            target_stored.TopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in assignment.items()
        ]
    )
    return _target_key(group_id, member_id), value.to_bytes(VALUE_VERSION)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """Return the record of the epoch of the target; `timestamp_ms` 0: its time does not matter."""
    value = target_epoch_stored.ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return _target_epoch_key(group_id), value.to_bytes(VALUE_VERSION)


def current_record(group_id: str, member: Member) -> GroupRecord:
    """Return the record of the epochs, state and partitions of a member."""
    value = current_stored.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_stored_partitions(member.assigned),
        partitions_pending_revocation=_stored_partitions(member.revoking),
    )
    return _current_key(group_id, member.member_id), value.to_bytes(VALUE_VERSION)


def _stored_partitions(owned: OwnedPartitions) -> list[current_stored.TopicPartitions]:
    return [
        current_stored.TopicPartitions(
            topic_id=topic_id,
            partitions=list(partitions),
            assignment_epochs=list(partitions.values()),
        )
        for topic_id, partitions in owned.items()
    ]


def regex_record(group_id: str, regex: str, resolution: ResolvedRegex) -> GroupRecord:
    """Return the record of the topics that a pattern matches."""
    value = regex_stored.ConsumerGroupRegularExpressionValue(
        topics=sorted(resolution.topics),
        version=resolution.version,
        timestamp=resolution.timestamp_ms,
    )
    return _regex_key(group_id, regex), value.to_bytes(VALUE_VERSION)


# Tombstones.


def regex_tombstone(group_id: str, regex: str) -> GroupRecord:
    """Return the tombstone of a pattern that no member uses any more."""
    return _regex_key(group_id, regex), None


def partition_metadata_tombstone(group_id: str) -> GroupRecord:
    """Return the tombstone of the record that Kafka 4.0 stored instead of the hash."""
    key = partition_stored.ConsumerGroupPartitionMetadataKey(group_id=group_id)
    return key.to_bytes(CONSUMER_GROUP_PARTITION_METADATA), None


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """Return the tombstones of a member: its partitions, its target, the member itself."""
    return [
        (_current_key(group_id, member_id), None),
        (_target_key(group_id, member_id), None),
        (_member_key(group_id, member_id), None),
    ]


def group_tombstones(
    group_id: str, member_ids: Iterable[str], regexes: Iterable[str]
) -> list[GroupRecord]:
    """Return the tombstones of a whole group, in the order in which replaying them works.

    `member_ids` are its members, `regexes` the patterns that were resolved.
    """
    ids = list(member_ids)
    tombstones: list[GroupRecord] = [(_current_key(group_id, member_id), None) for member_id in ids]
    tombstones += [(_target_key(group_id, member_id), None) for member_id in ids]
    tombstones.append((_target_epoch_key(group_id), None))
    tombstones += [(_member_key(group_id, member_id), None) for member_id in ids]
    tombstones += [regex_tombstone(group_id, regex) for regex in regexes]
    tombstones.append(partition_metadata_tombstone(group_id))
    tombstones.append((_epoch_key(group_id), None))
    return tombstones


# Keys.


def _epoch_key(group_id: str) -> bytes:
    return epoch_stored.ConsumerGroupMetadataKey(group_id=group_id).to_bytes(
        CONSUMER_GROUP_METADATA
    )


def _member_key(group_id: str, member_id: str) -> bytes:
    key = member_stored.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    return key.to_bytes(CONSUMER_GROUP_MEMBER_METADATA)


def _target_key(group_id: str, member_id: str) -> bytes:
    key = target_stored.ConsumerGroupTargetAssignmentMemberKey(
        group_id=group_id, member_id=member_id
    )
    return key.to_bytes(CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER)


def _target_epoch_key(group_id: str) -> bytes:
    key = target_epoch_stored.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    return key.to_bytes(CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA)


def _current_key(group_id: str, member_id: str) -> bytes:
    key = current_stored.ConsumerGroupCurrentMemberAssignmentKey(
        group_id=group_id, member_id=member_id
    )
    return key.to_bytes(CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT)


def _regex_key(group_id: str, regex: str) -> bytes:
    key = regex_stored.ConsumerGroupRegularExpressionKey(
        group_id=group_id, regular_expression=regex
    )
    return key.to_bytes(CONSUMER_GROUP_REGULAR_EXPRESSION)
