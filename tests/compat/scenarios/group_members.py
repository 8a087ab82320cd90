"""Clients of one group, each on a connection of its own: a join waits for the others.

The API under test is asked at the version under test, all others at a version of their own.
"""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Any

from tests.support.codec import codec_of

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue
    from tests.support.wire import Answer

VERSIONS = {
    "join_group": 5,
    "sync_group": 3,
    "heartbeat": 3,
    "leave_group": 3,
    "describe_groups": 4,
    "offset_commit": 7,
}
SESSION_MS = 30_000
REBALANCE_MS = 30_000
OFFSETS_TOPIC = "__consumer_offsets"

NONE = 0
COORDINATOR_LOAD_IN_PROGRESS = 14
NOT_COORDINATOR = 16
UNKNOWN_MEMBER_ID = 25
REBALANCE_IN_PROGRESS = 27
MEMBER_ID_REQUIRED = 79


def group_of(talk: Dialogue, name: str = "group") -> str:
    """Return the id of a group of this scenario, once its coordinator is active."""
    group_id = talk.topic(name)

    def is_ready() -> bool:
        talk.quietly(
            "metadata", 8, topics=[{"name": OFFSETS_TOPIC}], allow_auto_topic_creation=True
        )
        answer = talk.quietly(
            "heartbeat", 0, group_id=group_id, generation_id=0, member_id="nobody"
        )
        return bool(answer["error_code"] == UNKNOWN_MEMBER_ID)

    talk.wait_until(is_ready, f"a coordinator of {group_id}")
    return group_id


def subscription(*topics: str) -> bytes:
    """Return a consumer's metadata for a protocol: version 0, topics, no user data.

    Kafka 3.9 never answers a join of a consumer with malformed metadata.
    """
    names = [topic.encode() for topic in topics]
    body = b"".join(pack(">h", len(name)) + name for name in names)
    return pack(">hi", 0, len(names)) + body + pack(">i", -1)


