"""Classic groups: joins, shares, sessions, leaving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.compat.scenarios import scenario
from tests.compat.scenarios.group_members import (
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    Member,
    group_of,
    quiet_join,
    stable_pair,
)

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

EXPIRING_MS = 2_000

# JoinGroup.


@scenario("join_group")
def join_group_alone(talk: Dialogue) -> None:
    """The life of a group with one member: it leads, joins again, leaves."""
    member = Member(talk, group_of(talk), "alone")
    member.join("join")
    talk.note("id begins with the client's", member.member_id.startswith("alone-"))
    talk.note("and ends with a uuid", len(member.member_id) - len("alone-"))
    member.join("before it has its share")
    member.sync("sync", {member.member_id: b"share"})
    member.heartbeat("heartbeat")
    member.join("a leader joins again")
    member.heartbeat("heartbeat of the new generation", generation_id=1)
    member.leave("leave")
    member.join("join as a member that left")
    member.member_id = ""
    member.join("join anew")


@scenario("join_group")
def join_group_refused(talk: Dialogue) -> None:
    group_id = group_of(talk)
    stranger = Member(talk, group_id, "stranger")
    stranger.join("empty group id", group_id="")
    stranger.join("session too short", session_timeout_ms=1)
    stranger.join("session too long", session_timeout_ms=1_800_001)
    stranger.join("no protocols", protocols=[])
    stranger.join("no protocol type", protocol_type="")
    stranger.join("a member id in a group that is not there", member_id="stranger-1")
    member = Member(talk, group_id, "member")
    quiet_join(member)
    stranger.join("a member id that nobody has", member_id="stranger-1")
    stranger.join("another type", protocol_type="connect")
    stranger.join("a protocol that the others lack", protocols=[{"name": "sticky"}])
    stranger.join("no protocols beside others", protocols=[])
    stranger.join(
        "session too short for a member", member_id=member.member_id, session_timeout_ms=1
    )


@scenario("join_group")
def join_group_two(talk: Dialogue) -> None:
    """A second member makes the first join again; then their protocols change."""
    group_id = group_of(talk)
    leader, follower = Member(talk, group_id, "leader"), Member(talk, group_id, "follower")
    leader.join("first")
    leader.sync("first share", {leader.member_id: b"all"})
    follower.begin_join("second is sent for its id", leader)
    leader.heartbeat("heartbeat while the other waits")
    leader.join("first again")
    follower.hear("second")
    follower.join("the second missed its answer")
    leader.join("so did the first")
    follower.sync(None)
    leader.sync("shares", {leader.member_id: b"this", follower.member_id: b"that"})
    follower.hear("its share")
    follower.join("the follower joins again as it was")
    follower.protocols = ("range", "sticky")
    follower.send_join()
    leader.wait_for_rebalance()
    leader.sync("no share while all join")
    leader.join("the leader joins with it")
    follower.hear("the follower can do more")
    follower.leave("the follower leaves before it has its share")
    leader.wait_for_rebalance()
    leader.join("the leader is alone")


@scenario("join_group")
def join_group_votes(talk: Dialogue) -> None:
    """Most votes among the protocols that all members support decide."""
    group_id = group_of(talk)
    first = Member(talk, group_id, "a", protocols=("range", "sticky", "own"))
    second = Member(talk, group_id, "b", protocols=("sticky", "range"))
    third = Member(talk, group_id, "c", protocols=("sticky", "range", "other"))
    first.join("first")
    second.begin_join("second is sent for its id", first)
    third.begin_join("third is sent for its id", first)
    first.join("first again")
    second.hear("second")
    third.hear("third")


@scenario("join_group", peer="4.4.0", because="3.9.1 fails inside and never answers")
def join_group_unknown_bytes(talk: Dialogue) -> None:
    """Consumers with malformed subscriptions."""
    member = Member(talk, group_of(talk), "member")
    for label, metadata in (
        ("text", b"what is this?"),
        ("nothing", b""),
        ("too many topics", b"\0\0\x7f\xff\xff\xff"),
        ("cut", b"\0\0\0\0\0\1\0\5ab"),
    ):
        member.join(label, protocols=[{"name": "range", "metadata": metadata}])
        member.sync(f"{label}: share", {member.member_id: metadata})


@scenario("join_group", since=5)
def join_group_static(talk: Dialogue) -> None:
    """Static members come back without a rebalance, and their old ids are fenced."""
    group_id = group_of(talk)
    leader = Member(talk, group_id, "leader", instance_id="one", protocols=("sticky", "range"))
    follower = Member(talk, group_id, "follower", instance_id="two", protocols=("range",))
    leader.join("leader")
    leader.sync("all", {leader.member_id: b"all"})
    follower.begin_join("", leader)
    leader.join("leader again")
    follower.hear("follower")
    talk.note("id begins with the instance's", follower.member_id.startswith("two-"))
    follower.sync(None)
    leader.sync("shares", {leader.member_id: b"this", follower.member_id: b"that"})
    follower.hear("its share")
    old_id, follower.member_id = follower.member_id, ""
    follower.join("follower is back")
    follower.sync("the same share")
    follower.heartbeat("heartbeat with the old id", member_id=old_id)
    follower.join("join with the old id", member_id=old_id)
    follower.sync("sync with the old id", member_id=old_id)
    follower.heartbeat("heartbeat with a name that is nobody's", group_instance_id="three")
    follower.heartbeat("heartbeat with another's name", group_instance_id="one")
    leader.member_id = ""
    leader.join("leader is back")
    leader.sync("the leader's share")
    leader.heartbeat("the group is as it was")
    follower.member_id = ""
    follower.protocols = ("sticky", "range")
    follower.send_join()
    leader.wait_for_rebalance()
    leader.join("the leader joins again")
    follower.hear("the follower is back with another protocol")
    first_id, follower.member_id = follower.member_id, ""
    follower.send_join()
    leader.wait_for_rebalance()
    leader.join("the leader has to join once more")
    follower.hear("the follower is back before it had a share")
    follower.heartbeat("the id before", member_id=first_id)


@scenario("join_group", since=4, until=4)
def join_group_expired(talk: Dialogue) -> None:
    """A silent member is removed after its session; an unused member id is forgotten."""
    group_id = group_of(talk)
    silent = Member(talk, group_id, "silent", session_ms=EXPIRING_MS)
    other = Member(talk, group_id, "other")
    silent.join("silent")
    silent.sync("share", {silent.member_id: b"share"})
    other.send_join()
    other.hear("an id is given out")
    other.send_join()
    other.hear("the silent one is out, the other leads")
    silent.heartbeat("too late")
    silent.join("too late to join")
    late = Member(talk, group_id, "late", session_ms=EXPIRING_MS)
    late.send_join()
    late.hear("an id for the late one")
    talk.wait_until(
        lambda: (
            late.heartbeat(None, generation_id=1) == UNKNOWN_MEMBER_ID and _is_forgotten(talk, late)
        ),
        "the id to be forgotten",
    )


def _is_forgotten(talk: Dialogue, member: Member) -> bool:
    """Return whether LeaveGroup says that the member is unknown; an unused id may leave."""
    answer = talk.quietly(
        "leave_group", 3, group_id=member.group_id, members=[{"member_id": f"{member.member_id}-"}]
    )
    return bool(answer["members"][0]["error_code"] == UNKNOWN_MEMBER_ID)


# SyncGroup.


@scenario("sync_group")
def sync_group_refused(talk: Dialogue) -> None:
    group_id = group_of(talk)
    stranger = Member(talk, group_id, "stranger")
    stranger.sync("empty group id", group_id="")
    stranger.sync("a group that is not there", member_id="stranger-1")
    leader, follower = stable_pair(talk, group_id)
    stranger.sync("no member", member_id="stranger-1", generation_id=2)
    stranger.sync("no member id", generation_id=2)
    follower.sync("the generation before", generation_id=1)
    follower.sync("a generation to come", generation_id=3)
    follower.sync("the share again")
    leader.sync("another assignment comes too late", {leader.member_id: b"other"})
    leader.sync("the leader's share again")
    leader.leave("the leader goes")
    follower.sync("while all join")


@scenario("sync_group", since=5)
def sync_group_protocols(talk: Dialogue) -> None:
    leader, _ = stable_pair(talk, group_of(talk))
    leader.sync("another type", protocol_type="connect")
    leader.sync("another protocol", protocol_name="sticky")
    leader.sync("no type", protocol_type=None)
    leader.sync("no protocol", protocol_name=None)
    leader.sync("neither", protocol_type=None, protocol_name=None)
    leader.sync("both")


@scenario("sync_group")
def sync_group_waits(talk: Dialogue) -> None:
    """Followers wait for the leader's assignment; a forgotten member gets an empty share."""
    group_id = group_of(talk)
    leader, follower = stable_pair(talk, group_id)
    third = Member(talk, group_id, "third")
    third.send_join()
    third.hear()
    third.send_join()
    leader.wait_for_rebalance()
    leader.send_join()
    follower.send_join()
    for member in (leader, follower, third):
        member.hear()
    third.sync(None)
    follower.sync(None)
    leader.sync("leader", {leader.member_id: b"this", third.member_id: b"", "nobody-1": b"that"})
    follower.hear("forgotten")
    third.hear("nothing")
    # The next generation fails: a follower that waits is told to join again.
    leader.send_join()
    for member in (follower, third):
        member.wait_for_rebalance()
        member.send_join()
    for member in (leader, follower, third):
        member.hear()
    follower.sync(None)
    third.leave("the third leaves")
    follower.hear("there is no share of this generation")


