"""`spark.readStream.format("minibroker")`: batch after batch, each from where the last ended.

Spark keeps the offsets in its checkpoint as the connector's JSON, so that either source can go on
where the other stopped. This object lives in one Python process beside the driver as long as the
query; the tasks get only ranges.

    initialOffset ─┐
                   ├─► latestOffset(start, limit) ──► partitions(start, end) ──► read, in tasks
    checkpoint ────┘        frozen by Trigger.AvailableNow
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline import offsets
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import options
from minibroker.pipeline.kafka.source.batch import RangePartition, tasks_of
from minibroker.pipeline.kafka.source.sizes import RecordSizes
from minibroker.pipeline.kafka.source.topics import TopicOffsets
from minibroker.pipeline.offsets import LATEST, Offsets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit

Plain = dict[str, dict[str, int]]
"""Offsets as Spark carries them between driver, checkpoint and this process."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One streaming query's view of its topics."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._options = options.parse(settings, streaming=True)
        self._topics_or_none: TopicOffsets | None = None
        self._frozen: Offsets | None = None
        self._newest_ends: Offsets = {}
        self._first_offsets: Offsets = {}
        """First offsets of partitions that appeared while the query runs."""
        self._ids = {
            topic: topic_id for topic, topic_id in self._options.topic_ids.items() if topic_id
        }
        """Topic → id that it had when this query first saw it."""
        self._last_batch_s = time.monotonic()
        self._reached_end_s: float | None = None
        """Start of the last batch if that took all there was, None if more waits."""
        self._sizes_or_none: RecordSizes | None = None
        self._batches = 0
        self._waited: dict[TopicPartition, int] = {}
        """Partition → number of the batch of this run that it was last in, for limits in bytes."""

    @property
    def _topics(self) -> TopicOffsets:
        """Return the client, made at the first call: tasks hold this object too, and need none."""
        if self._topics_or_none is None:
            self._topics_or_none = TopicOffsets(self._options)
        return self._topics_or_none

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for the tasks: options without the client."""
        return {**self.__dict__, "_topics_or_none": None, "_sizes_or_none": None, "_waited": {}}

    # Where to begin.

    def initialOffset(self) -> dict:  # type: ignore[type-arg]  # noqa: N802  Spark's name
        """Return the first offsets of a query without a checkpoint. Raises PipelineError."""
        source = self._options
        return offsets.to_plain(
            self._topics.at(
                source.start,
                self._topics.partitions(),
                side="starting",
                where_none=LATEST if source.latest_when_no_timestamp else 0,
            )
        )

    # How far to go.

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        """Return the limit of the options, which Spark passes to `latestOffset`."""
        if self._options.max_offsets_per_trigger:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        if self._options.max_bytes_per_trigger:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict, limit: ReadLimit) -> dict:  # type: ignore[type-arg]  # noqa: N802
        """Return the end of the next batch, or `start` itself for no batch.

        A trigger that runs once passes ReadAllAvailable, which ignores the limits of the options,
        as Spark defines it.

        Raises:
            PipelineError: a topic is gone or its end went back, and `failOnDataLoss` is on.
        """
        if self._pauses():
            return start
        positions = offsets.from_plain(start, origin="the position of the stream")
        end = self._frozen
        if end is None:
            end = self._ends(positions)
        self._note_new(positions, end)
        self._check_lost(positions, end)
        froms = {
            partition: positions.get(partition, self._first_offsets.get(partition, 0))
            for partition in end
        }
        batch_end = end
        if not isinstance(limit, ReadAllAvailable):
            waiting = sum(end[partition] - froms[partition] for partition in end)
            if self._waits_for_more(waiting):
                return start
            batch_end = self._limited(froms, end)
        self._last_batch_s = time.monotonic()
        if batch_end != froms:
            self._reached_end_s = self._last_batch_s if batch_end == end else None
        return offsets.to_plain(batch_end)

    def _limited(self, froms: Offsets, end: Offsets) -> Offsets:
        """Return `end` within the limits of a batch."""
        if self._options.max_bytes_per_trigger:
            end = self._limited_in_bytes(froms, end)
        if self._options.max_offsets_per_trigger:
            end = offsets.limit_rows(froms, end, self._options.max_offsets_per_trigger)
        return end

    def _limited_in_bytes(self, froms: Offsets, end: Offsets) -> Offsets:
        """Return `end` within `maxBytesPerTrigger`, by the size of the records that come next."""
        if self._sizes_or_none is None:
            self._sizes_or_none = RecordSizes(self._options)
        sizes = self._sizes_or_none
        sizes.measure(froms, end, self._waited)
        batch_end = offsets.limit_bytes(
            froms, end, self._options.max_bytes_per_trigger, sizes.of, self._waited
        )
        self._batches += 1
        for partition, offset in batch_end.items():
            if offset > froms[partition]:
                self._waited[partition] = self._batches
        return batch_end

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Fix the ends of the query to the ends of this moment."""
        self._frozen = self._ends({})

    def reportLatestOffset(self) -> dict | None:  # type: ignore[type-arg]  # noqa: N802
        """Return the last known ends of the partitions:

        Spark's progress computes the lag from them.
        """
        return offsets.to_plain(self._newest_ends) if self._newest_ends else None

    def _ends(self, last_ends: Mapping[TopicPartition, int]) -> Offsets:
        partitions = self._topics.partitions(
            missing_allowed=not self._options.fail_on_data_loss, patient=True
        )
        self._check_recreated()
        ends = self._topics.latest(partitions, last_ends=last_ends)
        self._newest_ends = ends
        return dict(ends)

    def _check_recreated(self) -> None:
        """Raise PipelineError if a topic was made anew: its first records would be skipped.

        A topic whose id the options name has to be that one, also if records may be lost.
        """
        for topic, topic_id in self._topics.ids.items():
            if self._ids.setdefault(topic, topic_id) == topic_id:
                continue
            sentence = (
                f"topic {topic!r} was made anew since the stream began: the records before the "
                "position of the stream would be skipped"
            )
            if topic in self._options.topic_ids:
                raise PipelineError(f"{sentence}; give the same command again, which says more")
            self._ids[topic] = topic_id
            self._lost(sentence)

    def _note_new(self, positions: Offsets, end: Offsets) -> None:
        """Record partitions that appeared: they are read from their beginning."""
        new = [
            partition
            for partition in end
            if partition not in positions and partition not in self._first_offsets
        ]
        if not new:
            return
        starts = self._topics.earliest(new)
        for partition in new:
            if starts[partition] > 0:
                self._lost(
                    f"{partition} came since the stream began, and its first records are gone: it "
                    f"starts at offset {starts[partition]}"
                )
        self._first_offsets |= starts

    def _check_lost(self, positions: Offsets, end: Offsets) -> None:
        missing = [
            partition for partition in positions if partition not in end and self._frozen is None
        ]
        if missing:
            self._lost(f"{', '.join(map(str, missing))} of the stream's position is gone")
        for partition, offset in positions.items():
            if offset > end.get(partition, offset):
                self._lost(
                    f"the end of {partition} went back from offset {offset} to {end[partition]}:"
                    " the topic was made anew or has lost its tail"
                )

    def _lost(self, sentence: str) -> None:
        if self._options.fail_on_data_loss:
            raise PipelineError(
                f"{sentence}; start anew with another checkpoint, or set failOnDataLoss=false to "
                "go on with what there is"
            )

    def _pauses(self) -> bool:
        """Return whether `batchPause` delays the next batch; while more waits nothing does."""
        if self._frozen is not None or self._reached_end_s is None:
            return False
        return (time.monotonic() - self._reached_end_s) * 1000 < self._options.batch_pause_ms

    def _waits_for_more(self, waiting: int) -> bool:
        """Return whether `minOffsetsPerTrigger` delays the batch, for maxTriggerDelay at most."""
        if self._frozen is not None or waiting >= self._options.min_offsets_per_trigger:
            return False
        held_ms = (time.monotonic() - self._last_batch_s) * 1000
        return held_ms < self._options.max_trigger_delay_ms

    # The batch.

    def partitions(self, start: dict, end: dict) -> list[InputPartition]:  # type: ignore[type-arg]
        """Return the tasks of one batch, which may be a batch from before a restart.

        Raises:
            PipelineError: see `latestOffset`.
        """
        positions = offsets.from_plain(start, origin="the start of the batch")
        until = offsets.from_plain(end, origin="the end of the batch")
        self._note_new(positions, until)
        missing = [partition for partition in positions if partition not in until]
        if missing:
            self._lost(f"{', '.join(map(str, missing))} of the stream's position is gone")
        froms = {
            partition: positions.get(partition, self._first_offsets.get(partition, 0))
            for partition in until
        }
        ranges = offsets.ranges_between(froms, until, self._lost)
        return [RangePartition(group) for group in tasks_of(self._options, ranges)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read the ranges in the task, or return themselves. Raises PipelineError."""
        if self._options.emits_ranges:
            return iter([partition.rows])
        # Spark starts a process for each query, to plan it: that one reads no record.
        from minibroker.pipeline.kafka.source.reader import read_ranges  # noqa: PLC0415

        return read_ranges(self._options, partition.ranges)
