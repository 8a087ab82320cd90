"""Sizes of records, for limits in bytes: Kafka tells offsets, and no bytes.

Before each batch the driver reads a few records at the positions where the batch begins. So an
estimate is about the records that come next, and follows them when they grow. It costs some
milliseconds a batch, however many partitions there are.

    RecordSizes.measure(start, end) ─► RecordSizes.of(topic) ─► offsets.limit_bytes
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import confluent_kafka

from minibroker.pipeline.kafka.source.consumer import sampling_consumer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from confluent_kafka import Consumer, KafkaError, Message

    from minibroker.kafka.ids import TopicPartition
    from minibroker.pipeline.kafka.options import SourceOptions
    from minibroker.pipeline.offsets import Offsets

PARTITIONS_MAX: Final = 16
"""Partitions that are looked at before a batch."""
RECORDS_MAX: Final = 100
"""Records of one partition that are looked at."""
WAIT_S: Final = 2.0
"""Longest look before a batch; what has come until then counts."""
UNKNOWN_BYTES: Final = 1_000
"""Bytes of a record of which nothing is known."""


class RecordSizes:
    """The mean size of the records of each topic; used by the driver's process alone."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._consumer: Consumer | None = None
        self._means: dict[str, int] = {}

    def of(self, topic: str) -> int:
        """Return the bytes of a record of `topic`, about; at least 1.

        A topic without a sample is taken for the mean of the others.
        """
        found = self._means.get(topic)
        if found is None and self._means:
            found = sum(self._means.values()) // len(self._means)
        return UNKNOWN_BYTES if found is None else max(1, found)

    def measure(self, start: Offsets, end: Offsets, waited: Mapping[TopicPartition, int]) -> None:
        """Look at records from `start` on, of the partitions whose turn is next.

        Args:
            start: of every partition of `end`.
            end: partitions that end here have no records.
            waited: as of `offsets.limit_bytes`.

        Raises:
            PipelineError: the client cannot be made.
        """
        chosen = self._chosen(start, end, waited)
        if not chosen:
            return
        if self._consumer is None:
            self._consumer = sampling_consumer(self._options, _note)
        assigned = [
            confluent_kafka.TopicPartition(*partition, start[partition]) for partition in chosen
        ]
        self._consumer.assign(assigned)
        try:
            self._note_sizes(_sample(self._consumer, len(assigned)))
        finally:
            self._consumer.unassign()

    def _chosen(
        self, start: Offsets, end: Offsets, waited: Mapping[TopicPartition, int]
    ) -> list[TopicPartition]:
        """Return partitions with records: of unknown topics first, then those that waited longest,
        then those with most records.
        """
        waiting = [partition for partition in end if end[partition] > start[partition]]
        waiting.sort(
            key=lambda name: (
                name.topic in self._means,
                waited.get(name, -1),
                start[name] - end[name],
            )
        )
        first_of_topics = {name.topic: name for name in reversed(waiting)}
        ordered = [*first_of_topics.values(), *waiting]
        ordered.sort(key=lambda name: name.topic in self._means)
        return list(dict.fromkeys(ordered))[:PARTITIONS_MAX]

    def _note_sizes(self, records: Iterable[Message]) -> None:
        sums: dict[str, list[int]] = {}
        for record in records:
            topic = record.topic()
            assert topic is not None, "a record comes from a topic"
            sums.setdefault(topic, []).append(_size_of(record))
        for topic, sizes in sums.items():
            mean = -(-sum(sizes) // len(sizes))
            # Half of what was known stays: some large records in a sample are not all of them.
            self._means[topic] = (self._means.get(topic, mean) + mean + 1) // 2


def _sample(consumer: Consumer, partitions: int) -> list[Message]:
    """Return records from the positions of `consumer`, RECORDS_MAX of each partition or up to its
    end.

    An error of a partition ends it here: the task that reads the partition reports it. A partition
    that is over is not fetched any more: an answer has room for one large batch, and would always
    be of the same partition.
    """
    found: list[Message] = []
    counts: Counter[tuple[str | None, int | None]] = Counter()
    over: set[tuple[str | None, int | None]] = set()
    until_s = time.monotonic() + WAIT_S
    while len(over) < partitions:
        message = consumer.poll(max(0.0, until_s - time.monotonic()))
        if message is None:
            break
        partition = (message.topic(), message.partition())
        if message.error() is None and partition not in over:
            found.append(message)
            counts[partition] += 1
        is_over = message.error() is not None or counts[partition] >= RECORDS_MAX
        if is_over and partition not in over:
            over.add(partition)
            topic, number = partition
            if topic is not None and number is not None:  # an error may be of no partition
                consumer.incremental_unassign([confluent_kafka.TopicPartition(topic, number)])
    return found


def _size_of(record: Message) -> int:
    size = len(record.key() or b"") + len(record.value() or b"")
    headers: Any = record.headers()
    for name, value in headers or ():
        size += len(name) + len(value or b"")
    return size


def _note(error: KafkaError) -> None:
    """Leave an error to the tasks, which report it: a batch does not fail for an estimate."""
