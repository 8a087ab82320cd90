"""Members of consumer groups, of both protocols, and the view of a group from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.compat.scenarios.group_members import group_of

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue
    from tests.support.wire import Answer

GROUP_RESOURCE = 32
SET = 0
MEMBER_ID_REQUIRED = 79


def consumer_group_of(talk: Dialogue, name: str = "group") -> str:
    """Return a group whose targets are computed at once, however recent the last one is."""
    group_id = group_of(talk, name)
    talk.quietly(
        "incremental_alter_configs",
        1,
        resources=[
            {
                "resource_type": GROUP_RESOURCE,
                "resource_name": group_id,
                "configs": [
                    {
                        "name": "consumer.assignment.interval.ms",
                        "config_operation": SET,
                        "value": "0",
                    }
                ],
            }
        ],
    )
    # Kafka applies what it answered a moment later, but before it leads what came after.
    talk.make_topic(f"settled-{name}")
    return group_id


class Consumer:
    """One member of the consumer protocol, with an id of its own; its answers are recorded."""

    def __init__(
        self,
        talk: Dialogue,
        group_id: str,
        member_id: str,
        *,
        instance_id: str | None = None,
        **joining: Any,
    ) -> None:
        self.talk = talk
        self.group_id = group_id
        self.member_id = member_id
        self.instance_id = instance_id
        self.joining = {"rebalance_timeout_ms": 60_000, **joining}
        self.epoch = 0
        self.owned: list[dict[str, Any]] = []

    @property
    def version(self) -> int:
        """Return the version under test, for the API under test."""
        return self.talk.version if self.talk.api == "consumer_group_heartbeat" else 1

    def beat(self, label: str | None = None, **fields: Any) -> Answer:
        """Send a heartbeat at the known epoch; keep epoch and partitions of the answer."""
        request: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance_id,
            **fields,
        }
        if "subscribed_topic_regex" in request and self.version == 0:
            del request["subscribed_topic_regex"]
        answer = self.talk.client.call("consumer_group_heartbeat", self.version, **request)
        if answer["error_code"] == 0:
            self.epoch = max(answer["member_epoch"], 0)
            if answer["assignment"] is not None:
                for topic in answer["assignment"]["topic_partitions"]:
                    topic["partitions"] = sorted(topic["partitions"])
                self.owned = [
                    {
                        "topic_id": bytes(partition["topic_id"]),
                        "partitions": partition["partitions"],
                    }
                    for partition in answer["assignment"]["topic_partitions"]
                ]
        if label is not None:
            self.talk.note(label, answer)
        return answer

    def join(self, label: str | None = None, **fields: Any) -> Answer:
        """Join, or join again, with epoch 0 and without partitions."""
        self.epoch = 0
        return self.beat(label, **{**self.joining, "topic_partitions": [], **fields})

    def report(self, label: str | None = None) -> Answer:
        """Send a heartbeat that names the partitions of the last answer as owned."""
        return self.beat(label, topic_partitions=self.owned)

    def leave(self, label: str, epoch: int = -1) -> None:
        """Send a heartbeat with a leaving epoch."""
        self.beat(label, member_epoch=epoch)


def describe(talk: Dialogue, label: str, group_id: str) -> None:
    """Record the whole group, sorted."""
    version = talk.version if talk.api == "consumer_group_describe" else 1
    answer = talk.quietly("consumer_group_describe", version, group_ids=[group_id])
    for group in answer["groups"]:
        # Ids of classic members are random.
        group["members"].sort(
            key=lambda member: (member.get("member_type", 1), str(member["member_id"]))
        )
        for member in group["members"]:
            member["subscribed_topic_names"].sort()
            for assignment in (member["assignment"], member["target_assignment"]):
                assignment["topic_partitions"].sort(key=lambda topic: str(topic["topic_name"]))
                for topic in assignment["topic_partitions"]:
                    topic["partitions"] = sorted(topic["partitions"])
    talk.note(label, answer)


class ClassicConsumer:
    """A member of the classic protocol with a real subscription; its joins are answered at once."""

    def __init__(
        self, talk: Dialogue, group_id: str, topics: list[str], instance_id: str | None = None
    ) -> None:
        self.talk = talk
        self.group_id = group_id
        self.topics = topics
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.owned: list[TopicPartition] = []

    def join(self, label: str, **fields: Any) -> Answer:
        """Send JoinGroup, and again with the id if the answer has one."""
        subscription = ConsumerProtocolSubscription(
            topics=self.topics, owned_partitions=self.owned, user_data=None
        ).to_bytes(1)
        request = {
            "group_id": self.group_id,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 30_000,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": subscription}],
            **fields,
        }
        answer = self.talk.client.call("join_group", 7, **request)
        if answer["error_code"] in {0, MEMBER_ID_REQUIRED}:
            self.member_id = answer["member_id"]
            self.generation = answer["generation_id"]
        self.talk.note(label, answer)
        if answer["error_code"] == MEMBER_ID_REQUIRED:
            return self.join(f"{label} with its id")
        return answer

    def sync(self, label: str, assignments: dict[str, bytes] | None = None, **fields: Any) -> None:
        """Send SyncGroup."""
        request = {
            "group_id": self.group_id,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [
                {"member_id": member_id, "assignment": share}
                for member_id, share in (assignments or {}).items()
            ],
            **fields,
        }
        self.talk.also(label, "sync_group", 5, **request)

    def beat(self, label: str, **fields: Any) -> None:
        """Send Heartbeat."""
        request = {
            "group_id": self.group_id,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            **fields,
        }
        self.talk.also(label, "heartbeat", 4, **request)

    def leave(self, label: str, **identity: Any) -> None:
        """Send LeaveGroup."""
        members = [{"member_id": self.member_id, "group_instance_id": self.instance_id, **identity}]
        self.talk.also(label, "leave_group", 5, group_id=self.group_id, members=members)


def share_of(topic: str, partitions: list[int]) -> bytes:
    """Return an assignment of version 1 without user data."""
    name = topic.encode()
    numbers = b"".join(number.to_bytes(4, "big") for number in partitions)
    return (
        b"\0\1\0\0\0\1"
        + len(name).to_bytes(2, "big")
        + name
        + len(partitions).to_bytes(4, "big")
        + numbers
        + b"\xff\xff\xff\xff"
    )
