"""A group and its record, both ways, in every version that Kafka wrote."""

from __future__ import annotations

import pytest

from minibroker.broker.groups.classic.group import ClassicGroup, State
from minibroker.broker.groups.classic.group_value import group_of, value_of, value_version_for
from minibroker.broker.groups.classic.member import Member
from minibroker.kafka.protocol.stored.group_metadata import GroupMetadataValue


def stable_group() -> ClassicGroup:
    group = ClassicGroup(
        "g", 77, state=State.STABLE, generation_id=5, protocol_name="range", leader_id="b-1"
    )
    for name, instance in (("a", None), ("b", "one")):
        stored = Member(
            f"{name}-1",
            instance_id=instance,
            client_id=name,
            client_host="/127.0.0.1",
            rebalance_timeout_ms=2000,
            session_timeout_ms=1000,
            protocols=(("sticky", b"no"), ("range", f"meta-{name}".encode())),
        )
        group.add(stored, "consumer")
    return group


@pytest.mark.parametrize("version", range(5))
def test_round_trip(version: int) -> None:
    """A version without a field loses it, as in Kafka.

    Names of static members need version 3, the time of the state version 2, the rebalance time-out
    version 1.
    """
    value = value_of(stable_group(), {"a-1": b"x", "b-1": b"y"})
    group = group_of("g", GroupMetadataValue.from_bytes(value.to_bytes(version)))
    assert group.state is State.STABLE
    assert (group.generation_id, group.protocol_type, group.protocol_name, group.leader_id) == (
        5,
        "consumer",
        "range",
        "b-1",
    )
    assert group.state_timestamp_ms == (77 if version >= 2 else -1)
    assert group.static_members == ({"one": "b-1"} if version >= 3 else {})
    first = group.members["a-1"]
    assert first.rebalance_timeout_ms == (2000 if version >= 1 else 1000)
    assert first.session_timeout_ms == 1000
    assert (first.assignment, first.protocols) == (b"x", (("range", b"meta-a"),))
    assert (first.client_id, first.client_host) == ("a", "/127.0.0.1")
    assert group.supporters == {"range": 2}
    assert not group.awaiting_join_count


def test_an_empty_group_keeps_its_generation_and_type() -> None:
    group = ClassicGroup("g", 77, generation_id=9, protocol_type="connect")
    again = group_of("g", GroupMetadataValue.from_bytes(value_of(group, {}).to_bytes(3)))
    assert again.state is State.EMPTY
    assert (again.generation_id, again.protocol_type, again.leader_id) == (9, "connect", None)


def test_a_group_that_nobody_joined_has_no_type() -> None:
    value = value_of(ClassicGroup("g", 77), {})
    assert value.protocol_type == ""
    assert group_of("g", value).is_simple


def test_subscriptions_are_known_after_a_load() -> None:
    value = value_of(stable_group(), {})
    assert group_of("g", value).subscribed_topics is None
    for member in value.members:
        member.subscription = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
    assert group_of("g", value).subscribed_topics == {"t"}


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("0.8.2", 0),
        ("0.10.0-IV1", 0),
        ("0.10.1-IV0", 1),
        ("0.11.0", 1),
        ("2.0", 1),
        ("2.0-IV1", 1),
        ("2.1-IV0", 2),
        ("2.2", 2),
        ("2.3-IV0", 3),
        ("2.3", 3),
        ("3.9-IV0", 3),
        ("4.4", 3),
    ],
)
def test_brokers_of_a_release_can_read_the_values(release: str, version: int) -> None:
    assert value_version_for(release) == version
