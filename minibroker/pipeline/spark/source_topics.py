"""The topics that a query reads: their ids, and records that are removed before they are read.

A topic made anew has the same name only. A checkpoint has offsets. When a topic is deleted and made
again, and grows past these offsets, they look right, and the first records of the new topic would
be skipped in silence. So a job keeps the id of every topic that it reads (KIP-516) beside its
checkpoint, and compares them later:

    DIR/_minibroker/topics.json   topic → id

With `--on-recreated read` the new topic is read from its start: the offsets of the last committed
batch are replaced by the topic's first ones, and then the id. A kill in between repeats both.
Clusters before 2.8 have no ids: nothing is compared.

A job with `--on-data-loss continue` never reads records that were removed from the topic (by
retention, DeleteRecords or a lost disk) before it came to them. It goes on behind them, so each
such gap is counted and named once:

    position of the last committed batch ──┬─► Gap: partition, first and end of its offsets
    first and last offsets that are there ─┘

The position is looked at before the first batch and after each one. Records that go while a batch
is read are not seen here, so the number of offsets is a least one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from minibroker.cli.quantities import counted
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline import offsets
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.options.shared import READ
from minibroker.pipeline.spark.progress import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.kafka.preflight import ClusterTopics
    from minibroker.pipeline.offsets import Offsets
    from minibroker.pipeline.spark.progress import Batch, Progress

_FILE: Final = "topics.json"


class Reading(Protocol):
    """The part of a plan that is about the topics that it reads."""

    @property
    def kafka(self) -> Kafka:
        """Return the cluster."""

    @property
    def on_recreated(self) -> str:
        """Return the reaction to a topic that was made anew: FAIL or READ."""

    @property
    def fail_on_data_loss(self) -> bool:
        """Return whether records that were removed before they were read end the job."""


class Place(NamedTuple):
    """A directory with the identity and the progress of a query."""

    files: FileSystem
    directory: str
    checkpoint: str


def read_ids(files: FileSystem, directory: str) -> dict[str, str]:
    """Return topic → id of the topics that the job in `directory` has read.

    Raises PipelineError for a damaged file.
    """
    return job_directory.read_texts(files, join(directory, JOB_DIRECTORY, _FILE))


def write_ids(files: FileSystem, directory: str, ids: Mapping[str, str]) -> None:
    """Add topics and ids to those of the job in `directory`; write nothing that is known."""
    old = read_ids(files, directory)
    if all(old.get(topic) == topic_id for topic, topic_id in ids.items()):
        return
    text = json.dumps({**old, **ids}, indent=2, sort_keys=True) + "\n"
    files.write(join(directory, JOB_DIRECTORY, _FILE), text)


def recreated(old: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the topics that have another id now; a topic without an id is left out."""
    return sorted(
        topic
        for topic, topic_id in now.items()
        if topic_id and old.get(topic, topic_id) != topic_id
    )


def check(
    plan: Reading,
    place: Place,
    cluster: ClusterTopics,
    topics: Iterable[str],
) -> None:
    """Check that a query can go on from the progress in `place`.

    Args:
        plan: of the job. `--on-data-loss continue` is about records that were removed: it lets no
            topic pass that was made anew.
        cluster: the topics of the cluster.
        topics: that the query reads.

    Raises:
        PipelineError: the progress is about other topics, or a topic was made anew.
    """
    files, directory, checkpoint = place
    progress = job_directory.progress_of(files, checkpoint)
    if progress is None:
        return
    names = list(topics)
    ids = preflight.topic_ids(plan.kafka, names)
    anew = recreated(read_ids(files, directory), ids)
    if anew and plan.on_recreated == READ and not job_directory.is_committed(files, checkpoint):
        raise PipelineError(
            f"topic {anew[0]!r} was made anew, and the last batch of {directory} is not done: its "
            "records are gone; give another directory"
        )
    if anew and plan.on_recreated != READ:
        raise PipelineError(
            f"topic {anew[0]!r} was made anew since the last run into {directory}, which has "
            "offsets of the old one: give another directory, or --on-recreated read to read the "
            "new one from its start"
        )
    if not plan.fail_on_data_loss:
        return
    job_directory.check_topics(directory, progress, names)
    positions = {
        partition: end for partition, end in progress.items() if partition.topic not in anew
    }
    ends = preflight.end_offsets(plan.kafka, cluster, names)
    job_directory.check_not_ahead(directory, positions, ends)


def begin(plan: Reading, place: Place, ids: Mapping[str, str]) -> None:
    """Let topics that were made anew begin at their start, if the plan says so; note all ids.

    Args:
        plan: of the job, checked by `check`.
        place: of a query that does not run yet.
        ids: topic → id now, empty for a cluster without ids.

    Raises PipelineError.
    """
    anew = recreated(read_ids(place.files, place.directory), ids)
    if anew and plan.on_recreated == READ:
        cluster = preflight.ask(plan.kafka)
        starts = preflight.start_offsets(plan.kafka, cluster, anew)
        start_over(place.files, place.checkpoint, starts)
    write_ids(place.files, place.directory, {name: ids[name] for name in ids if ids[name]})


def start_over(files: FileSystem, checkpoint: str, starts: Mapping[str, Mapping[int, int]]) -> None:
    """Replace the offsets of topics in the last batch of a checkpoint, which is committed.

    Args:
        checkpoint: of a query that does not run.
        starts: topic → partition → the offset to go on from.

    Raises PipelineError.
    """
    progress = job_directory.progress_of(files, checkpoint)
    if progress is None:
        return
    positions = {
        partition: end for partition, end in progress.items() if partition.topic not in starts
    }
    for topic, partitions in starts.items():
        positions |= {TopicPartition(topic, number): start for number, start in partitions.items()}
    job_directory.replace_progress(files, checkpoint, offsets.to_json(positions))


def with_new_ids(
    plan: Reading, place: Place, ids: Mapping[str, str], progress: Progress | None
) -> Progress:
    """Return a `Progress` that also notes the ids of topics that a pattern finds meanwhile."""
    topic_names = set(ids)

    def note(batch: Batch) -> None:
        positions = job_directory.progress_of(place.files, place.checkpoint) or {}
        new = {partition.topic for partition in positions} - topic_names
        if new:
            ids = preflight.topic_ids(plan.kafka, new)
            write_ids(place.files, place.directory, ids)
            topic_names.update(new)
        if progress is not None:
            progress(batch)

    return note


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
        self._gone_topics: set[str] = set()

    def find_gone(self, position: Offsets, names: Collection[str]) -> list[str]:
        """Return the topics of a position that do not exist and were not returned before."""
        topics = sorted(
            {partition.topic for partition in position} - set(names) - self._gone_topics
        )
        self._gone_topics.update(topics)
        return topics

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


def with_skips(
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
        cluster = preflight.ask(kafka)
        for topic in skipped.find_gone(position, cluster.partitions):
            say(gone_note(topic))
        names = sorted({partition.topic for partition in position} & set(cluster.partitions))
        starts = preflight.start_offsets(kafka, cluster, names)
        ends = preflight.end_offsets(kafka, cluster, names)
        for gap in skipped.find(position, starts, ends):
            say(gap.note())

    def note(batch: Batch) -> None:
        look()
        if progress is not None:
            progress(batch)

    look()
    return note
