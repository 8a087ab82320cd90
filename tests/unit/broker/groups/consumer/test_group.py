"""The state of a consumer group: counts, owners, states, assignors. Commits: tests/scenario."""

from __future__ import annotations

import pytest

from minibroker.broker.groups.consumer.group import ConsumerGroup
from minibroker.broker.groups.consumer.member import ClassicFacts, Member, MemberState, with_epoch
from minibroker.broker.groups.consumer.subscriptions import ResolvedRegex
from minibroker.broker.groups.group import CONSUMER
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

TOPIC = b"t" * 16


def group_of(*members: Member) -> ConsumerGroup:
    group = ConsumerGroup("g")
    for member in members:
        group.put_member(member)
    return group


def test_a_new_group_is_empty_at_epoch_one() -> None:
    group = ConsumerGroup("g")
    assert (group.state_name, group.epoch, group.type_name) == ("Empty", 1, CONSUMER)
    assert (group.is_empty, group.member_count, group.protocol_type) == (True, 0, "consumer")
    assert str(group) == "group g (Empty, epoch 1, 0 members)"


def test_states_follow_the_epochs() -> None:
    group = group_of(Member("m", member_epoch=1))
    assert group.state_name == "Assigning"
    group.assignment_epoch = 1
    assert group.state_name == "Stable"
    group.put_member(Member("m", member_epoch=1, state=MemberState.UNREVOKED_PARTITIONS))
    assert group.state_name == "Reconciling"
    assert group.is_in_state(frozenset({"reconciling"}))


def test_counts_follow_the_members() -> None:
    first = Member("m", instance_id="i", topic_names=frozenset("ab"), assignor_name="range")
    group = group_of(first)
    assert group.is_subscribed_to("a")
    assert group.static_member("i") == first
    group.put_member(first._replace(topic_names=frozenset("b"), topic_regex="x", instance_id=None))
    assert not group.is_subscribed_to("a")
    assert group.static_member("i") is None
    assert group.regex_counts == {"x": 1}
    group.remove_member("m")
    assert not group.is_subscribed_to("b")
    assert (group.regex_counts, group.assignor_counts) == ({}, {})


def test_a_replaced_static_member_keeps_its_name() -> None:
    """The new one's record may come before the old one's tombstone."""
    group = group_of(Member("old", instance_id="i"), Member("new", instance_id="i"))
    group.remove_member("old")
    assert group.static_members == {"i": "new"}


def test_partitions_are_held_at_the_epoch_of_their_member() -> None:
    member = Member("m", member_epoch=3, assigned=with_epoch({TOPIC: (0,)}, 2))
    group = group_of(member._replace(revoking=with_epoch({TOPIC: (1,)}, 2)))
    assert [group.partition_epoch(TOPIC, number) for number in range(3)] == [3, 3, -1]
    group.put_member(member._replace(member_epoch=4, assigned={}))
    assert group.partition_epochs == {}


def test_an_older_owner_does_not_take_what_a_newer_one_has() -> None:
    """Records of a compacted log: the old owner's last one may stand behind the new one's."""
    owned = with_epoch({TOPIC: (0,)}, 1)
    group = group_of(
        Member("new", member_epoch=5, assigned=owned), Member("old", member_epoch=3, assigned=owned)
    )
    assert group.partition_epoch(TOPIC, 0) == 5
    group.remove_member("old")
    assert group.partition_epoch(TOPIC, 0) == 5


def test_targets_are_known_by_partition_as_well() -> None:
    group = ConsumerGroup("g")
    group.put_target("m1", {TOPIC: (0, 1)})
    group.put_target("m2", {TOPIC: (1,)})
    group.put_target("m1", {TOPIC: (0,)})
    assert group.owners == {TOPIC: {0: "m1", 1: "m2"}}
    group.put_target("m1", None)
    group.put_target("m2", None)
    assert (group.owners, group.target) == ({}, {})


def test_a_static_member_inherits_the_target_of_its_name() -> None:
    group = group_of(Member("m", instance_id="i"))
    group.put_target("m", {TOPIC: (0,)})
    assert group.target_of("other", "i") == {TOPIC: (0,)}
    assert group.target_of("other") == {}


def test_patterns_count_for_what_they_matched() -> None:
    group = group_of(Member("m", topic_regex="x"))
    group.put_regex("x", ResolvedRegex(frozenset("ab"), 1, 1))
    group.put_regex("x", ResolvedRegex(frozenset("b"), 2, 2))
    assert not group.is_subscribed_to("a")
    assert group.topics_of(group.members["m"]) == {"b"}
    group.put_regex("x", None)
    assert not group.is_subscribed_to("b")


def test_the_assignor_that_most_ask_for_is_preferred() -> None:
    group = group_of(*(Member(f"m{n}", assignor_name="range") for n in range(2)))
    changed = Member("m0", assignor_name="uniform")
    assert group.preferred_assignor("uniform") == "range"
    assert ConsumerGroup("g").preferred_assignor("uniform") == "uniform"
    alone = group_of(Member("m0", assignor_name="range"))
    assert alone.preferred_assignor("range", alone.members["m0"], changed) == "uniform"


def test_as_many_votes_for_two_assignors_have_one_answer() -> None:
    group = group_of(Member("m0", assignor_name="range"))
    second = Member("m1", assignor_name="uniform")
    assert group.preferred_assignor("range", Member("m1"), second) == "uniform"
    group.put_member(second)
    for turn in range(3):
        for member_id in ("m0", "m1"):
            old = group.members[member_id]
            new = old._replace(rack_id=f"r{turn}")
            assert group.preferred_assignor("range", old, new) == "uniform"
            group.put_member(new)
            assert group.preferred_assignor("range") == "uniform"


def test_classic_members_need_a_protocol_in_common() -> None:
    group = group_of(
        Member("c1", classic=ClassicFacts(1, (("range", b""), ("sticky", b"")))),
        Member("c2", classic=ClassicFacts(1, (("range", b""),))),
    )
    assert group.classic_member_count == 2
    assert group.supports_protocols("consumer", ["range"])
    assert not group.supports_protocols("consumer", ["sticky"])
    assert not group.supports_protocols("connect", ["range"])
    assert ConsumerGroup("g").supports_protocols("consumer", ["any"])
    assert not ConsumerGroup("g").supports_protocols("consumer", [])


def test_a_group_with_members_is_not_deleted() -> None:
    ConsumerGroup("g").validate_delete()
    group = group_of(Member("m"))
    group.validate_offset_delete()
    with pytest.raises(KafkaError) as raised:
        group.validate_delete()
    assert raised.value.code is ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(KafkaError) as raised:
        group.member("nobody")
    assert raised.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_expire_from_their_commit_on() -> None:
    assert ConsumerGroup("g").expiration_base_ms(17) == 17


def test_tombstones_end_with_the_group_itself() -> None:
    group = group_of(Member("m"))
    group.put_regex("x", ResolvedRegex(frozenset("a"), 1, 1))
    kinds = [int.from_bytes(key[:2], "big") for key, value in group.tombstones() if value is None]
    assert kinds == [8, 7, 6, 5, 16, 4, 3]


def test_a_strangers_commit_is_told_what_is_wrong() -> None:
    with pytest.raises(KafkaError, match=r"uses assign\(\)") as refused:
        group_of(Member("m", member_epoch=1)).validate_offset_commit(
            "", None, -1, is_transactional=False, version=9
        )
    assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID
