"""Replaying records: what is old, missing or of another broker. The usual: tests/property."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.groups.classic.group import ClassicGroup, State
from minibroker.broker.groups.consumer import records
from minibroker.broker.groups.consumer.group import ConsumerGroup
from minibroker.broker.groups.consumer.member import Member, with_epoch
from minibroker.broker.groups.consumer.replay import KINDS, replay
from minibroker.broker.groups.records import decode_record
from minibroker.kafka.protocol.stored.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from minibroker.kafka.protocol.stored.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)

if TYPE_CHECKING:
    from minibroker.broker.groups.group import Group, GroupRecord

TOPIC = b"t" * 16


def replayed(groups: dict[str, Group], *group_records: GroupRecord) -> dict[str, Group]:
    for key, value in group_records:
        entry = decode_record(key, value)
        assert entry is not None
        replay(groups, entry.kind, entry.key, entry.value)
    return groups


def the_group(groups: dict[str, Group]) -> ConsumerGroup:
    group = groups["g"]
    assert isinstance(group, ConsumerGroup)
    return group


def test_every_kind_is_understood() -> None:
    assert sorted(KINDS) == [3, 4, 5, 6, 7, 8, 16]


def test_tombstones_without_a_value_before_them_are_ignored() -> None:
    tombstones = [
        *records.member_tombstones("g", "m"),
        records.regex_tombstone("g", "x"),
        *records.group_tombstones("g", ["m"], []),
    ]
    assert replayed({}, *tombstones) == {}


def test_a_group_goes_with_the_tombstone_of_its_epoch() -> None:
    groups = replayed({}, records.epoch_record("g", 4, 7))
    assert (the_group(groups).epoch, the_group(groups).metadata_hash) == (4, 7)
    assert (
        replayed(groups, *records.group_tombstones("g", [], the_group(groups).resolved_regexes))
        == {}
    )


def test_a_group_that_only_stores_offsets_gives_way() -> None:
    groups: dict[str, Group] = {"g": ClassicGroup("g", 0)}
    assert the_group(replayed(groups, records.epoch_record("g", 4, 7))).epoch == 4


def test_so_does_a_classic_group_whose_tombstone_was_compacted_away() -> None:
    groups: dict[str, Group] = {
        "g": ClassicGroup("g", 0, state=State.STABLE, protocol_type="consumer")
    }
    assert the_group(replayed(groups, records.epoch_record("g", 4, 7))).epoch == 4


def test_a_members_assignment_may_come_before_its_metadata() -> None:
    member = Member("m", member_epoch=3, assigned=with_epoch({TOPIC: (0,)}, 2), client_id="c")
    groups = replayed({}, records.current_record("g", member), records.member_record("g", member))
    assert the_group(groups).members == {"m": member}


def test_a_member_that_left_holds_nothing_until_it_is_gone() -> None:
    member = Member("m", member_epoch=3, assigned=with_epoch({TOPIC: (0,)}, 2))
    current, target, whole = records.member_tombstones("g", "m")
    groups = replayed(
        {}, records.member_record("g", member), records.current_record("g", member), current
    )
    assert the_group(groups).partition_epochs == {}
    assert the_group(groups).members["m"].member_epoch == -1
    assert the_group(replayed(groups, target, whole)).members == {}


def test_partitions_without_epochs_are_got_at_the_members() -> None:
    """Kafka before 4.3 does not store them; a static member that left stands at -2."""
    groups: dict[str, Group] = {}
    for epoch, expected in ((3, 3), (-2, 0)):
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=epoch,
            assigned_partitions=[TopicPartitions(topic_id=TOPIC, partitions=[0])],
        )
        key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
        replay(groups, 8, key, value)
        assert the_group(groups).members["m"].assigned == {TOPIC: {0: expected}}


def test_a_record_of_kafka_40_is_remembered_to_be_removed() -> None:
    key = ConsumerGroupPartitionMetadataKey(group_id="g")
    groups: dict[str, Group] = {}
    replay(groups, 4, key, ConsumerGroupPartitionMetadataValue())
    assert the_group(groups).has_partition_metadata_record
    replay(groups, 4, key, None)
    assert not the_group(groups).has_partition_metadata_record
