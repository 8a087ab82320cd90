"""When the oldest record that a reader has not read was written: one record is read for each.

A look reads `READS_MAX` records at most, and waits `WAIT_S` at most; the rest come in later looks.
A reader that does not move costs nothing more, because the record is the same.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import confluent_kafka

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.kafka import options
from minibroker.pipeline.kafka.source.consumer import sampling_consumer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from confluent_kafka import Consumer, KafkaError

    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.kafka.reader_lag import PartitionLag, ReaderLag

READS_MAX: Final = 100
WAIT_S: Final = 2.0


class OldestUnread:
    """The times of the oldest unread records, from look to look."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._consumer: Consumer | None = None
        self._times: dict[tuple[TopicPartition, int], int] = {}

    def look(self, readers: Iterable[ReaderLag]) -> Mapping[PartitionLag, int]:
        """Return position with lag → time of its next record, in milliseconds since 1970.

        A position whose record is not known yet is left out.
        """
        waiting = {part: _key(part) for reader in readers for part in reader.partitions if part.lag}
        wanted = set(waiting.values())
        self._times = {key: at for key, at in self._times.items() if key in wanted}
        until_s, reads = time.monotonic() + WAIT_S, 0
        while positions := self._one_of_each(wanted, READS_MAX - reads):
            self._read(positions, until_s)
            if not self._times.keys() >= set(positions.items()):
                break  # time is over, or a record is not to be had
            reads += len(positions)
        return {part: self._times[key] for part, key in waiting.items() if key in self._times}

    def close(self) -> None:
        """Close the connections."""
        if self._consumer is not None:
            self._consumer.close()

    def _one_of_each(
        self, wanted: Iterable[tuple[TopicPartition, int]], count: int
    ) -> dict[TopicPartition, int]:
        """Return positions whose time is not known, one of each partition, `count` at most."""
        positions: dict[TopicPartition, int] = {}
        for where, offset in sorted(set(wanted) - self._times.keys()):
            if len(positions) < count:
                positions.setdefault(where, offset)
        return positions

    def _read(self, positions: Mapping[TopicPartition, int], until_s: float) -> None:
        """Note the time of the record at, or next after, each position, until a moment."""
        if self._consumer is None:
            topics = ",".join(sorted({where.topic for where in positions}))
            chosen = {**self._kafka.options(), "subscribe": topics}
            self._consumer = sampling_consumer(options.parse(chosen, streaming=False), _note)
        self._consumer.assign(
            [confluent_kafka.TopicPartition(*where, offset) for where, offset in positions.items()]
        )
        waiting = dict(positions)
        try:
            while waiting and (remaining_s := until_s - time.monotonic()) > 0:
                message = self._consumer.poll(remaining_s)
                if message is None:
                    return
                where = TopicPartition(str(message.topic()), int(message.partition() or 0))
                offset = waiting.pop(where, None)
                if offset is not None and message.error() is None:
                    self._times[where, offset] = message.timestamp()[1]
                if offset is not None:
                    # Else an answer, which has room for one large batch, may never be of another.
                    self._consumer.incremental_unassign([confluent_kafka.TopicPartition(*where)])
        finally:
            self._consumer.unassign()


def _key(part: PartitionLag) -> tuple[TopicPartition, int]:
    return TopicPartition(part.topic, part.partition), part.offset


def _note(error: KafkaError) -> None:
    """Leave an error to the questions about groups, which report it."""
