"""A record of a consumer group takes effect: the same for one just written and one read at start.

A group comes into being with its first record and goes with the tombstone of its epoch. Records of
a compacted log may be old: a tombstone of what is not there is passed over.

Source: Kafka 4.4, GroupMetadataManager.replay; getOrMaybeCreatePersistedConsumerGroup.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.groups.classic.group import ClassicGroup
from minibroker.broker.groups.consumer.group import ConsumerGroup
from minibroker.broker.groups.consumer.member import (
    LEAVE_EPOCH,
    NOTHING_OWNED,
    ClassicFacts,
    Member,
    MemberState,
)
from minibroker.broker.groups.consumer.subscriptions import ResolvedRegex
from minibroker.broker.groups.kinds import (
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    CONSUMER_GROUP_MEMBER_METADATA,
    CONSUMER_GROUP_METADATA,
    CONSUMER_GROUP_PARTITION_METADATA,
    CONSUMER_GROUP_REGULAR_EXPRESSION,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
)

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from minibroker.broker.groups.consumer.member import OwnedPartitions
    from minibroker.broker.groups.group import Group
    from minibroker.kafka.protocol.stored import (
        consumer_group_current_member_assignment as current_stored,
    )
    from minibroker.kafka.protocol.stored import consumer_group_member_metadata as member_stored
    from minibroker.kafka.protocol.stored import consumer_group_metadata as epoch_stored
    from minibroker.kafka.protocol.stored import (
        consumer_group_partition_metadata as partition_stored,
    )
    from minibroker.kafka.protocol.stored import consumer_group_regular_expression as regex_stored
    from minibroker.kafka.protocol.stored import (
        consumer_group_target_assignment_member as target_stored,
    )
    from minibroker.kafka.protocol.stored import (
        consumer_group_target_assignment_metadata as target_epoch_stored,
    )

    Groups = MutableMapping[str, Group]
    Replay = Callable[[ConsumerGroup, Any, Any], None]

logger = logging.getLogger(__name__)


def replay(groups: Groups, kind: int, key: Any, value: Any) -> None:
    """Change `groups` by one record of a kind of `KINDS`.

    `key` and `value` are the generated messages of that kind; value None: a tombstone.
    """
    group = _group(groups, key.group_id, value)
    if group is None:
        return
    if kind == CONSUMER_GROUP_METADATA and value is None:
        del groups[key.group_id]
        return
    KINDS[kind](group, key, value)


def _group(groups: Groups, group_id: str, value: object) -> ConsumerGroup | None:
    """Return the group, made if the record has a value; None: there is none, and nothing to do.

    A classic group that nobody ever joined only stores offsets and has no record: it gives way.
    """
    group = groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if value is None:
        return None
    if isinstance(group, ClassicGroup) and not group.is_simple:
        # Its tombstone was compacted away together with what it stood for.
        logger.warning("%s gives way to a consumer group's records", group)
    new_group = groups[group_id] = ConsumerGroup(group_id)
    return new_group


def _replay_epoch(
    group: ConsumerGroup,
    _key: epoch_stored.ConsumerGroupMetadataKey,
    value: epoch_stored.ConsumerGroupMetadataValue,
) -> None:
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _replay_partition_metadata(
    group: ConsumerGroup,
    _key: partition_stored.ConsumerGroupPartitionMetadataKey,
    value: partition_stored.ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.has_partition_metadata_record = value is not None


def _replay_member(
    group: ConsumerGroup,
    key: member_stored.ConsumerGroupMemberMetadataKey,
    value: member_stored.ConsumerGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    classic = None
    classic_value = value.classic_member_metadata
    if classic_value is not None and classic_value.supported_protocols:
        classic = ClassicFacts(
            classic_value.session_timeout_ms,
            tuple(
                (protocol.name, bytes(protocol.metadata))
                for protocol in classic_value.supported_protocols
            ),
        )
    old = group.members.get(key.member_id) or Member(key.member_id)
    group.put_member(
        old._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex,
            assignor_name=value.server_assignor,
            classic=classic,
        )
    )


def _replay_target_epoch(
    group: ConsumerGroup,
    _key: target_epoch_stored.ConsumerGroupTargetAssignmentMetadataKey,
    value: target_epoch_stored.ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    if value is None:
        group.assignment_epoch, group.assignment_timestamp_ms = -1, 0
        return
    group.assignment_epoch = value.assignment_epoch
    group.assignment_timestamp_ms = value.assignment_timestamp


def _replay_target(
    group: ConsumerGroup,
    key: target_stored.ConsumerGroupTargetAssignmentMemberKey,
    value: target_stored.ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.put_target(key.member_id, None)
        return
    group.put_target(
        key.member_id,
        {topic.topic_id: tuple(sorted(topic.partitions)) for topic in value.topic_partitions},
    )


def _replay_current(
    group: ConsumerGroup,
    key: current_stored.ConsumerGroupCurrentMemberAssignmentKey,
    value: current_stored.ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    old = group.members.get(key.member_id)
    if value is None:
        if old is not None:
            group.put_member(
                old._replace(
                    member_epoch=LEAVE_EPOCH,
                    previous_member_epoch=LEAVE_EPOCH,
                    assigned=NOTHING_OWNED,
                    revoking=NOTHING_OWNED,
                )
            )
        return
    group.put_member(
        (old or Member(key.member_id))._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=_owned_partitions(value.assigned_partitions, value.member_epoch),
            revoking=_owned_partitions(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def _owned_partitions(
    topic_values: list[current_stored.TopicPartitions], member_epoch: int
) -> OwnedPartitions:
    """Kafka before 4.3 does not store since when a member has a partition: since this epoch."""
    owned: dict[bytes, dict[int, int]] = {}
    for topic in topic_values:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned


def _replay_regex(
    group: ConsumerGroup,
    key: regex_stored.ConsumerGroupRegularExpressionKey,
    value: regex_stored.ConsumerGroupRegularExpressionValue | None,
) -> None:
    if value is None:
        group.put_regex(key.regular_expression, None)
        return
    group.put_regex(
        key.regular_expression,
        ResolvedRegex(frozenset(value.topics), value.version, value.timestamp),
    )


KINDS: Final[dict[int, Replay]] = {
    CONSUMER_GROUP_METADATA: _replay_epoch,
    CONSUMER_GROUP_PARTITION_METADATA: _replay_partition_metadata,
    CONSUMER_GROUP_MEMBER_METADATA: _replay_member,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: _replay_target_epoch,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: _replay_target,
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _replay_current,
    CONSUMER_GROUP_REGULAR_EXPRESSION: _replay_regex,
}
"""Kind of a record → the function that replays it."""
