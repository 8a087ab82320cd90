"""Members of a group in a broker of this process: they share, take over, commit and leave."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from minibroker.client.assignors import by_range, by_turns
from minibroker.client.member import MemberSession
from minibroker.client.settings import client_settings
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from minibroker.kafka.protocol.stored.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
)
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from minibroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

RELEASES = ("0.9.0", "0.10.1", "2.3", "4.4")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics=["t:4"]) as node:
        yield node


def member_of(broker: Broker, group: str = "g") -> MemberSession:
    settings = client_settings({"bootstrap.servers": broker.bootstrap, "client.id": "m"})
    return MemberSession(settings, group, ["t"])


def wait_until_called(member: MemberSession) -> None:
    """Wait until the member hears that it has to join again."""
    while not member.must_rejoin():
        threading.Event().wait(0.01)


def test_partitions_are_shared_and_taken_over(broker: Broker) -> None:
    first, second = member_of(broker), member_of(broker)
    assert len(first.join()) == 4
    shares: list[list[TopicPartition]] = []
    joining = threading.Thread(target=lambda: shares.append(second.join()))
    joining.start()
    wait_until_called(first)
    shares.append(first.join())
    joining.join(30)
    assert sorted(part for share in shares for part in share) == [
        TopicPartition("t", number) for number in range(4)
    ]
    assert [len(share) for share in shares] == [2, 2]
    second.leave()
    wait_until_called(first)
    assert len(first.join()) == 4
    first.leave()
    assert broker.members("g") == []


@pytest.mark.parametrize("release", RELEASES)
def test_offsets_are_committed_as_a_member(release: str) -> None:
    with Broker(config={"minibroker.advertised.kafka.version": release}) as broker:
        broker.produce("t", [b"x"] * 5)
        place = TopicPartition("t", 0)
        member = member_of(broker)
        assert member.join() == [place]
        assert member.committed([place]) == {}
        assert member.commit({place: 3})
        assert member.committed([place]) == {place: 3}
        member.leave()
        assert broker.committed("g") == {place: 3}


def test_a_member_that_was_taken_out_commits_nothing(broker: Broker) -> None:
    member = member_of(broker)
    member.join()
    broker.faults.add("OffsetCommit", error="ILLEGAL_GENERATION", times=1)
    assert not member.commit({TopicPartition("t", 0): 3})
    assert member.must_rejoin()
    assert len(member.join()) == 4
    member.leave()


def test_a_coordinator_that_loads_is_asked_again_and_a_refusal_is_raised(broker: Broker) -> None:
    member = member_of(broker)
    broker.faults.add("JoinGroup", error="COORDINATOR_LOAD_IN_PROGRESS", times=2)
    broker.faults.add("SyncGroup", error="REBALANCE_IN_PROGRESS", times=1)
    assert len(member.join()) == 4
    member.leave()
    broker.faults.add("JoinGroup", error="GROUP_AUTHORIZATION_FAILED", times=1)
    with pytest.raises(KafkaError, match="GROUP_AUTHORIZATION_FAILED"):
        member_of(broker).join()


def test_a_leader_reads_the_subscription_of_a_newer_client(broker: Broker) -> None:
    """Java's consumers look at no bytes behind the newest fields that they know."""
    subscription = ConsumerProtocolSubscription(topics=["t"]).to_bytes(3)
    newer_subscription = (99).to_bytes(2) + subscription[2:] + b"new fields"
    joined = JoinGroupResponse(
        protocol_name="range",
        members=[
            JoinGroupResponseMember(member_id="a", metadata=subscription),
            JoinGroupResponseMember(member_id="b", metadata=newer_subscription),
        ],
    )
    shares = member_of(broker)._assigned(joined)
    assert [share.member_id for share in shares] == ["a", "b"]
    assert [
        ConsumerProtocolAssignment.from_bytes(share.assignment).assigned_partitions[0].partitions
        for share in shares
    ] == [[0, 1], [2, 3]]


def test_assignors_give_each_partition_once() -> None:
    topics_of = {"a": {"t", "u"}, "b": {"t"}, "c": {"t", "u"}}
    counts = {"t": 4, "u": 3}
    ranges = by_range(topics_of, counts)
    assert [part.partition for part in ranges["a"] if part.topic == "t"] == [0, 1]
    assert [str(part) for part in ranges["b"]] == ["t-2"]
    assert [str(part) for part in ranges["c"]] == ["t-3", "u-2"]
    for assigned in (ranges, by_turns(topics_of, counts)):
        partitions = sorted(part for parts in assigned.values() for part in parts)
        assert partitions == [
            TopicPartition(name, at) for name in "tu" for at in range(counts[name])
        ]
        assert not any(part.topic == "u" for part in assigned["b"])
