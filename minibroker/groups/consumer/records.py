"""The records of consumer groups in `__consumer_offsets`: kinds 3 to 8 and 16, written.

Key and value begin with an int16: the kind in a key, version 0 in a value; a tombstone has no
value. `replay.py` is the way back.

Source: Kafka 4.4, GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.protocol.stored import consumer_group_current_member_assignment as current_stored
from minibroker.protocol.stored import consumer_group_member_metadata as member_stored
from minibroker.protocol.stored import consumer_group_metadata as epoch_stored
from minibroker.protocol.stored import consumer_group_partition_metadata as partition_stored
from minibroker.protocol.stored import consumer_group_regular_expression as regex_stored
from minibroker.protocol.stored import consumer_group_target_assignment_member as target_stored
from minibroker.protocol.stored import (
    consumer_group_target_assignment_metadata as target_epoch_stored,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.groups.consumer.assignor import Assignment
    from minibroker.groups.consumer.group import ConsumerGroup, ResolvedRegex
    from minibroker.groups.consumer.member import Member, OwnedPartitions
    from minibroker.groups.group import GroupRecord

VALUE_VERSION: Final = 0
EPOCH_KIND: Final = 3
PARTITION_METADATA_KIND: Final = 4
MEMBER_KIND: Final = 5
TARGET_EPOCH_KIND: Final = 6
TARGET_KIND: Final = 7
CURRENT_KIND: Final = 8
REGEX_KIND: Final = 16


def member_record(group_id: str, member: Member) -> GroupRecord:
    """What the member told about itself."""
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
    """The group is at this epoch, its topics look like this."""
    value = epoch_stored.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _epoch_key(group_id), value.to_bytes(VALUE_VERSION)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> GroupRecord:
    """What a member shall have."""
    value = target_stored.ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            target_stored.TopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in assignment.items()
        ]
    )
    return _target_key(group_id, member_id), value.to_bytes(VALUE_VERSION)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """The target is that of this epoch; 0: when it was computed does not matter."""
    value = target_epoch_stored.ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return _target_epoch_key(group_id), value.to_bytes(VALUE_VERSION)


def current_record(group_id: str, member: Member) -> GroupRecord:
    """How far a member has come."""
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


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> GroupRecord:
    """What a pattern matches."""
    value = regex_stored.ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return _regex_key(group_id, regex), value.to_bytes(VALUE_VERSION)


# Tombstones.


def regex_tombstone(group_id: str, regex: str) -> GroupRecord:
    """Nobody uses the pattern any more."""
    return _regex_key(group_id, regex), None


def partition_metadata_tombstone(group_id: str) -> GroupRecord:
    """What Kafka 4.0 stored instead of the hash goes."""
    key = partition_stored.ConsumerGroupPartitionMetadataKey(group_id=group_id)
    return key.to_bytes(PARTITION_METADATA_KIND), None


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """A member goes: what it has, what it shall have, what it is."""
    return [
        (_current_key(group_id, member_id), None),
        (_target_key(group_id, member_id), None),
        (_member_key(group_id, member_id), None),
    ]


def group_tombstones(group: ConsumerGroup, member_ids: Iterable[str]) -> list[GroupRecord]:
    """The whole group goes, with these members; in the order in which replaying them works."""
    group_id = group.group_id
    ids = list(member_ids)
    tombstones: list[GroupRecord] = [(_current_key(group_id, one), None) for one in ids]
    tombstones += [(_target_key(group_id, one), None) for one in ids]
    tombstones.append((_target_epoch_key(group_id), None))
    tombstones += [(_member_key(group_id, one), None) for one in ids]
    tombstones += [regex_tombstone(group_id, regex) for regex in group.resolved_regexes]
    tombstones.append(partition_metadata_tombstone(group_id))
    tombstones.append((_epoch_key(group_id), None))
    return tombstones


# Keys.


def _epoch_key(group_id: str) -> bytes:
    return epoch_stored.ConsumerGroupMetadataKey(group_id=group_id).to_bytes(EPOCH_KIND)


def _member_key(group_id: str, member_id: str) -> bytes:
    key = member_stored.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    return key.to_bytes(MEMBER_KIND)


def _target_key(group_id: str, member_id: str) -> bytes:
    key = target_stored.ConsumerGroupTargetAssignmentMemberKey(
        group_id=group_id, member_id=member_id
    )
    return key.to_bytes(TARGET_KIND)


def _target_epoch_key(group_id: str) -> bytes:
    key = target_epoch_stored.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    return key.to_bytes(TARGET_EPOCH_KIND)


def _current_key(group_id: str, member_id: str) -> bytes:
    key = current_stored.ConsumerGroupCurrentMemberAssignmentKey(
        group_id=group_id, member_id=member_id
    )
    return key.to_bytes(CURRENT_KIND)


def _regex_key(group_id: str, regex: str) -> bytes:
    key = regex_stored.ConsumerGroupRegularExpressionKey(
        group_id=group_id, regular_expression=regex
    )
    return key.to_bytes(REGEX_KIND)
