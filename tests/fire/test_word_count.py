"""Kafka Streams' word count with exactly_once_v2, while broker and application are killed.

Every change of a count is a record of `counts`, so a reader of committed records must find 1, 2, 3
and so on for each word: a line counted twice, lost, or counted and forgotten would show.
"""

from __future__ import annotations

import random
import subprocess
import threading
from collections import Counter
from typing import TYPE_CHECKING

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.fire.plan import KILLS, SEED, SETTINGS
from tests.support import java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.broker import Minibroker

PARTITIONS = 4
LINES_A_KILL = 60
WORDS = ("all", "or", "nothing", "once", "and", "again")
WAIT_S = 240.0


class Application:
    """One JVM with Kafka Streams."""

    def __init__(self, address: str, directory: Path) -> None:
        command = java.java_command(
            java.STREAMS_39,
            "WordCount",
            *(address, str(directory / "state")),
            classes=java.compiled("WordCount", java.STREAMS_39),
        )
        self._running = threading.Event()
        with (directory / "streams.log").open("ab") as errors:
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
            if line == "RUNNING\n":
                self._running.set()

    def wait_until_running(self) -> None:
        assert self._running.wait(WAIT_S), "Kafka Streams did not begin to run"

    def kill(self) -> None:
        """Kill the JVM with -9, if it runs."""
        self._process.kill()
        self._process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


class Counts:
    """The committed records of `counts`: word → its counts in order."""

    def __init__(self, address: str) -> None:
        self.of_word: dict[str, list[int]] = {word: [] for word in WORDS}
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.assign(
            [confluent_kafka.TopicPartition("counts", index, 0) for index in range(PARTITIONS)]
        )

    def close(self) -> None:
        self._consumer.close()

    @property
    def total(self) -> int:
        return sum(map(len, self.of_word.values()))

    def read_until(self, total: int) -> None:
        """Read until this many changes were seen."""
        while self.total < total:
            message = self._consumer.poll(WAIT_S)
            assert message is not None, f"{self.total} of {total} changes in {WAIT_S} s"
            error = message.error()
            if error is None:
                word = message.key().decode()
                self.of_word[word].append(int(message.value()))
            else:
                assert error.retriable() or not error.fatal(), error


@pytest.fixture
def broker(new_broker: Callable[..., Minibroker]) -> Iterator[Minibroker]:
    node = new_broker(settings=SETTINGS)
    admin = AdminClient({"bootstrap.servers": node.address})
    topics = [NewTopic(name, PARTITIONS, 1) for name in ("lines", "counts")]
    for future in admin.create_topics(topics).values():
        future.result(WAIT_S)
    return node


@pytest.mark.java
@pytest.mark.timeout(600 + 120 * KILLS)
def test_kafka_streams_counts_exactly_once(broker: Minibroker, tmp_path: Path) -> None:
    dice = random.Random(SEED)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.address, "enable.idempotence": True, "linger.ms": 1}
    )
    expected: Counter[str] = Counter()
    application = Application(broker.address, tmp_path)
    counts = Counts(broker.address)
    try:
        application.wait_until_running()
        for kill in range(1, KILLS + 1):
            for _ in range(LINES_A_KILL):
                words = dice.choices(WORDS, k=dice.randint(1, 4))
                expected.update(words)
                producer.produce("lines", " ".join(words), partition=dice.randrange(PARTITIONS))
                producer.poll(0)
            counts.read_until(counts.total + dice.randint(1, LINES_A_KILL))
            broker.kill()
            if kill % 3 == 0:
                application.kill()
                application = Application(broker.address, tmp_path)
            broker.start()
            assert producer.flush(WAIT_S) == 0
        counts.read_until(expected.total())
    finally:
        counts.close()
        application.kill()
    for word in WORDS:
        assert counts.of_word[word] == list(range(1, expected[word] + 1)), word
