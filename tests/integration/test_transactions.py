"""Transactions with real clients, with Kafka's tools, and handed over between brokers.

Fencing, all or nothing, and read-process-write through a crash (docs/behaviours.md).
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.dialogue import Dialogue
from tests.compat.transactional import Producer
from tests.support import java
from tests.support.broker import wait_until_acquainted
from tests.support.in_process import InProcessBroker
from tests.support.peers import KafkaPeer
from tests.support.transactions import DeafSender

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.testing import Broker
    from tests.support.broker import Minibroker
    from tests.support.peers import ZooKeeper

SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
WAIT_S = 180
PARTITIONS_OF_OWN = {"decided": 1}
"""Name of a producer → the partition of its records."""
SKIPPED_MARKERS = "Couldn't find leader endpoint for partitions"
"""Words that Kafka 3.9 logs where it takes a topic for deleted."""


def make_topics(address: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for creation in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
        creation.result(WAIT_S)


def read_committed(address: str, topic: str, count: int) -> list[str]:
    """Return the values that a reader of committed records gets up to the last stable offset.

    A transaction is over for its producer before the last marker of it is written, so the reader
    goes on until it has `count` values, at least, and stands at the end of both partitions.
    """
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    values: list[str] = []
    at_end: set[int] = set()
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in (0, 1)])
        while len(at_end) < 2 or len(values) < count:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"{len(values)} of {count} records of {topic}"
            error = message.error()
            if error is not None:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                at_end.add(message.partition())
                continue
            at_end.discard(message.partition())
            values.append(message.value().decode())
    finally:
        consumer.close()
    return values


def talk_to(broker: Minibroker | KafkaPeer) -> Dialogue:
    return Dialogue(broker.host, broker.port, scenario="t", api="end_txn", version=4)


# Clients.


@pytest.mark.java
@pytest.mark.parametrize("jars", [java.KAFKA_39, java.KAFKA_44], ids=lambda jars: jars.name)
def test_java_reads_processes_and_writes_exactly_once(
    jars: Path, new_broker: Callable[..., Minibroker]
) -> None:
    """The first protocol with the 3.9.1 client, the second with that of 4.4.0."""
    broker = new_broker(settings=SETTINGS)
    make_topics(broker.address, "input", "output")
    text = java.run_java(
        jars,
        "Transactions",
        *(broker.address, "input", "output", "movers", "300"),
        classes=java.compiled("Transactions"),
    )
    expected = [str(n) for n in range(300) if n // 10 % 3 != 2]
    assert f"committed {len(expected)}" in text
    assert "fenced ProducerFencedException" in text or "fenced InvalidProducerEpoch" in text
    assert f"moved {len(expected)}" in text
    for topic in ("input", "output"):
        values = read_committed(broker.address, topic, len(expected))
        assert sorted(values, key=int) == expected
        for parity in (0, 1):
            own = [int(value) for value in values if int(value) % 2 == parity]
            assert own == sorted(own)


@pytest.mark.kafka(config=SETTINGS)
def test_librdkafka_commits_and_aborts(kafka_broker: Broker) -> None:
    address = kafka_broker.bootstrap
    make_topics(address, "t")
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "transactional.id": "x"})
    producer.init_transactions(WAIT_S)
    expected = []
    for number in range(30):
        producer.begin_transaction()
        producer.produce("t", f"{number}", partition=number % 2)
        producer.flush(WAIT_S)
        if number % 3:
            producer.commit_transaction(WAIT_S)
            expected.append(f"{number}")
        else:
            producer.abort_transaction(WAIT_S)
    assert sorted(read_committed(address, "t", len(expected)), key=int) == expected


@pytest.mark.kafka(config=SETTINGS)
async def test_aiokafka_reads_processes_and_writes(kafka_broker: Broker) -> None:
    """aiokafka uses only the oldest versions of these requests."""
    address = kafka_broker.bootstrap
    make_topics(address, "input", "output")
    async with AIOKafkaProducer(bootstrap_servers=address) as plain:
        for number in range(40):
            await plain.send_and_wait("input", str(number).encode(), partition=number % 2)
    consumer = AIOKafkaConsumer(
        "input",
        bootstrap_servers=address,
        group_id="movers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    producer = AIOKafkaProducer(bootstrap_servers=address, transactional_id="mover")
    await consumer.start()
    await producer.start()
    moved = 0
    try:
        async with asyncio.timeout(WAIT_S):
            while moved < 40:
                batches = await consumer.getmany(timeout_ms=500, max_records=9)
                async with producer.transaction():
                    for partition, records in batches.items():
                        for record in records:
                            await producer.send(
                                "output", record.value, partition=partition.partition
                            )
                        moved += len(records)
                        await producer.send_offsets_to_transaction(
                            {partition: records[-1].offset + 1}, "movers"
                        )
        fencing = AIOKafkaProducer(bootstrap_servers=address, transactional_id="mover")
        await fencing.start()
        with pytest.raises(ProducerFenced):
            async with producer.transaction():
                await producer.send_and_wait("output", b"never read", partition=0)
        await fencing.stop()
    finally:
        await consumer.stop()
        await producer.stop()
    assert sorted(read_committed(address, "output", 40), key=int) == [
        str(number) for number in range(40)
    ]


def test_two_phases_through_a_kill(new_broker: Callable[..., Minibroker]) -> None:
    """As in Flink's sink: pre-commit, kill of the broker, commit with the same id and epoch."""
    broker = new_broker(settings=SETTINGS)
    make_topics(broker.address, "t")
    talk = talk_to(broker)
    first, second = Producer(talk, "one").begin_session(), Producer(talk, "two").begin_session()
    for producer in (first, second):
        producer.add("t", 0, 1)
        for index in (0, 1):
            producer.produce("t", producer.transactional_id.encode(), partition=index)
    talk.close()
    broker.kill()
    broker.start()
    first.wait_until_loaded()
    assert first.described()["transaction_state"] == "Ongoing"
    first.end(committed=True)
    second.wait_until_loaded()
    second.end(committed=False)
    talk.close()
    assert read_committed(broker.address, "t", 2) == [first.transactional_id] * 2


