"""When the oldest record that a reader has not read was written: one record is read for each.

A look reads `READS_MAX` records at most, and waits `WAIT_S` at most; the rest come in later looks.
A reader that does not move costs nothing more, because the record is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.client.client import Client
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.kafka import options
from minibroker.pipeline.kafka.client_settings import connection_settings
from minibroker.pipeline.kafka.source.samples import sample
from minibroker.pipeline.offsets import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.kafka.reader_lag import PartitionLag, ReaderLag

READS_MAX: Final = 100


class OldestUnread:
    """The times of the oldest unread records, from look to look."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._times: dict[tuple[TopicPartition, int], int] = {}

    def look(self, readers: Iterable[ReaderLag]) -> Mapping[PartitionLag, int]:
        """Return position with lag → time of its next record, in milliseconds since 1970.

        A position whose record is not known yet is left out.

        Raises PipelineError: the settings of the client.
        """
        waiting = {
            part: OffsetRange(part.topic, part.partition, part.offset, part.end)
            for reader in readers
            for part in reader.partitions
            if part.lag
        }
        spans = {_key(span): span for span in waiting.values()}
        self._times = {key: at for key, at in self._times.items() if key in spans}
        reads = 0
        while positions := self._one_of_each(spans, READS_MAX - reads):
            self._read(positions)
            if not self._times.keys() >= {_key(span) for span in positions}:
                break  # time is over, or a record is not to be had
            reads += len(positions)
        return {
            part: self._times[_key(span)]
            for part, span in waiting.items()
            if _key(span) in self._times
        }

    def _one_of_each(
        self, spans: Mapping[tuple[TopicPartition, int], OffsetRange], count: int
    ) -> list[OffsetRange]:
        """Return ranges whose time is not known, one of each partition, `count` at most."""
        chosen: dict[TopicPartition, OffsetRange] = {}
        for key in sorted(spans.keys() - self._times.keys()):
            if len(chosen) < count:
                chosen.setdefault(key[0], spans[key])
        return list(chosen.values())

    def _read(self, spans: list[OffsetRange]) -> None:
        """Note the time of the first record in each range."""
        topics = ",".join(sorted({span.topic for span in spans}))
        chosen = options.parse({**self._kafka.options(), "subscribe": topics}, streaming=False)
        settings = connection_settings(chosen.settings)
        keys = dict(map(_key, spans))
        for span, (record,) in sample(chosen, settings, Client(settings), spans, 1):
            place = TopicPartition(span.topic, span.partition)
            self._times[place, keys[place]] = record.timestamp


def _key(span: OffsetRange) -> tuple[TopicPartition, int]:
    return TopicPartition(span.topic, span.partition), span.start
