"""One member of a classic group: LIBRARY ADDRESS GROUP TOPIC; kafka-python or aiokafka.

Prints "has 0 1" when its partitions changed and "read VALUE" per record, commits after every batch,
leaves on SIGTERM.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import warnings
from typing import Any

SESSION_MS = 5000
HEARTBEAT_MS = 200
POLL_MS = 200

stopping: list[int] = []


def write(*words: object) -> None:
    """Print one line, at once."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def say(partitions: Any) -> None:
    """Print the partitions that the member has now."""
    write("has", *sorted(partition.partition for partition in partitions))


def settings_for(address: str, group_id: str) -> dict[str, Any]:
    """Return settings with names that both libraries share."""
    return {
        "bootstrap_servers": address,
        "group_id": group_id,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "session_timeout_ms": SESSION_MS,
        "heartbeat_interval_ms": HEARTBEAT_MS,
    }


def read_with_kafka_python(address: str, group_id: str, topic: str) -> None:
    """Read until SIGTERM."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import kafka  # noqa: PLC0415  # one of two
        from kafka.errors import (  # noqa: PLC0415
            CommitFailedError,
            RebalanceInProgressError,
        )
    consumer = kafka.KafkaConsumer(**settings_for(address, group_id))

    class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
        """Prints partitions that were assigned and revoked."""

        def on_partitions_assigned(self, assigned: Any) -> None:
            say(consumer.assignment())

        def on_partitions_revoked(self, revoked: Any) -> None:
            say(())

    consumer.subscribe([topic], listener=Listener())
    # Metadata first. A leader of kafka-python 3.0 that joins without it assigns nothing, and joins
    # again when it comes, for no other reason than that. `_perform_assignment` of that second join
    # takes the reason away; if the time-out of poll() falls between JoinGroup and the answer of
    # SyncGroup, `need_rejoin` is False from then on and nobody looks at `_join_task` any more: no
    # assignment, no heartbeats, poll() spins, beside whatever broker.
    consumer.partitions_for_topic(topic)
    while not stopping:
        for records in consumer.poll(timeout_ms=POLL_MS).values():
            for record in records:
                write("read", record.value.decode())
        try:
            consumer.commit()
        except (CommitFailedError, RebalanceInProgressError):
            write("not committed")
    consumer.close(autocommit=False)


async def read_with_aiokafka(address: str, group_id: str, topic: str) -> None:
    """Read until SIGTERM."""
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener  # noqa: PLC0415
    from aiokafka.errors import CommitFailedError, IllegalStateError  # noqa: PLC0415

    consumer = AIOKafkaConsumer(**settings_for(address, group_id))

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        """Prints partitions that were assigned and revoked."""

        async def on_partitions_assigned(self, assigned: Any) -> None:
            say(assigned)

        async def on_partitions_revoked(self, revoked: Any) -> None:
            say(())

    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    while not stopping:
        for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
            for record in records:
                write("read", record.value.decode())
        try:
            await consumer.commit()
        except (CommitFailedError, IllegalStateError):
            write("not committed")
    await consumer.stop()


def main(library: str, address: str, group_id: str, topic: str) -> None:
    """Read until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    if library == "kafka-python":
        read_with_kafka_python(address, group_id, topic)
    else:
        asyncio.run(read_with_aiokafka(address, group_id, topic))


if __name__ == "__main__":
    main(*sys.argv[1:])
