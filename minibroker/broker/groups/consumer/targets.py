"""The group's epoch and its target assignment: parts of every step that changes members.

Source: Kafka 4.4, GroupMetadataManager.updateSubscriptionMetadata, maybeUpdateTargetAssignment;
TargetAssignmentBuilder; UpdatedMembersAndTargetAssignmentView.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.groups.consumer.assignor import (
    NOTHING,
    AssignorInput,
    MemberInput,
    load_assignor,
)
from minibroker.broker.groups.consumer.java_order import (
    copied_capacity,
    grown_capacity,
    hash_order,
    timeline_order,
)
from minibroker.broker.groups.consumer.records import (
    epoch_record,
    partition_metadata_tombstone,
    target_epoch_record,
    target_record,
)
from minibroker.broker.groups.consumer.subscriptions import discount
from minibroker.kafka.java_strings import string_hash

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.groups.consumer.assignor import Assignment
    from minibroker.broker.groups.consumer.group import ConsumerGroup
    from minibroker.broker.groups.consumer.member import Member
    from minibroker.broker.groups.consumer.step import Step
    from minibroker.broker.groups.consumer.topics import ImageTopics

logger = logging.getLogger(__name__)


class GroupEpoch(NamedTuple):
    """The group's epoch as it will be when the step's records count."""

    epoch: int
    is_homogeneous: bool
    """All members subscribe to the same; tells the assignor which way to go."""


class MemberTarget(NamedTuple):
    """The target of one member."""

    epoch: int
    assignment: Assignment


def current_epoch(group: ConsumerGroup) -> GroupEpoch:
    """Return the epoch as it is. Nothing that matters has changed; how members subscribe only
    matters to a new target.
    """
    has_target = group.assignment_epoch >= group.epoch
    is_homogeneous = has_target or group.subscriptions.is_homogeneous(
        group.regex_counts, len(group.members)
    )
    return GroupEpoch(group.epoch, is_homogeneous)


def is_metadata_stale(group: ConsumerGroup, topics: ImageTopics) -> bool:
    """Topics came or changed since the group's were looked at."""
    return group.checked_topics_version != topics.version


def next_epoch(
    group: ConsumerGroup, step: Step, old: Member, new: Member, *, must_bump: bool
) -> GroupEpoch:
    """Look, where a member changed or topics may have, at the group's topics, and bump the epoch if
    they differ from what was stored (or if it must be).
    """
    subscriptions = group.subscriptions.copy()
    subscriptions.drop_names(old.topic_names)
    subscriptions.add_names(new.topic_names)
    regex_counts = group.regex_counts.copy()
    if old.topic_regex != new.topic_regex:
        if old.topic_regex:
            if group.regex_counts[old.topic_regex] == 1:
                resolution = group.resolved_regexes.get(old.topic_regex)
                subscriptions.drop_matches(resolution.topics if resolution else ())
            discount(regex_counts, [old.topic_regex])
        if new.topic_regex:
            regex_counts[new.topic_regex] += 1
    metadata_hash = step.topics.hash_of(subscriptions)
    epoch = group.epoch
    if must_bump or metadata_hash != group.metadata_hash:
        epoch += 1
        step.records.append(epoch_record(group.group_id, epoch, metadata_hash))
        logger.info("%s goes to epoch %d", group, epoch)
    step.checked_topics_version = step.topics.version
    if group.has_partition_metadata_record:
        step.records.append(partition_metadata_tombstone(group.group_id))
    is_new = new.member_id not in group.members and not (
        new.instance_id is not None and new.instance_id in group.static_members
    )
    is_homogeneous = subscriptions.is_homogeneous(regex_counts, len(group.members) + is_new)
    return GroupEpoch(epoch, is_homogeneous)


def next_target(
    group: ConsumerGroup, step: Step, old: Member, new: Member, group_epoch: GroupEpoch
) -> MemberTarget:
    """Compute the target of the group's epoch if there is none yet; what `new` gets of it.

    With `consumer.assignment.interval.ms` it may have to wait: a later step does it then.
    """
    since_ms = group.assignment_timestamp_ms
    interval_ms = step.settings.assignment_interval_ms
    is_too_early = since_ms and interval_ms and step.now_ms < since_ms + interval_ms
    if group.assignment_epoch >= group_epoch.epoch or is_too_early:
        return MemberTarget(group.assignment_epoch, group.target_of(new.member_id, new.instance_id))
    members, targets = _with_member(group, new)
    name = group.preferred_assignor(step.settings.assignors[0], old, new)
    assignor_input = input_of(group, step.topics, members, targets, group_epoch.is_homogeneous)
    assignment = load_assignor(name)(assignor_input)
    logger.info("%s: target of epoch %d computed by %s", group, group_epoch.epoch, name)
    group_id = group.group_id
    for member_id in assignor_input.members:
        target = assignment.get(member_id, NOTHING)
        if target != targets.get(member_id):
            step.records.append(target_record(group_id, member_id, target))
    step.records.append(target_epoch_record(group_id, group_epoch.epoch, step.now_ms))
    return MemberTarget(group_epoch.epoch, assignment.get(new.member_id, NOTHING))


def _with_member(
    group: ConsumerGroup, new: Member
) -> tuple[dict[str, Member], dict[str, Assignment]]:
    """Members and targets as they will be; a static member inherits from whom it replaces."""
    members = dict(group.members)
    targets = dict(group.target)
    members[new.member_id] = new
    if new.instance_id is not None:
        previous_id = group.static_members.get(new.instance_id)
        if previous_id is not None and previous_id != new.member_id:
            if previous_id in targets:
                targets[new.member_id] = targets.pop(previous_id)
            members.pop(previous_id, None)
    return members, targets


def input_of(
    group: ConsumerGroup,
    topics: ImageTopics,
    members: Mapping[str, Member],
    targets: Mapping[str, Assignment],
    is_homogeneous: bool,
) -> AssignorInput:
    """Return the group as an assignor sees it, walked in Java's order."""
    counts: dict[bytes, int] = {}
    ids_of: dict[frozenset[str], tuple[bytes, ...]] = {}
    inputs: dict[str, MemberInput] = {}
    old_ids = timeline_order([member_id for member_id in members if member_id in group.members])
    new_ids = [member_id for member_id in members if member_id not in group.members]
    capacity = grown_capacity(len(members))
    for member_id in hash_order([*old_ids, *new_ids], string_hash, capacity):
        member = members[member_id]
        names = group.topics_of(member)
        if names not in ids_of:
            ids_of[names] = topic_ids = topic_ids_of(names, topics)
            counts.update((topic_id, topics.partition_count(topic_id)) for topic_id in topic_ids)
        inputs[member_id] = MemberInput(
            member.instance_id, ids_of[names], targets.get(member_id, NOTHING)
        )
    return AssignorInput(inputs, is_homogeneous, counts, group.owners)


def topic_ids_of(names: frozenset[str], topics: ImageTopics) -> tuple[bytes, ...]:
    """Return the ids of those that exist."""
    walk = hash_order(sorted(names), string_hash, copied_capacity(len(names)))
    topic_ids = (topics.id_of(name) for name in walk)
    return tuple(topic_id for topic_id in topic_ids if topic_id is not None)
