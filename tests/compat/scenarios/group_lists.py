"""DescribeGroups, ListGroups and DeleteGroups: classic groups seen from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario
from tests.compat.scenarios.group_members import Member, group_of, quiet_join, stable_pair

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

# DescribeGroups.


def delete_nameless_group(talk: Dialogue) -> None:
    """Delete the group whose name is empty: other scenarios commit offsets for it."""
    talk.quietly("delete_groups", 2, groups_names=[""])


def describe(talk: Dialogue, label: str, *group_ids: str, **other: Any) -> None:
    """Record DescribeGroups; members by client, groups in the order of the request."""
    answer = talk.quietly("describe_groups", talk.version, groups=list(group_ids), **other)
    answer["groups"].sort(key=lambda group: group_ids.index(group["group_id"]))
    for group in answer["groups"]:
        group["members"].sort(key=lambda member: member["client_id"])
    talk.note(label, answer)


def state_of(talk: Dialogue, group_id: str) -> str:
    """Return the state of one group; `Dead` for an unknown one."""
    answer = talk.quietly("describe_groups", 0, groups=[group_id])
    return str(answer["groups"][0]["group_state"])


@scenario("describe_groups")
def describe_groups_all(talk: Dialogue) -> None:
    """A group in all its states."""
    group_id = group_of(talk)
    describe(talk, "not there", group_id)
    invited = Member(talk, group_id, "invited")
    invited.send_join()
    invited.hear()
    # Kafka 4 answers the join first, and shows the group when its record is committed.
    talk.wait_until(lambda: state_of(talk, group_id) != "Dead", f"{group_id} in the list")
    describe(talk, "somebody has an id", group_id)
    invited.leave("who was invited goes")
    leader, follower = stable_pair(talk, group_id)
    describe(talk, "stable", group_id)
    third = Member(talk, group_id, "third", instance_id="three")
    third.send_join()
    leader.wait_for_rebalance()
    describe(talk, "all join", group_id)
    leader.send_join()
    follower.send_join()
    for member in (leader, follower, third):
        member.hear()
    describe(talk, "waits for the shares", group_id, group_of(talk, "other"))
    for member in (leader, follower, third):
        member.leave(f"{member.name} leaves")
    describe(talk, "empty", group_id)
    delete_nameless_group(talk)
    describe(talk, "nobody", "")
    if talk.version >= 3:
        describe(
            talk, "what may be done", group_id, talk.topic("x"), include_authorized_operations=True
        )


# ListGroups.


def note_groups(talk: Dialogue, label: str, **filters: Any) -> None:
    """Record the scenario's own groups in ListGroups."""
    answer = talk.quietly("list_groups", talk.version, **filters)
    own = [g for g in answer["groups"] if g["group_id"].startswith(talk.prefix)]
    answer["groups"] = sorted(own, key=lambda group: group["group_id"])
    talk.note(label, answer)


@scenario("list_groups")
def list_groups_all(talk: Dialogue) -> None:
    leader, follower = stable_pair(talk, group_of(talk, "a-stable"))
    empty = Member(talk, group_of(talk, "b-empty"), "gone", protocol_type="connect")
    quiet_join(empty)
    empty.leave("the only one leaves")
    waiting = Member(talk, group_of(talk, "c-completing"), "waiting", protocol_type="other")
    quiet_join(waiting)
    invited = Member(talk, group_of(talk, "d-invited"), "invited")
    invited.send_join()
    invited.hear()
    note_groups(talk, "all")
    if talk.version >= 4:
        for label, states in (
            ("stable", ["Stable"]),
            ("in other letters", ["stable", "EMPTY"]),
            ("with spaces", [" stable "]),
            ("states that no group has", ["Dead", "Nonsense"]),
            ("preparing or completing", ["PreparingRebalance", "CompletingRebalance"]),
            ("states of others", ["Assigning", "Reconciling"]),
        ):
            note_groups(talk, label, states_filter=states)
    if talk.version >= 5:
        for label, types in (
            ("classic", ["classic"]),
            ("classic in other letters", ["Classic"]),
            ("consumer", ["consumer"]),
            ("both", ["consumer", "classic"]),
            ("nonsense", ["nonsense"]),
        ):
            note_groups(talk, label, types_filter=types)
        note_groups(talk, "state and type", states_filter=["Empty"], types_filter=["classic"])
    leader.leave("one of two leaves")
    note_groups(talk, "one has to join again")
    follower.leave("both have left")
    note_groups(talk, "both are gone")


# DeleteGroups.


def delete(talk: Dialogue, label: str, *group_ids: str) -> None:
    """Record DeleteGroups in the order of the request."""
    answer = talk.quietly("delete_groups", talk.version, groups_names=list(group_ids))
    answer["results"].sort(key=lambda result: group_ids.index(result["group_id"]))
    talk.note(label, answer)


@scenario("delete_groups")
def delete_groups_all(talk: Dialogue) -> None:
    group_id, other = group_of(talk), group_of(talk, "other")
    delete(talk, "not there", group_id)
    member = Member(talk, group_id, "member")
    quiet_join(member)
    delete(talk, "waits for its share", group_id)
    member.sync(None, {member.member_id: b"share"})
    member.hear()
    delete(talk, "stable", group_id)
    other_member = Member(talk, other, "gone")
    quiet_join(other_member)
    other_member.leave("the other's member leaves")
    delete(talk, "stable and empty", group_id, other)
    delete(talk, "deleted already", other)
    member.leave("the member leaves")
    delete(talk, "twice in one request", group_id, group_id)
    member.heartbeat("heartbeat to a group that is deleted")
    member.join("join a group that is deleted")
    member.member_id = ""
    member.join("join anew")
    delete_nameless_group(talk)
    delete(talk, "nobody", "")
