"""Exactly once under fire: Java clients read, process and write while everything is killed.

Two writers fill a topic of 8 partitions in transactions, two movers carry what is committed to
another topic, offsets in the same transactions; one of each is Kafka's client 3.9.1, the other is
4.4.0. Meanwhile the broker is killed (-9) and started again after some random number of
transactions, and every now and then a client is. Then all clients stop, and the checker (`history`)
compares their lines with the topics.

`make fire` (MINIBROKER_FIRE_KILLS=50) does it at length.
"""

from __future__ import annotations

import random
import subprocess
import threading
from typing import TYPE_CHECKING

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.fire.history import VALUES_PER_WRITER, History, Read, check_movers, check_writers
from tests.fire.plan import KILLS, SEED, SETTINGS
from tests.support import java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.broker import Minibroker

PARTITIONS = 8
TRANSACTIONS_MIN, TRANSACTIONS_MAX = 3, 25
"""Transactions between two kills."""
CLIENT_KILL_EVERY = 3
WAIT_S = 240.0


class Client:
    """One JVM and its output."""

    def __init__(
        self, progress: threading.Condition, log: Path, jars: Path, *arguments: str
    ) -> None:
        self.history = History()
        self.committed = 0
        self.is_ready = False
        self._progress = progress
        classes = java.compiled("Fire", java.KAFKA_39)
        command = java.java_command(jars, "Fire", *arguments, classes=classes)
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith("\n"):
                return  # it was killed in the middle of a word
            with self._progress:
                self.history.add(line)
                self.committed += line.startswith("commit ")
                self.is_ready = self.is_ready or line == "ready\n"
                self._progress.notify_all()

    def kill(self) -> None:
        """Kill the JVM with -9."""
        self._process.kill()
        self._end()

    def stop(self) -> None:
        """Stop after the current transaction."""
        assert self._process.stdin is not None
        if self._process.poll() is None:
            self._process.stdin.write("stop\n")
            self._process.stdin.flush()
        self._process.wait(WAIT_S)
        self._end()

    def _end(self) -> None:
        self._process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Fire:
    """The clients, including the killed ones."""

    def __init__(self, broker: Minibroker, directory: Path) -> None:
        self.broker = broker
        self.progress = threading.Condition()
        self.directory = directory
        self.running: dict[str, Client] = {}
        self.writers: list[Client] = []
        self.movers: list[Client] = []

    def start_writer(self, name: str) -> None:
        """Start a writer; each writes values of its own, also a successor of the same name."""
        first = str((len(self.writers) + 1) * VALUES_PER_WRITER)
        self.writers.append(self._start(name, "write", "input", str(PARTITIONS), name, first))

    def start_mover(self, name: str) -> None:
        self.movers.append(self._start(name, "move", "input", "output", "movers", name))

    def _start(self, name: str, what: str, *arguments: str) -> Client:
        # The first of each has the first protocol of transactions, the second the second.
        jars = java.KAFKA_39 if name.endswith("1") else java.KAFKA_44
        log = self.directory / f"{name}.log"
        client = Client(self.progress, log, jars, what, self.broker.address, *arguments)
        self.running[name] = client
        return client

    def replace(self, name: str) -> None:
        """Kill a client and start its successor with the same transactional id."""
        self.running.pop(name).kill()
        if name.startswith("writer"):
            self.start_writer(name)
        else:
            self.start_mover(name)

    def wait(self, what: str, condition: Callable[[], bool]) -> None:
        with self.progress:
            met = self.progress.wait_for(condition, WAIT_S)
        errors = [c.history.errors[-1:] for c in self.running.values()]
        assert met, f"waited {WAIT_S} s for {what}; the clients' last errors: {errors}"

    def committed(self) -> int:
        return sum(client.committed for client in self.writers + self.movers)


@pytest.fixture
def fire(new_broker: Callable[..., Minibroker], tmp_path: Path) -> Iterator[Fire]:
    broker = new_broker(settings=SETTINGS)
    admin = AdminClient({"bootstrap.servers": broker.address})
    topics = [NewTopic(name, PARTITIONS, 1) for name in ("input", "output")]
    for made in admin.create_topics(topics).values():
        made.result(WAIT_S)
    made_fire = Fire(broker, tmp_path)
    yield made_fire
    for client in made_fire.running.values():
        client.kill()


@pytest.mark.java
@pytest.mark.timeout(600 + 120 * KILLS)
def test_transactions_are_exactly_once_under_kills(fire: Fire) -> None:
    dice = random.Random(SEED)
    for number in (1, 2):
        fire.start_writer(f"writer-{number}")
        fire.start_mover(f"mover-{number}")
    clients = fire.writers + fire.movers
    fire.wait("four clients", lambda: all(client.is_ready for client in clients))
    for kill in range(1, KILLS + 1):
        goal = fire.committed() + dice.randint(TRANSACTIONS_MIN, TRANSACTIONS_MAX)
        fire.wait(f"transactions before kill {kill}", lambda goal=goal: fire.committed() >= goal)
        fire.broker.kill()
        if kill % CLIENT_KILL_EVERY == 0:
            fire.replace(dice.choice(sorted(fire.running)))
        fire.broker.start()
    goal = fire.committed() + TRANSACTIONS_MAX
    fire.wait("transactions behind the last kill", lambda: fire.committed() >= goal)
    for name in ("writer-1", "writer-2"):
        fire.running.pop(name).stop()
    source = settled(fire.broker.address, "input")
    moved = sum(map(len, source))
    target: Read = []
    while sum(map(len, target)) < moved:
        before = fire.committed()
        target = settled(fire.broker.address, "output")
        if sum(map(len, target)) < moved:
            fire.wait("the movers", lambda before=before: fire.committed() > before)
    for name in ("mover-1", "mover-2"):
        fire.running.pop(name).stop()
    target = settled(fire.broker.address, "output")
    assert settled(fire.broker.address, "input") == source
    wrong = check_writers([client.history for client in fire.writers], source)
    wrong += check_movers([client.history for client in fire.movers], source, target)
    assert not wrong, "\n".join(wrong[:20])
    assert moved > KILLS * TRANSACTIONS_MIN


def settled(address: str, topic: str) -> Read:
    """Return every committed record, once no transaction is open in any partition."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "checker",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    found: Read = [[] for _ in range(PARTITIONS)]
    names = [confluent_kafka.TopicPartition(topic, index, 0) for index in range(PARTITIONS)]
    ended: set[int] = set()
    try:
        # For readers of everything: below it an open transaction holds us up until it times out.
        ends = {
            name.partition: consumer.get_watermark_offsets(name, WAIT_S, cached=False)[1]
            for name in names
        }
        consumer.assign(names)
        while len(ended) < PARTITIONS:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"{topic} is not read to its end: {ends}, {ended}"
            error = message.error()
            if error is None:
                value = int.from_bytes(message.value(), "big")
                found[message.partition()].append((message.offset(), value))
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                if message.offset() >= ends[message.partition()]:
                    ended.add(message.partition())
            elif not error.retriable():
                raise AssertionError(error)
    finally:
        consumer.close()
    return found
