"""The topic that a replay writes to: it exists, or the replay makes it.

A new topic has as many partitions as the archived topic had, partitions without records included.
So `--keep-partitions` works, and the hash of a key chooses the same partition as before. The
replication factor and all settings are the cluster's defaults. With `--keep-timestamps` it keeps
records of any age: a retention of a week would delete an older archive soon after its replay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cli.quantities import duration
from minibroker.client import admin
from minibroker.client.client import CLIENT_ERRORS
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.spark.progress import Note

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.kafka.cluster import Kafka

PARTITIONS_AT_ONCE: Final = 1_000
"""Partitions that one request makes. Kafka makes 9,999 at most, and a slow broker has to make these
before the request times out."""
RETENTION: Final = "retention.ms"
KEPT_FOR_EVER: Final = {RETENTION: "-1"}
"""Setting of a new topic for records with timestamps of their own: retention counts by these."""
_NO_LIMIT_MS: Final = str(2**63 - 1)
ANY_TIME: Final = {
    "message.timestamp.before.max.ms": _NO_LIMIT_MS,
    "message.timestamp.after.max.ms": _NO_LIMIT_MS,
}
"""Settings of a topic that takes records of any timestamp; Kafka 4 refuses an hour ahead."""


class ReplayTarget(NamedTuple):
    """A topic as it is, or as it will be made."""

    partitions: int
    """Number of partitions, 0 if not known yet."""
    is_there: bool


def archived_partitions(files: FileSystem, archive: str, topics: Collection[str]) -> int:
    """Return how many partitions the archived topics had, by the archive's checkpoint.

    Args:
        archive: its directory.
        topics: those that are replayed, the largest one counts; empty: all that have records.

    Raises:
        PipelineError: the checkpoint cannot be read.
    """
    checkpoint = join(archive, JOB_DIRECTORY, "checkpoint")
    progress = job_directory.progress_of(files, checkpoint) or {}
    chosen = topics or {place.topic for place, end in progress.items() if end > 0}
    return max((place.partition + 1 for place in progress if place.topic in chosen), default=0)


def create(
    kafka: Kafka,
    topic: str,
    partitions: int,
    config: Mapping[str, str] | None = None,
    *,
    any_time: bool = False,
) -> None:
    """Make the topic, and return when every broker shows it.

    Args:
        topic: its name.
        partitions: how many it gets, in several requests if they are many.
        config: its settings; the cluster's defaults for all others.
        any_time: whether it takes records of any timestamp (`ANY_TIME`).

    Raises:
        PipelineError: the cluster does not make it, or does not show it in time.
    """
    client, timeout_s = preflight.client_of(kafka), preflight.ANSWER_TIMEOUT_S
    first = min(partitions, PARTITIONS_AT_ONCE)
    topic_config = dict(config or {})
    try:
        try:
            own = {**topic_config, **ANY_TIME} if any_time else topic_config
            admin.create_topic(client, topic, first, own, timeout_s=timeout_s)
        except KafkaError as error:
            # A cluster before Kafka 3.6 does not know these settings, and has no such limits.
            if not any_time or error.code != ErrorCode.INVALID_CONFIG:
                raise
            admin.create_topic(client, topic, first, topic_config, timeout_s=timeout_s)
    except CLIENT_ERRORS as error:
        raise PipelineError(
            f"there is no topic {topic!r}, and the cluster does not make it ({error}): create it "
            f"with {partitions} partitions, or take a topic that is there"
        ) from error
    grow(kafka, topic, first, partitions)


def expiry_note(topic: str, settings: Mapping[str, str | None]) -> Note | None:
    """Return a note about a topic that deletes old records by their timestamps, None for others.

    Args:
        topic: that exists, and gets records with timestamps of their own.
    """
    kept_ms = int(settings.get(RETENTION) or -1)
    if kept_ms < 0 or "delete" not in str(settings.get("cleanup.policy")):
        return None
    return Note(
        f"topic {topic} deletes records that are dated more than {duration(kept_ms)} ago "
        f"({RETENTION}={kept_ms}), also those of this replay: set {RETENTION}=-1 to keep them",
        {"topic": topic, RETENTION: kept_ms},
    )


def grow(kafka: Kafka, topic: str, present: int, count: int) -> None:
    """Add partitions to a topic, and return when every broker shows them.

    Args:
        topic: its name.
        present: how many it has.
        count: how many it gets; nothing is done if it has them.

    Raises:
        PipelineError: the cluster does not add them, or does not show them in time.
    """
    if present >= count:
        return
    client, timeout_s = preflight.client_of(kafka), preflight.ANSWER_TIMEOUT_S
    while present < count:
        following = min(count, present + PARTITIONS_AT_ONCE)
        try:
            admin.create_partitions(client, topic, following, timeout_s=timeout_s)
        except CLIENT_ERRORS as error:
            raise PipelineError(
                f"topic {topic!r} has {present} partitions and gets no more ({error}): raise "
                f"their number to {count}, and run the same command again"
            ) from error
        present = following
