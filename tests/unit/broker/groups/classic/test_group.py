"""The state of a classic group as the offset APIs and the lists of groups see it."""

from __future__ import annotations

import pytest

from minibroker.broker.groups.classic.group import ClassicGroup, State
from minibroker.broker.groups.classic.member import Member
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from minibroker.kafka.protocol.stored.group_metadata import GroupMetadataKey

COMMITTED_MS = 5_000
STATE_MS = 7_000


def subscription(*topics: str) -> bytes:
    return ConsumerProtocolSubscription(topics=list(topics)).to_bytes(0)


def member(
    name: str, *protocols: str, metadata: bytes = b"", instance: str | None = None
) -> Member:
    return Member(
        name,
        instance_id=instance,
        client_id=name,
        client_host="/127.0.0.1",
        rebalance_timeout_ms=2000,
        session_timeout_ms=1000,
        protocols=tuple((protocol, metadata) for protocol in protocols),
    )


def group_of(
    state: State, *members: Member, protocol_type: str = "consumer", protocol: str = "range"
) -> ClassicGroup:
    group = ClassicGroup("g", STATE_MS, state=state, generation_id=4, protocol_name=protocol)
    for joining in members:
        group.add(joining, protocol_type)
    group.learn_topics()
    return group


def refusal(group: ClassicGroup, member_id: str = "", generation: int = -1, **other: object) -> str:
    """Name of the error of an offset commit, or NONE."""
    fields = {"instance_id": None, "is_transactional": False, "version": 7, **other}
    try:
        group.validate_offset_commit(
            member_id,
            fields["instance_id"],  # type: ignore[arg-type]
            generation,
            is_transactional=bool(fields["is_transactional"]),
            version=7,
        )
    except KafkaError as error:
        return error.code.name
    return "NONE"


def test_it_tells_what_it_is() -> None:
    group = group_of(State.STABLE, member("a", "range"))
    assert (group.type_name, group.state_name, group.protocol_type) == (
        "classic",
        "Stable",
        "consumer",
    )
    assert group.member_count == 1
    assert not group.is_empty
    assert str(group) == "group g (Stable, generation 4, 1 members)"


def test_a_group_that_nobody_joined_is_simple() -> None:
    group = ClassicGroup("g", STATE_MS)
    assert group.is_empty
    assert group.is_simple
    group.pending_join["x"] = None
    assert not group.is_simple


def test_a_commit_without_a_member_into_a_live_group_says_why() -> None:
    """A consumer that uses assign() under the id of a group with members; the sentence is for our
    log, as OffsetCommit has no place for it."""
    group = group_of(State.STABLE, member("a", "range"))
    with pytest.raises(KafkaError, match=r"UNKNOWN_MEMBER_ID.*Stable.*assign\(\)"):
        group.validate_offset_commit("", None, -1, is_transactional=False, version=7)
    assert refusal(group, is_transactional=True) == "NONE"
    assert refusal(ClassicGroup("g", STATE_MS)) == "NONE"
    assert refusal(ClassicGroup("g", STATE_MS), "a", 0) == "UNKNOWN_MEMBER_ID"


def test_a_dead_group_refuses_everything() -> None:
    group = group_of(State.DEAD)
    assert refusal(group) == "COORDINATOR_NOT_AVAILABLE"
    for check in (group.validate_delete, group.validate_offset_delete):
        with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
            check()
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        group.validate_offset_fetch(None, -1)


@pytest.mark.parametrize(
    "state", [State.STABLE, State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE]
)
def test_a_group_with_members_is_not_deleted(state: State) -> None:
    group = group_of(state, member("a", "range"))
    with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
        group.validate_delete()
    group.validate_offset_delete()
    other = group_of(state, member("a", "range"), protocol_type="connect")
    with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
        other.validate_offset_delete()


def test_an_empty_group_is_deleted_with_one_tombstone() -> None:
    group = ClassicGroup("g", STATE_MS)
    group.validate_delete()
    group.validate_offset_delete()
    ((key, value),) = group.tombstones()
    assert GroupMetadataKey.from_bytes(key).group == "g"
    assert value is None


def test_topics_that_it_is_subscribed_to() -> None:
    consumer = member("a", "range", metadata=subscription("t1"))
    two = member("b", "range", metadata=subscription("t2"))
    group = group_of(State.STABLE, consumer, two)
    assert [t for t in ("t1", "t2", "t3") if group.is_subscribed_to(t)] == ["t1", "t2"]


def test_a_consumer_that_cannot_be_understood_reads_everything() -> None:
    group = group_of(State.STABLE, member("a", "range", metadata=b"?"))
    assert group.is_subscribed_to("anything")
    others = group_of(State.STABLE, member("a", "range", metadata=b"?"), protocol_type="connect")
    assert not others.is_subscribed_to("anything")


@pytest.mark.parametrize(
    ("group", "base_ms"),
    [
        (ClassicGroup("g", STATE_MS), COMMITTED_MS),
        (ClassicGroup("g", STATE_MS, protocol_type="consumer"), STATE_MS),
        (ClassicGroup("g", -1, protocol_type="consumer"), COMMITTED_MS),
        (group_of(State.STABLE, member("a", "range", metadata=subscription("t"))), COMMITTED_MS),
        (group_of(State.STABLE, member("a", "range", metadata=b"?")), None),
        (group_of(State.STABLE, member("a", "x"), protocol_type="connect"), None),
        (
            group_of(State.PREPARING_REBALANCE, member("a", "range", metadata=subscription("t"))),
            None,
        ),
    ],
)
def test_from_when_offsets_expire(group: ClassicGroup, base_ms: int | None) -> None:
    assert group.expiration_base_ms(COMMITTED_MS) == base_ms


def test_the_protocol_with_most_votes_among_those_that_all_can_do() -> None:
    group = group_of(
        State.PREPARING_REBALANCE,
        member("a", "own", "range", "sticky"),
        member("b", "sticky", "range"),
        member("c", "sticky", "range", "other"),
    )
    assert group.select_protocol() == "sticky"
    assert group.supports("consumer", (("range", b""),))
    assert not group.supports("consumer", (("own", b""),))
    assert not group.supports("connect", (("range", b""),))
    group.remove("b")
    group.remove("c")
    assert group.supports("consumer", (("own", b""),))


def test_another_member_leads_when_the_leader_goes() -> None:
    group = group_of(State.STABLE, member("a", "range"), member("b", "range"))
    assert group.leader_id == "a"
    group.remove("a")
    assert group.leader_id == "b"
    group.remove("b")
    assert group.leader_id is None


def test_protocols_that_nobody_can_do_any_more_are_forgotten() -> None:
    """Clients that come and go with ever new names of protocols leave nothing behind."""
    group = group_of(State.PREPARING_REBALANCE, member("a", "range"))
    for number in range(100):
        group.add(member(f"b{number}", "range", f"own{number}"), "consumer")
        group.remove(f"b{number}")
    group.begin_generation(1)
    assert set(group.supporters) == {"range"}


def test_states_follow_kafkas_graph() -> None:
    group = group_of(State.STABLE, member("a", "range"))
    with pytest.raises(AssertionError, match="cannot become Empty"):
        group.go(State.EMPTY, 1)
    group.go(State.PREPARING_REBALANCE, 9)
    assert (group.previous_state, group.state_timestamp_ms) == (State.STABLE, 9)
    assert ErrorCode.NONE.name == refusal(group, "a", 4)
