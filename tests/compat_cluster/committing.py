"""A member of a consumer group that commits what it read, while brokers come and go."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

import confluent_kafka

if TYPE_CHECKING:
    from tests.fire.history import Read

POLL_S = 0.1
COMMIT_EVERY = 50


class CommittingReader:
    """A context manager around its thread, which alone owns the consumer."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "committing",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.errors: list[str] = []
        self.values: list[dict[int, int]] = [{} for _ in range(partitions)]
        """Partition → offset → value; written by the thread, read when it has ended."""
        self.wrong: list[str] = []
        """An offset that came twice with other values, or behind a later one."""
        self._next = [0] * partitions
        """Partition → the offset behind the last record."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ending.set()
        self._thread.join()

    def _run(self) -> None:
        self._consumer.subscribe([self._topic])
        uncommitted = 0
        while not self._is_ending.is_set():
            message = self._consumer.poll(POLL_S)
            if message is None:
                continue
            if (error := message.error()) is not None:
                self.errors.append(str(error))
                continue
            self._take(message)
            uncommitted += 1
            if uncommitted == COMMIT_EVERY:
                self._commit()
                uncommitted = 0
        self._consumer.close()

    def _take(self, message: confluent_kafka.Message) -> None:
        partition, offset, raw = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert isinstance(raw, bytes)
        value = int.from_bytes(raw, "big")
        first_value = self.values[partition].setdefault(offset, value)
        if first_value != value:
            self.wrong.append(f"offset {offset} of {partition} was {first_value} and is {value}")
        self._next[partition] = offset + 1

    def _commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as error:
            self.errors.append(str(error))

    def missing(self, reading: Read) -> list[str]:
        """Return what is in the topic in the end and was never given to this member.

        For the caller after the end of the thread.
        """
        faults = list(self.wrong)
        for partition, records in enumerate(reading):
            values = dict(records)
            upto = self._next[partition]
            read_values = self.values[partition]
            faults += [
                f"record {offset} of {partition} was not given to the consumer"
                for offset in values
                if offset < upto and offset not in read_values
            ]
            faults += [
                f"record {offset} of {partition} was given as {value}"
                for offset, value in read_values.items()
                if values.get(offset) != value
            ]
        return faults
