"""A client of the exactly-once tests on librdkafka: the roles, arguments and lines of Fire.java.

write BOOTSTRAP TOPIC PARTITIONS NAME FIRST, send with the same, or
move BOOTSTRAP INPUT OUTPUT GROUP NAME.

librdkafka's `send_offsets_to_transaction` does not keep its time limit: it may wait forever for a
group coordinator that has left the cluster (confluentinc/librdkafka, issues 5456 and 5511). So a
mover does what an operator does with a process that does nothing any more: it starts again.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import threading
import zlib
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

WAIT_S = 15.0
COMMIT_S = 30.0
RECORDS = 50
"""Records that a mover carries in one transaction."""
STUCK_S = 60.0
"""A call with a limit of WAIT_S that takes so long does not come back."""
FIRST_NUMBER = "FIRE_FIRST_NUMBER"
"""The variable with the number that a client counts its transactions from."""
IN_HAND = 10
"""Records that a sender sends before it waits for their acknowledgements."""


def say(line: str) -> None:
    """Print one line at once."""
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


class Client:
    """One client in one role, until the line "stop" comes."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._stopping = threading.Event()
        self._number = int(os.environ.get(FIRST_NUMBER, "0"))
        self._is_ready = False
        threading.Thread(target=self._wait_for_stop, daemon=True).start()

    def _wait_for_stop(self) -> None:
        for line in sys.stdin:
            if line == "stop\n":
                break
        self._stopping.set()

    def _ready(self) -> None:
        if not self._is_ready:
            self._is_ready = True
            say("ready")

    def _producer(self, name: str) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "transactional.id": name,
                "transaction.timeout.ms": 5000,
                "delivery.timeout.ms": 5000,
                "linger.ms": 2,
                "reconnect.backoff.max.ms": 200,
            }
        )
        producer.init_transactions(WAIT_S)
        return producer

    def _end(self, producer: Producer, records: str, is_commit: bool) -> bool:
        """End a transaction; return whether it was committed for sure."""
        self._number += 1
        own = self._number
        say(f"txn {own}{records}")
        if not is_commit:
            # Without a commit it cannot be there, however the request ends.
            say(f"abort {own}")
            producer.abort_transaction(COMMIT_S)
            return False
        try:
            producer.commit_transaction(COMMIT_S)
        except KafkaException:
            say(f"unknown {own}")
            raise
        say(f"commit {own}")
        return True

    def write(self, topic: str, partitions: str, name: str, first: str) -> None:
        """Write transactions of up to 20 values; every fifth is aborted."""
        dice = random.Random(int(first))
        value = int(first)
        while not self._stopping.is_set():
            try:
                producer = self._producer(name)
                while not self._stopping.is_set():
                    self._ready()
                    producer.begin_transaction()
                    records = ""
                    for _ in range(dice.randint(1, 20)):
                        partition = dice.randrange(int(partitions))
                        producer.produce(topic, value.to_bytes(8, "big"), partition=partition)
                        records += f" {partition}:{value}"
                        value += 1
                    self._end(producer, records, dice.randrange(5) > 0)
            except KafkaException as error:
                say(f"error {error}")

    def send(self, topic: str, partitions: str, _name: str, first: str) -> None:
        """Send values with an idempotent producer; each is a transaction of its own in the lines.

        It never gives up a record, so none may lack, come twice or out of order.
        """
        dice = random.Random(int(first))
        value = int(first)
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "delivery.timeout.ms": 600_000,
                "linger.ms": 2,
                "reconnect.backoff.max.ms": 200,
            }
        )

        def note_result(number: int, error: KafkaError | None) -> None:
            if error is None:
                say(f"commit {number}")
            else:
                say(f"unknown {number}")
                say(f"error {error}")

        while not self._stopping.is_set():
            self._ready()
            for _ in range(IN_HAND):
                self._number += 1
                partition = dice.randrange(int(partitions))
                say(f"txn {self._number} {partition}:{value}")
                producer.produce(
                    topic,
                    value.to_bytes(8, "big"),
                    partition=partition,
                    on_delivery=lambda error, _, own=self._number: note_result(own, error),  # type: ignore[misc]
                )
                value += 1
            producer.flush()

    def move(self, source: str, target: str, group: str, name: str) -> None:
        """Carry what is committed from `source` to `target`, offsets in the same transactions."""
        dice = random.Random(zlib.crc32(name.encode()))
        while not self._stopping.is_set():
            consumer = self._consumer(group)
            try:
                producer = self._producer(name)
                records: list[Message] = []
                # What was read of partitions that are another member's now is for that member.
                consumer.subscribe([source], on_revoke=lambda _member, _partitions: records.clear())  # noqa: B023
                while not self._stopping.is_set():
                    self._read(consumer, records)
                    self._ready()
                    if records:
                        is_commit = dice.randrange(5) > 0
                        self._move_some(consumer, producer, records, target, is_commit)
                        records.clear()
            except KafkaException as error:
                say(f"error {error}")
            finally:
                consumer.close()

    def _start_again(self) -> None:
        """Become a new process, which goes on with the same name."""
        faulthandler.dump_traceback(all_threads=True)
        say("error librdkafka is stuck, the client starts again")
        if self._stopping.is_set():
            say("stopped")
            os._exit(0)
        os.environ[FIRST_NUMBER] = str(self._number)
        os.execv(sys.executable, [sys.executable, "-m", __spec__.name, *sys.argv[1:]])

    def _read(self, consumer: Consumer, records: list[Message]) -> None:
        """Add up to RECORDS records to `records`, none after a tenth of a second without one."""
        message = consumer.poll(0.1)
        while message is not None:
            error = message.error()
            if error is None:
                records.append(message)
            elif not error.retriable():
                raise KafkaException(error)
            message = consumer.poll(0) if len(records) < RECORDS else None

    def _consumer(self, group: str) -> Consumer:
        settings: dict[str, Any] = {
            "bootstrap.servers": self._bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "reconnect.backoff.max.ms": 200,
            # What Kafka's client has too, so both may be members of one group.
            "partition.assignment.strategy": "range",
        }
        return Consumer(settings)

    def _move_some(
        self,
        consumer: Consumer,
        producer: Producer,
        records: list[Message],
        target: str,
        is_commit: bool,
    ) -> None:
        first: dict[tuple[str, int], int] = {}
        following: dict[tuple[str, int], int] = {}
        moves, polled = "", "poll"
        producer.begin_transaction()
        for record in records:
            topic, partition, offset = record.topic(), record.partition(), record.offset()
            raw = record.value()
            assert topic is not None
            assert partition is not None
            assert offset is not None
            assert isinstance(raw, bytes)
            value = int.from_bytes(raw, "big")
            first.setdefault((topic, partition), offset)
            following[topic, partition] = offset + 1
            producer.produce(target, raw, partition=partition)
            moves += f" {partition}:{value}"
            polled += f" {partition}:{offset}:{value}"
        say(polled)
        offsets = [TopicPartition(*at, offset) for at, offset in following.items()]
        metadata = consumer.consumer_group_metadata()
        watch = threading.Timer(STUCK_S, self._start_again)
        watch.start()
        try:
            producer.send_offsets_to_transaction(offsets, metadata, WAIT_S)
        finally:
            watch.cancel()
        if not self._end(producer, moves, is_commit):
            for at, offset in first.items():
                consumer.seek(TopicPartition(*at, offset))


def main(role: str, bootstrap: str, *arguments: str) -> None:
    """Play one role until "stop"."""
    # The test asks a client that does nothing any more where it stands.
    faulthandler.register(signal.SIGQUIT, all_threads=True)
    client = Client(bootstrap)
    {"write": client.write, "send": client.send, "move": client.move}[role](*arguments)
    say("stopped")


if __name__ == "__main__":
    main(*sys.argv[1:])
