"""How far readers are behind the ends of topics: groups, and jobs by their checkpoints.

For the verb `lag`, again and again, and for `inspect`, once. A group counts for a topic if it has
committed an offset there. The exactly-once sink commits to groups of its own
(`sink.marker`), which are no readers: groups with its usual name are left out.

    groups of the cluster ──► committed offsets ─┐
    checkpoints of jobs ─────► offsets done ─────┴─► ends of those topics ─► lag

A look costs a request for each group, some of them under way at once, and one for the ends to each
broker. `GROUPS_MAX` bounds the requests.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import files_of
from minibroker.pipeline.files.paths import JOB_DIRECTORY, absolute, join
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.groups import Groups
from minibroker.pipeline.kafka.sink.marker import is_marker_group

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.offsets import Offsets

GROUPS_MAX: Final = 1_000
"""Groups of one look."""
CHECKPOINT: Final = "checkpoint"
"""The state of a reader that is a job's checkpoint: whether the job runs is not known."""


class PartitionLag(NamedTuple):
    """The position of a reader in a partition."""

    topic: str
    partition: int
    offset: int
    """The next offset to read."""
    end: int
    """The offset behind the last record."""

    @property
    def lag(self) -> int:
        """Return the offsets that are still to be read; gaps count."""
        return max(0, self.end - self.offset)


class ReaderLag(NamedTuple):
    """A group, or a job by its checkpoint, with the partitions where it has a position."""

    name: str
    state: str
    """A state of Kafka's groups in lower case, or `checkpoint`."""
    partitions: tuple[PartitionLag, ...]

    @property
    def lag(self) -> int:
        """Return the sum over the partitions."""
        return sum(partition.lag for partition in self.partitions)


class LagReader:
    """Asks for positions and ends, with one client for all looks."""

    def __init__(
        self,
        kafka: Kafka,
        *,
        groups: Sequence[str] = (),
        pattern: str | None = None,
        topics: Sequence[str] = (),
        checkpoints: Sequence[str] = (),
        groups_max: int | None = GROUPS_MAX,
    ) -> None:
        """Prepare the questions.

        Args:
            kafka: the cluster.
            groups: the groups to show; none, and no `pattern` and no `checkpoints`: all.
            pattern: a regular expression that matches whole names of groups.
            topics: the topics to show, none: all that a reader has a position in.
            checkpoints: directories of jobs, or of their checkpoints.
            groups_max: most groups of a look, None for no limit.

        Raises:
            PipelineError: a pattern that is none, a directory without a checkpoint.
        """
        self._kafka = kafka
        self._groups = frozenset(groups)
        self._pattern = None if pattern is None else _expression(pattern)
        self._topics = frozenset(topics)
        self._checkpoints = {directory: checkpoint_of(directory) for directory in checkpoints}
        self._groups_max = groups_max
        self._client = preflight.client_of(kafka)
        self._of_cluster = Groups(kafka)

    def read(self) -> list[ReaderLag]:
        """Return the readers, the one with the largest lag first.

        Raises:
            PipelineError: the brokers do not answer, no such group, or too many groups.
        """
        cluster = preflight.ask(self._kafka, self._client)
        states = self._states()
        positions = {
            name: self._of_interest(offsets)
            for name, offsets in self._of_cluster.committed(sorted(states))
        }
        for directory, checkpoint in self._checkpoints.items():
            positions[directory] = self._of_interest(_done(checkpoint))
            states[directory] = CHECKPOINT
        ends = self._ends(positions.values(), cluster)
        readers = [
            ReaderLag(
                name,
                states[name],
                tuple(
                    PartitionLag(*place, offset, ends[place])
                    for place, offset in sorted(offsets.items())
                    if place in ends
                ),
            )
            for name, offsets in positions.items()
        ]
        return sorted(readers, key=lambda reader: (-reader.lag, reader.name))

    def _states(self) -> dict[str, str]:
        """Return chosen group → state."""
        if self._checkpoints and not self._groups and self._pattern is None:
            return {}
        states = self._of_cluster.states()
        if missing := sorted(self._groups - set(states)):
            raise PipelineError(
                f"there is no group {missing[0]!r} at {self._kafka.bootstrap}: check its name"
            )
        chosen = {name: state for name, state in states.items() if self._is_chosen(name)}
        if self._groups_max is not None and len(chosen) > self._groups_max:
            raise PipelineError(
                f"the cluster has {len(chosen):,} such groups, and {self._groups_max:,} are "
                "asked for at most: choose some of them with --group or --group-pattern"
            )
        return chosen

    def _is_chosen(self, name: str) -> bool:
        if self._groups or self._pattern is not None:
            is_match = self._pattern is not None and self._pattern.fullmatch(name) is not None
            return name in self._groups or is_match
        return not is_marker_group(name)

    def _of_interest(self, offsets: Mapping[TopicPartition, int]) -> Offsets:
        return {
            place: offset
            for place, offset in offsets.items()
            if not self._topics or place.topic in self._topics
        }

    def _ends(self, positions: Iterable[Offsets], cluster: preflight.ClusterTopics) -> Offsets:
        """Return the ends of these partitions; one whose topic is gone is left out."""
        places = {
            place
            for offsets in positions
            for place in offsets
            if place.partition < cluster.partitions.get(place.topic, 0)
        }
        return preflight.ends_of(self._kafka, places, self._client)


def checkpoint_of(directory: str) -> str:
    """Return the checkpoint below a job's directory, or the directory itself if it is one.

    Raises:
        PipelineError: there is none, it is at a URL, or it belongs to a replay.
    """
    path = absolute(directory)
    files = files_of(path, None)
    if files is None:
        raise PipelineError(
            f"{directory} is at a URL, which only Spark reads: give a directory of this machine"
        )
    job = job_directory.found_job(files, path).get("job")
    if job == "replay":
        raise PipelineError(
            f"{directory} is the checkpoint of a replay, which reads files and no topic: give the "
            "directory of another job"
        )
    of_copy = [join(path, "checkpoint")] if job == "copy" else []
    for candidate in (join(path, JOB_DIRECTORY, "checkpoint"), path, *of_copy):
        if "offsets" in files.names(candidate):
            return candidate
    raise PipelineError(
        f"{directory} has no checkpoint: give the directory that a job writes to, or the one of "
        "its --checkpoint"
    )


def _done(checkpoint: str) -> Offsets:
    """Return the end of the last committed batch of a job."""
    files = files_of(checkpoint, None)
    if files is None:
        raise AssertionError("a checkpoint at a URL is refused")
    return job_directory.committed_progress_of(files, checkpoint) or {}


def _expression(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise PipelineError(
            f"--group-pattern {pattern} is no regular expression: {error}"
        ) from error
