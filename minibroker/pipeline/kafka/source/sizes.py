"""Sizes of records, for limits in bytes: Kafka tells offsets, and no bytes.

Before each batch the driver reads a few records at the positions where the batch begins. So an
estimate is about the records that come next, and follows them when they grow. It costs some
milliseconds a batch, however many partitions there are.

    RecordSizes.measure(start, end) ─► RecordSizes.of(topic) ─► offsets.limit_bytes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.client.client import Client
from minibroker.pipeline.kafka.client_settings import connection_settings
from minibroker.pipeline.kafka.source.samples import sample
from minibroker.pipeline.offsets import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.kafka.ids import TopicPartition
    from minibroker.kafka.records.record import Record
    from minibroker.pipeline.kafka.options import SourceOptions
    from minibroker.pipeline.offsets import Offsets

PARTITIONS_MAX: Final = 16
"""Partitions that are looked at before a batch."""
RECORDS_MAX: Final = 100
"""Records of one partition that are looked at."""
UNKNOWN_BYTES: Final = 1_000
"""Bytes of a record of which nothing is known."""


class RecordSizes:
    """The mean size of the records of each topic; used by the driver's process alone."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._means: dict[str, int] = {}

    def of(self, topic: str) -> int:
        """Return the bytes of a record of `topic`, about; at least 1.

        A topic without a sample is taken for the mean of the others.
        """
        mean = self._means.get(topic)
        if mean is None and self._means:
            mean = sum(self._means.values()) // len(self._means)
        return UNKNOWN_BYTES if mean is None else max(1, mean)

    def measure(self, start: Offsets, end: Offsets, waited: Mapping[TopicPartition, int]) -> None:
        """Look at records from `start` on, of the partitions whose turn is next.

        Args:
            start: of every partition of `end`.
            end: partitions that end here have no records.
            waited: as of `offsets.limit_bytes`.

        Raises PipelineError: the settings of the client.
        """
        spans = [
            OffsetRange(*place, start[place], end[place])
            for place in self._chosen(start, end, waited)
        ]
        if not spans:
            return
        settings = connection_settings(self._options.settings)
        sums: dict[str, list[int]] = {}
        for span, records in sample(self._options, settings, Client(settings), spans, RECORDS_MAX):
            totals = sums.setdefault(span.topic, [0, 0])
            totals[0] += sum(map(_size_of, records))
            totals[1] += len(records)
        for topic, (size_bytes, count) in sums.items():
            mean = -(-size_bytes // count)
            # Half of what was known stays: some large records in a sample are not all of them.
            self._means[topic] = (self._means.get(topic, mean) + mean + 1) // 2

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


def _size_of(record: Record) -> int:
    size = len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name) + len(value or b"")
    return size