@scenario("sync_group", since=3)
def sync_group_static(talk: Dialogue) -> None:
    group_id = group_of(talk)
    member = Member(talk, group_id, "static", instance_id="one")
    quiet_join(member)
    old_id, member.member_id = member.member_id, ""
    member.sync("no member id")
    quiet_join(member)
    member.sync("the old id", member_id=old_id)
    member.sync("a name that is nobody's", group_instance_id="two")
    member.sync("good", {member.member_id: b"share"})


# Heartbeat.


@scenario("heartbeat")
def heartbeat_all(talk: Dialogue) -> None:
    group_id = group_of(talk)
    stranger = Member(talk, group_id, "stranger")
    stranger.heartbeat("empty group id", group_id="")
    stranger.heartbeat("a group that is not there")
    member = Member(talk, group_id, "member")
    quiet_join(member)
    member.heartbeat("before it has its share")
    member.sync(None, {member.member_id: b"share"})
    member.hear()
    member.heartbeat("good")
    member.heartbeat("the generation before", generation_id=0)
    member.heartbeat("a generation to come", generation_id=2)
    stranger.heartbeat("no member", generation_id=1)
    stranger.heartbeat("no member in another generation", generation_id=7)
    quiet_join(stranger, beside=member)
    member.sync(None, {})
    member.hear()
    stranger.leave("one leaves")
    talk.wait_until(lambda: member.heartbeat(None) == REBALANCE_IN_PROGRESS, "a rebalance")
    member.heartbeat("all have to join again")
    member.heartbeat("all have to join again, another generation", generation_id=1)
    member.leave("the last one leaves")
    member.heartbeat("nobody is left")


