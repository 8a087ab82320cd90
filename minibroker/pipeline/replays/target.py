"""The topic that a replay writes to: it exists, or the replay makes it.

A new topic has as many partitions as the archived topic had, partitions without records included.
So `--keep-partitions` works, and the hash of a key chooses the same partition as before. The
replication factor and all settings are the cluster's defaults.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from minibroker.pipeline import preflight
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.plan import JOB_DIRECTORY, join
from minibroker.pipeline.state import job_directory

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from minibroker.pipeline.files import FileSystem
    from minibroker.pipeline.plan import Kafka

DEFAULT_REPLICATION: Final = -1
"""Replication factor of a new topic: the cluster's `default.replication.factor` (KIP-464)."""
_LOOK_S: Final = 0.1


class ReplayTarget(NamedTuple):
    """A topic as it is, or as it will be made."""

    partitions: int
    """Number of partitions, 0 if not known yet."""
    is_there: bool


def archived_partitions(files: FileSystem, archive: str, topics: Collection[str]) -> int:
    """Return how many partitions the archived topics had, by the archive's checkpoint.

    Args:
        files: of the archive.
        archive: its directory.
        topics: those that are replayed, the largest one counts; empty: all that have records.

    Raises:
        PipelineError: the checkpoint cannot be read.
    """
    checkpoint = join(archive, JOB_DIRECTORY, "checkpoint")
    reached = job_directory.progress_of(files, checkpoint) or {}
    chosen = topics or {where.topic for where, end in reached.items() if end > 0}
    return max((where.partition + 1 for where in reached if where.topic in chosen), default=0)


def create(
    kafka: Kafka, topic: str, partitions: int, config: Mapping[str, str] | None = None
) -> None:
    """Make the topic, and return when the cluster's metadata has it.

    Args:
        kafka: the cluster.
        topic: its name.
        partitions: how many it gets.
        config: its settings; the cluster's defaults for all others.

    Raises:
        PipelineError: the cluster does not make it, or does not show it in time.
    """
    admin = preflight.admin_of(kafka)
    wanted = NewTopic(topic, partitions, DEFAULT_REPLICATION, config=dict(config or {}))
    timeout_s = preflight.ANSWER_TIMEOUT_S
    made = admin.create_topics([wanted], operation_timeout=timeout_s, request_timeout=timeout_s)
    try:
        made[topic].result(2 * timeout_s)
    except KafkaException as error:
        raise PipelineError(
            f"there is no topic {topic!r}, and the cluster does not make it "
            f"({error.args[0].str()}): create it with {partitions} partitions, or take a topic "
            "that is there"
        ) from error
    deadline = time.monotonic() + timeout_s
    while preflight.ask(kafka).partitions.get(topic) != partitions:
        if time.monotonic() > deadline:
            raise PipelineError(
                f"topic {topic!r} was made, but the cluster does not show its {partitions} "
                f"partitions after {timeout_s} s: run the same command again"
            )
        threading.Event().wait(_LOOK_S)
