"""Idempotent producers of several libraries that send numbered records, each in its own batch.

All have five batches in flight. `sender_of` runs NumberedRecords.java or go/numbered as a process,
or librdkafka in this one.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import Producer

from tests.support.build_files import BUILD, required
from tests.support.groups import JAVA_CLIENTS, java_options, missing_go
from tests.support.java import KAFKA_39, compiled, java_command

if TYPE_CHECKING:
    from pathlib import Path

    from confluent_kafka import KafkaError, Message

GO_CLIENT = BUILD / "numbered-client"
LIBRDKAFKA, FRANZ = "librdkafka", "franz-go"
WAIT_S = 120


class Sender(Protocol):
    """A producer; the values of its records are the numbers from 0 on."""

    outcomes: list[str]
    """`NUMBER at OFFSET` of an acknowledged record, else `NUMBER failed: ERROR`, as they came."""

    def send(self, count: int) -> None:
        """Send the next records, without waiting."""

    def wait(self) -> None:
        """Wait until each record that was sent has its outcome."""

    def close(self) -> None:
        """End the client."""


class SenderProcess:
    """A program that reads how many records to send and prints their outcomes."""

    def __init__(self, command: list[str], log_path: Path) -> None:
        self.outcomes: list[str] = []
        self._sent_count = 0
        self._log_path = log_path
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def send(self, count: int) -> None:
        """Send the next records, without waiting."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        self._sent_count += count

    def wait(self) -> None:
        """Wait for the outcomes.

        Raises:
            AssertionError: the program ended; carries the end of its log.
        """
        assert self._process.stdout is not None
        while len(self.outcomes) < self._sent_count:
            line = self._process.stdout.readline()
            assert line.endswith("\n"), f"the client ended\n{self._log_path.read_text()[-4000:]}"
            self.outcomes.append(line.rstrip("\n"))

    def close(self) -> None:
        """Kill the program."""
        self._process.kill()
        self._process.communicate()


class LibrdkafkaSender:
    """librdkafka in this process."""

    def __init__(self, address: str, topic: str) -> None:
        self.outcomes: list[str] = []
        self._topic = topic
        self._next = 0
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "linger.ms": 0,
                "batch.num.messages": 1,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
            }
        )

    def send(self, count: int) -> None:
        """Send the next records, without waiting."""
        for number in range(self._next, self._next + count):
            self._producer.produce(self._topic, b"%d" % number, on_delivery=self._note)
        self._next += count

    def _note(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        assert value is not None
        outcome = f"at {message.offset()}" if error is None else f"failed: {error}"
        self.outcomes.append(f"{value.decode()} {outcome}")

    def wait(self) -> None:
        """Wait for the outcomes."""
        assert self._producer.flush(WAIT_S) == 0

    def close(self) -> None:
        """Let the client end: this was its last reference."""
        del self._producer


def sender_of(client: str, address: str, topic: str, log_path: Path) -> Sender:
    """Start a sender.

    `client`: librdkafka, franz-go or one of JAVA_CLIENTS. Raises MissingError.
    """
    if client == LIBRDKAFKA:
        return LibrdkafkaSender(address, topic)
    if client == FRANZ:
        return SenderProcess([str(required(GO_CLIENT)), address, topic], log_path)
    command = java_command(
        JAVA_CLIENTS[client],
        "NumberedRecords",
        address,
        topic,
        options=java_options(),
        classes=compiled("NumberedRecords", KAFKA_39),
    )
    return SenderProcess(command, log_path)


def missing_sender(client: str) -> str | None:
    """Return why this client cannot run here, naming the package to install, or None."""
    return missing_go(GO_CLIENT) if client == FRANZ else None
