"""One member of a group with confluent-kafka: ADDRESS GROUP TOPIC PROTOCOL [INSTANCE].

As GroupMember.java: prints "has 0 1" when its partitions changed and "read VALUE" per record,
commits after every batch, leaves on SIGTERM. TOPIC may be /PATTERN.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition


def main(address: str, group_id: str, topic: str, protocol: str, *instance: str) -> None:
    """Read until SIGTERM."""
    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "group.id": group_id,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": 500,
    }
    if instance:
        settings["group.instance.id"] = instance[0]
    if protocol == "classic":
        settings |= {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 200}
        # The sticky ones of librdkafka put data of their own into assignments once they have
        # rebalanced twice, and such a group Kafka does not take over into the new protocol.
        settings["partition.assignment.strategy"] = "range"
    consumer = Consumer(settings)
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))

    def on_assign(member: Consumer, partitions: list[TopicPartition]) -> None:
        if protocol == "classic":
            member.assign(partitions)
        else:
            member.incremental_assign(partitions)
        say(member)

    def on_revoke(member: Consumer, partitions: list[TopicPartition]) -> None:
        if protocol == "classic":
            member.unassign()
        else:
            member.incremental_unassign(partitions)
        say(member)

    names = [f"^{topic[1:]}" if topic.startswith("/") else topic]
    consumer.subscribe(names, on_assign=on_assign, on_revoke=on_revoke)
    while not stopping:
        for message in consumer.consume(100, timeout=0.2):
            if message.error() is None:
                tell("read", message.value().decode())
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            tell("not committed", error.args[0].name())
    consumer.close()


def say(consumer: Consumer) -> None:
    """Print the partitions that the member has now."""
    tell("has", *sorted(partition.partition for partition in consumer.assignment()))


def tell(*words: object) -> None:
    """Print one line, at once."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
