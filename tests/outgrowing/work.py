"""Clients that work while one side serves, a ledger of what was acknowledged, and its check.

Some live across the switches: they hold producer ids, sequences, an open transaction and places in
groups, and go on with them on the other side. Others are new in each phase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.outgrowing.nodes import Nodes
from tests.outgrowing.reading import WAIT_S, ReadRecord, read_to_ends, read_topic, values_of
from tests.outgrowing.view import GROUP
from tests.support.clients import CLIENTS, CODECS
from tests.support.java import KAFKA_44, compiled, run_java

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HOT, NUMBERS, PAID, ABANDONED, LIVING, LATEST = "hot", "numbers", "paid", "left", "living", "latest"
PARTITIONS = 3
COUNT = 60
KEYS = 7
LAST_OF_JAVA = 1
"""The phase until which the Java client takes part: it takes seconds to start."""
TRANSACTION_MS = 900_000
"""Longest time of a transaction that Kafka allows: longer than any switch."""


class Deliveries:
    """Outcomes that a producer reports. `count`: acknowledged records."""

    def __init__(self) -> None:
        self.count = 0
        self.errors: list[str] = []

    def take(self, error: object, _message: object) -> None:
        """Keep an outcome."""
        if error is None:
            self.count += 1
        else:
            self.errors.append(str(error))


class HotProducer:
    """An idempotent producer that lives across the switches, and sends while they happen."""

    def __init__(self, clients: Mapping[str, str]) -> None:
        self._settings = {**clients, "enable.idempotence": True, "linger.ms": 1}
        self._producer = Producer(self._settings)
        self._deliveries = Deliveries()
        self._count = 0

    def send(self, count: int = COUNT) -> None:
        """Send the next numbers, each to the partition of its rest; wait for nothing."""
        for number in range(self._count, self._count + count):
            self._producer.produce(
                HOT,
                str(number),
                partition=number % PARTITIONS,
                on_delivery=self._deliveries.take,
            )
            self._producer.poll(0)
        self._count += count

    def finish(self) -> None:
        """Wait until all that was sent is acknowledged. Raises AssertionError."""
        unsent = self._producer.flush(WAIT_S)
        assert not unsent, f"{unsent} records were not acknowledged"
        assert self._deliveries.errors == []
        assert self._deliveries.count == self._count

    def renew(self) -> None:
        """Let a new producer go on from here; nothing is on its way."""
        self._producer = Producer(self._settings)

    def check(self, clients: Mapping[str, str]) -> None:
        """Check that each number is there once, in order."""
        values = values_of(read_topic(clients, HOT))
        for partition in range(PARTITIONS):
            assert values[partition] == [str(n) for n in range(partition, self._count, PARTITIONS)]


class Transactions:
    """Transactions that are committed, aborted, left open by a client that goes, and kept open
    across a switch by one that stays.
    """

    def __init__(self, clients: Mapping[str, str], *, lives: bool) -> None:
        self._clients = clients
        self._lives = lives
        self._expected: dict[str, list[str]] = {PAID: [], ABANDONED: [], LIVING: []}
        self._aborted: dict[str, list[str]] = {PAID: [], ABANDONED: [], LIVING: []}
        self._open: list[str] = []
        self._living: Producer | None = None

    def _producer(self, transactional_id: str) -> Producer:
        producer = Producer(
            {
                **self._clients,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TRANSACTION_MS,
            }
        )
        producer.init_transactions(WAIT_S)
        return producer

    def work(self, phase: int) -> None:
        """Commit, abort, leave open; end the transaction that was begun on the other side."""
        producer = self._producer("payer")
        self._commit(producer, PAID, f"{phase}-paid", COUNT)
        self._abort(producer, PAID, f"{phase}-refused", COUNT)
        self._commit(producer, PAID, f"{phase}-again", COUNT)
        self._leave(phase)
        if self._lives:
            self._live_on(phase)

    def _send(self, producer: Producer, topic: str, name: str, count: int) -> list[str]:
        values = [f"{name}-{number}" for number in range(count)]
        for number, value in enumerate(values):
            producer.produce(topic, value, partition=number % PARTITIONS)
        assert producer.flush(WAIT_S) == 0
        return values

    def _commit(self, producer: Producer, topic: str, name: str, count: int) -> None:
        producer.begin_transaction()
        values = self._send(producer, topic, name, count)
        producer.commit_transaction(WAIT_S)
        self._expected[topic] += values

    def _abort(self, producer: Producer, topic: str, name: str, count: int) -> None:
        producer.begin_transaction()
        self._aborted[topic] += self._send(producer, topic, name, count)
        producer.abort_transaction(WAIT_S)

    def _leave(self, phase: int) -> None:
        """A new client of the same id aborts what the last one left open, and leaves more."""
        producer = self._producer("leaver")
        self._commit(producer, ABANDONED, f"{phase}-kept", PARTITIONS)
        producer.begin_transaction()
        self._aborted[ABANDONED] += self._send(producer, ABANDONED, f"{phase}-left", PARTITIONS)

    def _live_on(self, phase: int) -> None:
        """Commit the transaction that was begun in the last phase, with more records; begin the
        next one.
        """
        if self._living is None:
            self._living = self._producer("living")
        else:
            more = self._send(self._living, LIVING, f"{phase}-more", PARTITIONS)
            self._living.commit_transaction(WAIT_S)
            self._expected[LIVING] += self._open + more
        self._living.begin_transaction()
        self._open = self._send(self._living, LIVING, f"{phase}-open", PARTITIONS)

    def check(self) -> None:
        """Check that readers see what was committed, once, in order, and what was aborted only if
        they ask for it.
        """
        for topic, values in self._expected.items():
            values_in_topic = values_of(read_topic(self._clients, topic))
            assert sorted(value for part in values_in_topic.values() for value in part) == sorted(
                values
            )
            for partition, part in values_in_topic.items():
                assert part == [
                    value for value in values if int(value.split("-")[-1]) % PARTITIONS == partition
                ]
            everything = read_topic(self._clients, topic, is_committed=False)
            extra = self._aborted[topic] + (self._open if topic == LIVING else [])
            assert sorted(record.value for record in everything) == sorted(values + extra)


class GroupReader:
    """A group that reads the numbers, a part in each phase."""

    def __init__(self, clients: Mapping[str, str], protocol: str, *, lives: bool) -> None:
        """Start nothing yet.

        Args:
            clients: settings of clients.
            protocol: `classic` or `consumer`.
            lives: whether its member lives across the switches, else there is a new one each time.
        """
        self.group_id = f"{protocol}-{'living' if lives else 'new'}"
        self._settings = {
            **clients,
            "group.id": self.group_id,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
        if protocol == "classic":
            self._settings |= {"session.timeout.ms": "10000", "heartbeat.interval.ms": "300"}
        self._lives = lives
        self._consumer: Consumer | None = None
        self._values: list[str] = []

    def read(self, expected: set[str]) -> None:
        """Read on from where the group was, until it has all of these values, and commit. Raises
        AssertionError where a value came twice.
        """
        if self._consumer is None:
            self._consumer = Consumer(self._settings)
            self._consumer.subscribe([NUMBERS])
        values: list[str] = []
        missing = expected - set(self._values)
        read_to_ends(
            self._consumer,
            lambda record: values.append(record.value),
            lambda _ends: missing <= set(values),
        )
        assert sorted(values) == sorted(missing), f"{self.group_id} read again what it had read"
        self._values += values
        self._consumer.commit(asynchronous=False)
        if not self._lives:
            self._consumer.close()
            self._consumer = None

    def close(self) -> None:
        """Leave the group."""
        if self._consumer is not None:
            self._consumer.close()


class ShareGroup:
    """A share group of Apache Kafka, which minibroker keeps and does not serve."""

    group_id = "sharing"

    def __init__(self, clients: Mapping[str, str]) -> None:
        self._address = clients["bootstrap.servers"]
        self._values: set[str] = set()

    def read(self, expected: Iterable[str]) -> None:
        """Read what it has not read yet, each value once. Raises AssertionError."""
        with Nodes(self._address) as nodes:
            start_at_first = {
                "resource_type": GROUP,
                "resource_name": self.group_id,
                "configs": [
                    {
                        "name": "share.auto.offset.reset",
                        "config_operation": 0,
                        "value": "earliest",
                    }
                ],
            }
            answer = nodes.any("incremental_alter_configs", 1, resources=[start_at_first])
        assert not answer["responses"][0]["error_code"], answer
        missing = set(expected) - self._values
        words = (self._address, self.group_id, NUMBERS, str(len(missing)))
        output = run_java(
            KAFKA_44, "ShareMember", *words, classes=compiled("ShareMember"), with_errors=False
        )
        assert sorted(output.split()[1::2]) == sorted(missing)
        self._values |= missing


class Work:
    """All clients of a cluster."""

    def __init__(
        self, clients: Mapping[str, str], protocols: Iterable[str], *, lives: bool = True
    ) -> None:
        """Make the topics.

        Args:
            clients: settings for librdkafka; they are right on both sides.
            protocols: of groups, those that both sides have.
            lives: whether some clients live across the switches, else all are new in each phase.
        """
        self._clients = dict(clients)
        admin = AdminClient(dict(clients))
        replicas = -1
        topics = [NewTopic(name, PARTITIONS, replicas) for name in (HOT, NUMBERS)]
        topics += [NewTopic(name, PARTITIONS, replicas) for name in (PAID, ABANDONED, LIVING)]
        compaction = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        topics.append(NewTopic(LATEST, 1, replicas, config=compaction))
        for future in admin.create_topics(topics).values():
            future.result(WAIT_S)
        self.hot = HotProducer(clients)
        self._lives = lives
        self._transactions = Transactions(clients, lives=lives)
        self._groups = [
            GroupReader(clients, protocol, lives=is_living)
            for protocol in protocols
            for is_living in ([True, False] if lives else [False])
        ]
        self._shared = ShareGroup(clients)
        self._numbers: list[str] = []
        self._latest: dict[str, str] = {}
        self._of_libraries: dict[str, list[str]] = {}

    def work(self, phase: int) -> None:
        """Let every client work once, and end with what it began."""
        self.hot.send()
        self.hot.finish()
        if not self._lives:
            self.hot.renew()
        self._number(phase)
        self._transactions.work(phase)
        for group in self._groups:
            group.read(set(self._numbers))

    def _number(self, phase: int) -> None:
        deliveries = Deliveries()
        producer = Producer({**self._clients, "enable.idempotence": True})
        values = [f"{phase}-{number}" for number in range(COUNT)]
        for number, value in enumerate(values):
            key = str(number % KEYS)
            producer.produce(
                NUMBERS, value, partition=number % PARTITIONS, on_delivery=deliveries.take
            )
            producer.produce(LATEST, value, key, on_delivery=deliveries.take)
            self._latest[key] = value
        assert producer.flush(WAIT_S) == 0
        assert deliveries.errors == []
        self._numbers += values

    def use_libraries(self, phase: int) -> None:
        """Let each client library write and read a topic; needs a listener that asks nobody."""
        address = self._clients["bootstrap.servers"]
        for number, client in enumerate(CLIENTS):
            if client.needs_java and phase > LAST_OF_JAVA:
                continue
            topic = f"of-{client.name.partition(' ')[0].lower()}"
            codec = CODECS[(phase + number) % len(CODECS)]
            client.produce(address, topic, codec, f"{phase}-", COUNT)
            values = self._of_libraries.setdefault(topic, [])
            values += [f"{phase}-{n}" for n in range(COUNT)]
            assert client.consume(address, topic, len(values)) == values

    def share(self) -> None:
        """Let the share group read on; only Kafka from 4.2 on has it."""
        self._shared.read(self._numbers)

    def check(self) -> None:
        """Check that nothing is lost, doubled or out of order. Raises AssertionError."""
        self.hot.check(self._clients)
        self._transactions.check()
        numbers = values_of(read_topic(self._clients, NUMBERS))
        for partition in range(PARTITIONS):
            expected = [v for v in self._numbers if int(v.split("-")[1]) % PARTITIONS == partition]
            assert numbers[partition] == expected
        assert _last_values(read_topic(self._clients, LATEST)) == self._latest

    def close(self) -> None:
        """Let the clients go that live."""
        for group in self._groups:
            group.close()


def _last_values(records: Iterable[ReadRecord]) -> dict[str, Any]:
    return {record.key: record.value for record in records}