class Member:
    """One client; its answers are recorded."""

    def __init__(
        self,
        talk: Dialogue,
        group_id: str,
        name: str,
        *,
        instance_id: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> None:
        self.talk = talk
        self.group_id = group_id
        self.name = name
        self.instance_id = instance_id
        self.protocols = protocols
        self.protocol_type = protocol_type
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self.member_id = ""
        self.generation = -1
        self.client = talk.another(name)
        self._unanswered: list[tuple[str, int, int]] = []

    def version_of(self, api: str) -> int:
        """Return the version under test for the API under test."""
        return self.talk.version if api == self.talk.api else VERSIONS[api]

    def send(self, api: str, fields: dict[str, Any]) -> None:
        """Send a request without waiting for its answer."""
        version = self.version_of(api)
        self._unanswered.append((api, version, self.client.send(api, version, **fields)))

    def hear(self, label: str | None = None) -> Answer:
        """Return the answer to the oldest request; record it under a label."""
        api, version, correlation_id = self._unanswered.pop(0)
        answer = self.client.receive(codec_of(api), version, correlation_id)
        if "members" in answer and api == "join_group":
            answer["members"].sort(key=lambda member: member["metadata"])
            if answer["error_code"] in {NONE, MEMBER_ID_REQUIRED}:
                self.member_id = answer["member_id"]
                self.generation = answer["generation_id"]
        if label is not None:
            self.talk.note(label, answer)
        return answer

    def static(self, api: str, since: int) -> dict[str, Any]:
        """Return the instance id, where the version has a field for it."""
        if self.instance_id is None or self.version_of(api) < since:
            return {}
        return {"group_instance_id": self.instance_id}

    # JoinGroup.

    def send_join(self, **other: Any) -> None:
        """Send JoinGroup with this member's protocols; `other` fields are passed on."""
        fields: dict[str, Any] = {
            "group_id": self.group_id,
            "session_timeout_ms": self.session_ms,
            "member_id": self.member_id,
            "protocol_type": self.protocol_type,
            "protocols": [
                {"name": name, "metadata": subscription(self.name, name)} for name in self.protocols
            ],
            **self.static("join_group", 5),
        }
        if self.version_of("join_group") >= 1:
            fields["rebalance_timeout_ms"] = self.rebalance_ms
        self.send("join_group", fields | other)

    def join(self, label: str, **other: Any) -> Answer:
        """Join and wait; join again if the answer demands a member id."""
        self.send_join(**other)
        answer = self.hear(label)
        if answer["error_code"] == MEMBER_ID_REQUIRED:
            self.send_join(**other)
            answer = self.hear(f"{label} with its id")
        return answer

    def begin_join(self, label: str, beside: Member) -> None:
        """Send a join while `beside` is a member, which has to join again before the answer."""
        self.send_join()
        if (
            not self.member_id
            and self.instance_id is None
            and self.version_of("join_group") >= VERSIONS["join_group"] - 1
        ):
            self.hear(label)
            self.send_join()
        beside.wait_for_rebalance()
        self.talk.wait_until(self._is_described, f"{self.name} in {self.group_id}")

    def _is_described(self) -> bool:
        answer = self.talk.quietly("describe_groups", 4, groups=[self.group_id])
        return any(member["client_id"] == self.name for member in answer["groups"][0]["members"])

    # The others.

    def sync(self, label: str | None, shares: dict[str, bytes] | None = None, **other: Any) -> None:
        """Send SyncGroup; the leader assigns `shares`, member id → bytes."""
        fields: dict[str, Any] = {
            "group_id": self.group_id,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "assignments": [
                {"member_id": member_id, "assignment": share}
                for member_id, share in (shares or {}).items()
            ],
            **self.static("sync_group", 3),
        }
        if self.version_of("sync_group") >= 5:
            fields |= {"protocol_type": self.protocol_type, "protocol_name": self.protocols[0]}
        self.send("sync_group", fields | other)
        if label is not None:
            self.hear(label)

    def heartbeat(self, label: str | None, **other: Any) -> int:
        """Send a heartbeat and return its error code."""
        fields: dict[str, Any] = {
            "group_id": self.group_id,
            "generation_id": self.generation,
            "member_id": self.member_id,
            **self.static("heartbeat", 3),
        }
        self.send("heartbeat", fields | other)
        return int(self.hear(label)["error_code"])

    def wait_for_rebalance(self) -> None:
        """Wait until a heartbeat says that the members have to join again."""
        self.talk.wait_until(
            lambda: self.heartbeat(None) == REBALANCE_IN_PROGRESS, f"a rebalance of {self.group_id}"
        )

    def leave(self, label: str) -> None:
        """Leave the group."""
        if self.version_of("leave_group") >= 3:
            fields: dict[str, Any] = {
                "members": [{"member_id": self.member_id, **self.static("leave_group", 3)}]
            }
        else:
            fields = {"member_id": self.member_id}
        self.send("leave_group", {"group_id": self.group_id, **fields})
        self.hear(label)


def stable_pair(talk: Dialogue, group_id: str, **options: Any) -> tuple[Member, Member]:
    """Return a leader and a follower in generation 2, made without a record."""
    leader = Member(talk, group_id, "leader", **options)
    follower = Member(talk, group_id, "follower", **options)
    quiet_join(leader)
    leader.sync(None, {leader.member_id: b"all"})
    leader.hear()
    quiet_join(follower, beside=leader)
    follower.sync(None)
    leader.sync(None, {leader.member_id: b"this", follower.member_id: b"that"})
    leader.hear()
    follower.hear()
    return leader, follower


def quiet_join(member: Member, beside: Member | None = None) -> None:
    """Join without a record; `beside`, a member already, joins again."""
    member.send_join()
    if not member.member_id and member.instance_id is None and member.version_of("join_group") >= 4:
        member.hear()
        member.send_join()
    if beside is not None:
        beside.wait_for_rebalance()
        beside.send_join()
        beside.hear()
    member.hear()
