"""Clients with the requests of Kafka 0.8 to 0.10, each in a process of its own.

kafka-python 2.0.2 with its `api_version` set (from `make build/kafka-python-2.0.2/.done`: its own
code for message sets and their codecs) and kcat with `broker.version.fallback` (librdkafka's).
Both write `prefix0 … prefix(count-1)` in one codec and read a whole topic without a group.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Final, NamedTuple

from tests.support.build_files import BUILD, required

KAFKA_PYTHON = BUILD / "kafka-python-2.0.2"
CODECS: Final = ("none", "gzip", "snappy", "lz4")
SECONDS: Final = 60.0

_SCRIPT: Final = """
import sys
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

task, address, version, count, topics, *prefixes = sys.argv[1:]
version, count, topics = tuple(map(int, version.split("."))), int(count), topics.split(",")
for codec, prefix in (pair.split("=") for pair in prefixes):
    producer = KafkaProducer(
        bootstrap_servers=address,
        api_version=version,
        compression_type=None if codec == "none" else codec,
        linger_ms=20,
        acks="all",
    )
    values = [f"{prefix}{n}".encode() for n in range(count)]
    sent = [producer.send(topic, value, key=b"k") for topic in topics for value in values]
    for future in sent:
        future.get(30)
    producer.close()
if task == "consume":
    consumer = KafkaConsumer(
        bootstrap_servers=address, api_version=version, enable_auto_commit=False, group_id=None
    )
    partition = TopicPartition(topics[0], 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    found = 0
    while found < count:
        records = consumer.poll(30_000).get(partition)
        assert records, f"only {found} of {count} records came"
        for record in records:
            assert record.offset == found, f"offset {record.offset} came, expected {found}"
            print(record.value.decode())
            found += 1
    consumer.close()
"""


class OldClient(NamedTuple):
    """One client at the version of one broker; `version` as the client wants it written."""

    library: str
    version: str

    @property
    def missing(self) -> str | None:
        """Return why the client cannot run here, or None."""
        if self.library == "kcat" and shutil.which("kcat") is None:
            return "kcat is not installed (Debian: apt install kcat)"
        return None

    def produce(
        self, address: str, topics: list[str], prefixes: dict[str, str], count: int
    ) -> None:
        """Send `count` values with each codec's prefix to each topic; return once acknowledged."""
        if self.library != "kcat":
            pairs = [f"{codec}={prefix}" for codec, prefix in prefixes.items()]
            self._python("produce", address, count, ",".join(topics), *pairs)
            return
        for codec, prefix in prefixes.items():
            lines = "".join(f"{prefix}{n}\n" for n in range(count))
            for topic in topics:
                self._kcat("-P", "-b", address, "-t", topic, "-p", "0", "-z", codec, stdin=lines)

    def consume(self, address: str, topic: str, count: int) -> list[str]:
        """Return the first `count` values of partition 0."""
        if self.library != "kcat":
            return self._python("consume", address, count, topic).splitlines()
        options = ("-t", topic, "-p", "0", "-o", "beginning", "-c", str(count), "-q")
        return self._kcat("-C", "-b", address, *options).splitlines()

    def _python(self, task: str, address: str, count: int, *arguments: str) -> str:
        required(KAFKA_PYTHON / ".done")
        command = [sys.executable, "-c", _SCRIPT, task, address, self.version, str(count)]
        command += arguments
        return _run(command, "", {**os.environ, "PYTHONPATH": str(KAFKA_PYTHON)})

    def _kcat(self, *arguments: str, stdin: str = "") -> str:
        options = ("api.version.request=false", f"broker.version.fallback={self.version}")
        flags = [part for option in options for part in ("-X", option)]
        return _run(["kcat", *flags, *arguments], stdin, dict(os.environ))


def _run(command: list[str], stdin: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


OLD_CLIENTS = (
    OldClient("kafka-python", "0.8.2"),
    OldClient("kafka-python", "0.9"),
    OldClient("kafka-python", "0.10"),
    OldClient("kcat", "0.8.2.2"),
    OldClient("kcat", "0.9.0.1"),
)
