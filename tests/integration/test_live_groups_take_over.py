"""A group with members moves between brokers: from us to Kafka 3.9.1 and back, on the same files.

Its members do not notice: they keep their ids, their generation and their shares, also static ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.compat.dialogue import Dialogue
from tests.compat.scenarios.group_members import (
    COORDINATOR_LOAD_IN_PROGRESS,
    NONE,
    Member,
    group_of,
    quiet_join,
    stable_pair,
)
from tests.support.taking_over import SETTINGS as KAFKA_SETTINGS
from tests.support.taking_over import wait_until_unregistered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.broker import Minibroker
    from tests.support.peers import KafkaPeer, ZooKeeper

pytestmark = pytest.mark.java


@pytest.fixture
def kafka_settings() -> dict[str, str]:
    """Return settings for `new_kafka`."""
    return KAFKA_SETTINGS


CHROOT = "live-groups"
SETTINGS = {"offsets.topic.num.partitions": "5"}
SESSION_MS = 120_000


@pytest.fixture
def talk_to() -> Iterator[Callable[[Any], Dialogue]]:
    """Yield a function that opens dialogues; all are closed at the end."""
    open_ones: list[Dialogue] = []

    def talk_to(broker: Any) -> Dialogue:
        dialogue = Dialogue(broker.host, broker.port, scenario="live", api="none", version=0)
        open_ones.append(dialogue)
        return dialogue

    yield talk_to
    for dialogue in open_ones:
        dialogue.close()


def moved(talk: Dialogue, member: Member) -> Member:
    """Return the same member on another broker, once that broker coordinates its group."""
    again = Member(
        talk,
        member.group_id,
        member.name,
        instance_id=member.instance_id,
        session_ms=member.session_ms,
    )
    again.member_id, again.generation = member.member_id, member.generation
    talk.wait_until(lambda: again.heartbeat(None) == NONE, f"{member.name} to be known")
    return again


def share_of(member: Member) -> bytes:
    """Return the member's assignment; ask again while the group is loaded."""
    answer: dict[str, Any] = {}

    def is_given() -> bool:
        member.sync(None)
        answer.update(member.hear())
        return bool(answer["error_code"] == NONE)

    member.talk.wait_until(is_given, f"the share of {member.name}")
    return bytes(answer["assignment"])


def described(talk: Dialogue, group_id: str) -> Any:
    """Return the answer of DescribeGroups, once the group is loaded.

    A heartbeat is no proof of that: it gets no error while the group is loaded.
    """
    answers: list[Any] = []

    def is_loaded() -> bool:
        answers[:] = talk.quietly("describe_groups", 4, groups=[group_id])["groups"]
        return bool(answers[0]["error_code"] != COORDINATOR_LOAD_IN_PROGRESS)

    talk.wait_until(is_loaded, f"{group_id} to be loaded")
    (group,) = answers
    group["members"].sort(key=lambda member: member["client_id"])
    return group


def test_members_stay_members_through_kafka_and_back(
    zookeeper: ZooKeeper,
    new_broker: Callable[..., Minibroker],
    new_kafka: Callable[[str, Path], KafkaPeer],
    talk_to: Callable[[Any], Dialogue],
) -> None:
    broker = new_broker(zookeeper=f"{zookeeper.connect}/{CHROOT}", settings=SETTINGS)
    talk = talk_to(broker)
    group_id, static_id = group_of(talk), group_of(talk, "static")
    pair = stable_pair(talk, group_id, session_ms=SESSION_MS)
    static = Member(talk, static_id, "static", instance_id="one", session_ms=SESSION_MS)
    quiet_join(static)
    static.sync(None, {static.member_id: b"all"})
    static.hear()
    ours = [described(talk, name) for name in (group_id, static_id)]
    assert [group["group_state"] for group in ours] == ["Stable", "Stable"]
    broker.kill()
    wait_until_unregistered(zookeeper, CHROOT)

    kafka = new_kafka(CHROOT, broker.data_dir)
    talk = talk_to(kafka)
    leader, follower = (moved(talk, member) for member in pair)
    static = moved(talk, static)
    assert [described(talk, name) for name in (group_id, static_id)] == ours
    assert [share_of(member) for member in (leader, follower, static)] == [b"this", b"that", b"all"]
    # Another generation, Kafka's; and the static member comes back under another id.
    leader.send_join()
    follower.wait_for_rebalance()
    follower.send_join()
    leader.hear()
    follower.hear()
    follower.sync(None)
    leader.sync(None, {leader.member_id: b"new", follower.member_id: b"old"})
    leader.hear()
    follower.hear()
    old_id, static.member_id = static.member_id, ""
    quiet_join(static)
    assert static.member_id != old_id
    kafkas = [described(talk, name) for name in (group_id, static_id)]
    kafka.stop()
    wait_until_unregistered(zookeeper, CHROOT)

    broker.start()
    talk = talk_to(broker)
    leader, follower = moved(talk, leader), moved(talk, follower)
    static = moved(talk, static)
    assert [described(talk, name) for name in (group_id, static_id)] == kafkas
    assert [share_of(member) for member in (leader, follower, static)] == [b"new", b"old", b"all"]
    follower.leave("follower")
    leader.wait_for_rebalance()
