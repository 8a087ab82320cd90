"""The records that a job with `--on-data-loss continue` never reads: which, and how many offsets.

They were removed from the topic (by retention, DeleteRecords or a lost disk) before the job came to
them. The job goes on behind them, so each such gap is counted and named once:

    position of the last committed batch ──┬─► Gap: partition, first and end of its offsets
    first and last offsets that are there ─┘

The position is looked at before the first batch and after each one. Records that go while a batch
is read are not seen here, so the number of offsets is a least one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.offsets import TopicPartition
from minibroker.pipeline.quantities import counted
from minibroker.pipeline.spark.progress import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.offsets import Offsets
    from minibroker.pipeline.spark.progress import Batch, Progress
    from minibroker.pipeline.spark.topic_identity import Place


class Gap(NamedTuple):
    """Offsets of a partition that are skipped."""

    partition: TopicPartition
    start: int
    end: int
    """The first offset that is there again; smaller than `start`: the topic has lost its tail."""

    @property
    def offsets(self) -> int:
        """Return how many offsets are skipped, 0 if nobody knows."""
        return max(0, self.end - self.start)

    def note(self) -> Note:
        """Return the sentence about the gap."""
        fields = {
            "skipped": str(self.partition),
            "from_offset": self.start,
            "to_offset": self.end,
            "skipped_offsets": self.offsets,
        }
        if self.end < self.start:
            return Note(
                f"{self.partition} was read up to offset {self.start} and ends at {self.end}: it "
                f"has lost its tail, and new records before offset {self.start} are not read",
                fields,
            )
        return Note(
            f"{self.partition}: the records from offset {self.start} to before {self.end} were "
            f"removed before they were read; {counted(self.offsets, 'offset')} skipped",
            fields,
        )


def gone_note(topic: str) -> Note:
    """Return the sentence about a topic that does not exist any more."""
    return Note(
        f"topic {topic!r} is gone: what it had behind the position of the job is not read",
        {"gone_topic": topic},
    )


class SkippedOffsets:
    """The gaps of one run; used by the driver alone."""

    def __init__(self) -> None:
        self.offsets = 0
        """Offsets of all gaps, at least."""
        self._ends: dict[TopicPartition, int] = {}
        """Partition → end of its last gap."""
        self._gone: set[str] = set()

    def find_gone(self, position: Offsets, names: Collection[str]) -> list[str]:
        """Return the topics of a position that do not exist and were not returned before."""
        gone = sorted({where.topic for where in position} - set(names) - self._gone)
        self._gone.update(gone)
        return gone

    def find(
        self,
        position: Offsets,
        starts: Mapping[str, Mapping[int, int]],
        ends: Mapping[str, Mapping[int, int]],
    ) -> list[Gap]:
        """Return the gaps in front of a position that were not returned before, sorted.

        Args:
            position: the next offset of each partition.
            starts: topic → partition → the first offset that is there.
            ends: the same for the end.
        """
        gaps = []
        for partition in sorted(position):
            at = position[partition]
            first = starts.get(partition.topic, {}).get(partition.partition, at)
            end = ends.get(partition.topic, {}).get(partition.partition, at)
            if end < at and self._ends.get(partition) != end:
                gaps.append(Gap(partition, at, end))
                self._ends[partition] = end
            elif first > (start := max(at, self._ends.get(partition, at))):
                gaps.append(Gap(partition, start, first))
                self._ends[partition] = first
        self.offsets += sum(gap.offsets for gap in gaps)
        return gaps


def noting_skips(
    kafka: Kafka,
    place: Place,
    skipped: SkippedOffsets,
    tell: Callable[[Note], None] | None,
    progress: Progress | None,
) -> Progress:
    """Tell the gaps in front of a query that does not run yet, and return a `Progress` for it.

    The `Progress` tells the gaps that come between its batches. Raises PipelineError.
    """
    say = tell or (lambda _: None)

    def look() -> None:
        position = job_directory.committed_progress_of(place.files, place.checkpoint)
        if not position:
            return
        there = preflight.ask(kafka)
        for topic in skipped.find_gone(position, there.partitions):
            say(gone_note(topic))
        names = sorted({where.topic for where in position} & set(there.partitions))
        starts = preflight.start_offsets(kafka, there, names)
        ends = preflight.end_offsets(kafka, there, names)
        for gap in skipped.find(position, starts, ends):
            say(gap.note())

    def note(batch: Batch) -> None:
        look()
        if progress is not None:
            progress(batch)

    look()
    return note
