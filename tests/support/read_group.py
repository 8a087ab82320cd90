"""One group of real clients on one broker: members by name, and the records written for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.groups import GroupMember, read_by, start_member

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.broker import Minibroker

PARTITIONS = 6
COUNT = 300
QUICK = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "5000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "3",
}


class Group:
    """One group on one broker; members are started by name and stopped at the end."""

    def __init__(self, broker: Minibroker, directory: Path) -> None:
        self.broker = broker
        self.directory = directory
        self.members: dict[str, GroupMember] = {}
        self.topic = "read-by-groups"
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])[self.topic].result(60)
        self.written: list[str] = []

    def start(self, client: str, name: str, *arguments: str, topic: str = "") -> GroupMember:
        """Start a new member; `arguments`: protocol, instance."""
        member = self.members[name] = start_member(
            client,
            self.directory,
            name,
            self.broker.address,
            "readers",
            topic or self.topic,
            *arguments,
        )
        return member

    def write(self) -> None:
        """Write COUNT more records, over all partitions."""
        producer = Producer({"bootstrap.servers": self.broker.address})
        for _ in range(COUNT):
            value = f"r{len(self.written)}"
            producer.produce(self.topic, value.encode(), partition=len(self.written) % PARTITIONS)
            self.written.append(value)
        assert producer.flush(60) == 0

    def settle(self, *names: str) -> None:
        """Wait until these members have all partitions, each about the same number."""
        members = [self.members[name] for name in names]

        def is_shared() -> bool:
            parts = [member.has for member in members]
            sizes = {len(part) for part in parts}
            return (
                sorted(number for part in parts for number in part) == list(range(PARTITIONS))
                and max(sizes) - min(sizes) <= 1
            )

        members[0].wait_until(is_shared, f"{names} have all partitions")

    def wait_for_all(self, by: str) -> None:
        """Wait until every written record was read by some member."""
        values = set(self.written)
        self.members[by].wait_until(
            lambda: values <= set(read_by(self.members.values())), "everything is read"
        )

    def wait_for_all_commits(self, by: str) -> None:
        """Wait until every written record was read, and its offset committed."""
        self.wait_for_all(by)
        self.members[by].wait_until(
            lambda: self.committed() == len(self.written), "everything is committed"
        )

    def committed(self) -> int:
        """Return the sum of the group's committed offsets."""
        admin = AdminClient({"bootstrap.servers": self.broker.address})
        places = [TopicPartition(self.topic, index) for index in range(PARTITIONS)]
        answers = admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions("readers", places)], request_timeout=30
        )
        committed = answers["readers"].result(60).topic_partitions or []
        return sum(max(place.offset, 0) for place in committed)

    def type(self) -> str:
        """Return the group's type in ListGroups: classic or consumer."""
        admin = AdminClient({"bootstrap.servers": self.broker.address})
        answer: Any = admin.list_consumer_groups(request_timeout=30).result(60)
        (group,) = [row for row in answer.valid if row.group_id == "readers"]
        return str(group.type.name).lower()