@scenario("heartbeat", since=3)
def heartbeat_static(talk: Dialogue) -> None:
    group_id = group_of(talk)
    member = Member(talk, group_id, "static", instance_id="one")
    quiet_join(member)
    member.sync(None, {member.member_id: b"share"})
    member.hear()
    member.heartbeat("good")
    member.heartbeat("without its name", group_instance_id=None)
    member.heartbeat("another's name", group_instance_id="two")
    old_id, member.member_id = member.member_id, ""
    quiet_join(member)
    member.heartbeat("the old id", member_id=old_id)
    member.heartbeat("the old id without its name", member_id=old_id, group_instance_id=None)
    member.heartbeat("the old id in another generation", member_id=old_id, generation_id=7)


# LeaveGroup.


@scenario("leave_group")
def leave_group_one(talk: Dialogue) -> None:
    group_id = group_of(talk)
    stranger = Member(talk, group_id, "stranger")
    stranger.member_id = "stranger-1"
    stranger.leave("a group that is not there")
    leader, follower = stable_pair(talk, group_id)
    stranger.leave("no member")
    stranger.member_id = ""
    stranger.leave("no member id")
    follower.leave("follower")
    follower.leave("follower once more")
    leader.wait_for_rebalance()
    invited = Member(talk, group_id, "invited")
    invited.send_join()
    invited.hear()
    invited.leave("only invited")
    invited.leave("invited once more")
    leader.leave("leader")
    leader.leave("leader once more")
    stranger.group_id = ""
    stranger.leave("empty group id")


@scenario("leave_group", since=3)
def leave_group_several(talk: Dialogue) -> None:
    group_id = group_of(talk)
    leader, follower = stable_pair(talk, group_id)
    static = Member(talk, group_id, "static", instance_id="one")
    static.send_join()
    leader.wait_for_rebalance()
    leader.send_join()
    follower.send_join()
    for member in (leader, follower, static):
        member.hear()
    member = {"member_id": leader.member_id}
    talk.ask("nobody", group_id=group_id, members=[])
    talk.ask(
        "some of them",
        group_id=group_id,
        members=[
            {"member_id": "stranger-1"},
            {"member_id": static.member_id, "group_instance_id": "two"},
            {"member_id": follower.member_id, "group_instance_id": "one"},
            {"member_id": "", "group_instance_id": "two"},
            {"member_id": ""},
            {"member_id": follower.member_id},
            {"member_id": follower.member_id},
        ],
    )
    leader.wait_for_rebalance()
    talk.ask(
        "the rest",
        group_id=group_id,
        members=[{"member_id": "", "group_instance_id": "one"}, member],
    )
    talk.ask("nobody is left", group_id=group_id, members=[member])
    if talk.version >= 5:
        talk.ask("with a reason", group_id=group_id, members=[{**member, "reason": "tired"}])