@pytest.mark.java
def test_two_brokers_share_the_transactions(
    zookeeper: ZooKeeper, new_broker: Callable[..., Minibroker]
) -> None:
    """Coordinators, leaders and groups are on two brokers, which send each other requests
    (KIP-890).
    """
    connect = f"{zookeeper.connect}/two-brokers"
    brokers = [
        new_broker(
            f"data-{broker_id}",
            zookeeper=connect,
            settings={**SETTINGS, "broker.id": str(broker_id)},
        )
        for broker_id in (0, 1)
    ]
    wait_until_acquainted(brokers)
    address = ",".join(broker.address for broker in brokers)
    make_topics(address, "input", "output")
    for broker in brokers:
        # Who did not make the topics hears of them from ZooKeeper, a moment later.
        admin = AdminClient({"bootstrap.servers": broker.address})
        deadline = time.monotonic() + WAIT_S
        while "output" not in (topics := admin.list_topics(timeout=WAIT_S).topics):
            assert time.monotonic() < deadline, f"{broker.address} does not know the topics"
    leaders = {partition.leader for partition in topics["output"].partitions.values()}
    assert leaders == {0, 1}
    text = java.run_java(
        java.KAFKA_44,
        "Transactions",
        *(address, "input", "output", "movers", "150"),
        classes=java.compiled("Transactions"),
    )
    expected = [str(n) for n in range(150) if n // 10 % 3 != 2]
    assert f"moved {len(expected)}" in text
    assert sorted(read_committed(address, "output", len(expected)), key=int) == expected


# Tools.


@pytest.mark.java
def test_hanging_transactions_are_found_and_aborted(new_broker: Callable[..., Minibroker]) -> None:
    """An old client left records of a transaction that the coordinator does not know."""
    broker = new_broker(settings={**SETTINGS, "transaction.partition.verification.enable": "false"})
    make_topics(broker.address, "t")
    talk = talk_to(broker)
    producer = Producer(talk).begin_session()
    producer.produce("t", b"hangs")
    talk.close()
    tool = "org.apache.kafka.tools.TransactionsCommand"
    server = ("--bootstrap-server", broker.address)

    def run(*arguments: str) -> str:
        return java.run_java(java.TOOLS_43, tool, *server, *arguments)

    hanging = run("find-hanging", "--broker-id", "0")
    assert re.search(rf"t\s+0\s+{producer.producer_id}\s+0\s+-1\s+0\s", hanging), hanging
    run("abort", "--topic", "t", "--partition", "0", "--start-offset", "0")
    topics = [{"name": "t", "partition_indexes": [0]}]
    partition = talk.quietly("describe_producers", 0, topics=topics)["topics"][0]["partitions"][0]
    assert [producer["current_txn_start_offset"] for producer in partition["active_producers"]] == [
        -1
    ]
    talk.close()
    assert read_committed(broker.address, "t", 0) == []


def dumped_states(log_dir: Path) -> dict[str, str]:
    """Return transactional id → the last state that DumpLogSegments reads in our journal."""
    files = [str(path) for path in sorted(log_dir.glob("__transaction_state-*/*.log"))]
    text = java.run_java(
        java.KAFKA_39,
        "kafka.tools.DumpLogSegments",
        "--files",
        ",".join(files),
        "--transaction-log-decoder",
    )
    states = re.findall(r"transactionalId=(\S+) payload: \S*?state=(\w+)", text)
    assert states, text
    return dict(states)


# Handed over.


def hang_up(producers: dict[str, Producer]) -> None:
    for producer in producers.values():
        producer.talk.close()


def wait_until_served(broker: KafkaPeer | Minibroker, producers: list[Producer]) -> None:
    """Wait until the broker coordinates the producers and knows the leaders of their topic.

    Kafka takes a topic that it does not know yet for a deleted one, and writes no markers to it.
    """
    for producer in producers:
        producer.talk = talk_to(broker)
        producer.wait_until_loaded()
        producer.talk.wait_for_topic("t", 2)


@pytest.mark.java
async def test_kafka_ends_what_minibroker_began_and_back(
    zookeeper: ZooKeeper,
    new_broker: Callable[..., Minibroker],
    new_kafka: Callable[[str, Path], KafkaPeer],
    tmp_path: Path,
) -> None:
    """Open transactions are committed and aborted by the next broker, decided ones completed.

    Kafka 3.9 completes a decided one at its start. If it does not know the topic yet, it takes it
    for deleted, says so in its log and writes no marker. So that record has a partition of its own.
    """
    chroot = "transactions"
    connect = f"{zookeeper.connect}/{chroot}"
    broker = new_broker(zookeeper=connect, settings=SETTINGS)
    make_topics(broker.address, "t")
    names = ("committed", "left", "open", "decided")
    producers = await asyncio.to_thread(_begin_all, broker, names)
    await asyncio.to_thread(producers["committed"].end, True)
    hang_up(producers)
    broker.stop()
    await _decide_without_markers(connect, broker.data_dir, producers["decided"])
    states = dumped_states(broker.data_dir)
    assert {name: states[producer.transactional_id] for name, producer in producers.items()} == {
        "committed": "CompleteCommit",
        "open": "Ongoing",
        "left": "Ongoing",
        "decided": "PrepareCommit",
    }

    def with_kafka() -> bool:
        """Return whether Kafka has written the marker of the decided one."""
        kafka = new_kafka(chroot, broker.data_dir)
        wait_until_served(kafka, list(producers.values()))
        producers["open"].end(committed=True)
        producers["decided"].settle()
        assert producers["decided"].described()["transaction_state"] == "CompleteCommit"
        is_marked = SKIPPED_MARKERS not in (kafka.directory / "kafka.log").read_text()

        def assert_readable(*names: str) -> None:
            readable = [*names, "decided"] if is_marked else names
            values = read_committed(kafka.address, "t", len(readable))
            assert sorted(values) == sorted(producers[name].transactional_id for name in readable)

        assert_readable("committed")
        producers["left"].end(committed=False)
        assert_readable("committed", "open")
        more = _begin_all(kafka, ("kafkas",))
        producers.update(more)
        hang_up(producers)
        kafka.stop()
        return is_marked

    is_marked = await asyncio.to_thread(with_kafka)
    broker.start()
    kafkas = producers["kafkas"]
    await asyncio.to_thread(wait_until_served, broker, [kafkas])
    await asyncio.to_thread(kafkas.end, True)
    kafkas.talk.close()
    values = await asyncio.to_thread(read_committed, broker.address, "t", 3 + is_marked)
    assert kafkas.transactional_id in values
    assert producers["left"].transactional_id not in values
    broker.stop()


def _begin_all(broker: Minibroker | KafkaPeer, names: tuple[str, ...]) -> dict[str, Producer]:
    """Return a producer with an open transaction of one record for each name."""
    producers = {}
    for name in names:
        producer = producers[name] = Producer(talk_to(broker), name).begin_session()
        partition = PARTITIONS_OF_OWN.get(name, 0)
        producer.add("t", partition)
        producer.produce("t", producer.transactional_id.encode(), partition=partition)
    return producers


async def _decide_without_markers(connect: str, data_dir: Path, producer: Producer) -> None:
    """Write PrepareCommit into the journal and stop the broker before the first marker."""
    settings = {**SETTINGS, "zookeeper.connect": connect, "log.dirs": str(data_dir)}
    async with InProcessBroker(data_dir, settings) as running:
        coordinator = running.broker.services.transactions
        coordinator._sender = DeafSender()  # type: ignore[assignment]
        producer.talk = Dialogue(*running.address, scenario="t", api="end_txn", version=4)
        await asyncio.to_thread(producer.wait_until_loaded)
        owner: Any = producer.owner
        answer = await asyncio.to_thread(
            lambda: producer.talk.quietly("end_txn", 4, committed=True, **owner)
        )
        assert answer["error_code"] == 0, answer
        producer.talk.close()


@pytest.fixture
def kafka_settings() -> dict[str, str]:
    """Return settings for `new_kafka`."""
    return SETTINGS
