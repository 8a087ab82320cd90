"""The topics that a copy writes to: as they are, or made like those of the source.

A new topic has the source's partitions and the source's own settings, without those that
MirrorMaker 2 leaves out, too: they belong to a cluster, or would change the copy. It takes records
of any timestamp. The replication factor is the cluster's default. A topic that grows in the source
grows in the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.cli.quantities import counted
from minibroker.client.configs import OF_TOPIC
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.spark.progress import Note
from minibroker.pipeline.spark.target_topics import create, grow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from minibroker.client.configs import OwnSetting
    from minibroker.pipeline.kafka.cluster import Kafka

LEFT_OUT: Final = frozenset(
    {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
        "min.insync.replicas",
    }
)
"""Settings of a topic that its copy does not get (MirrorMaker 2's `config.properties.exclude`)."""


class CopyTargets:
    """The topics of the target cluster that were looked at."""

    def __init__(
        self,
        source: Kafka,
        target: Kafka,
        note: Callable[[Note], None] | None,
        *,
        keeps_partitions: bool,
    ) -> None:
        self._source = source
        self._asking = preflight.client_of(source)
        """Asks the source about its topics, before every batch."""
        self._target = target
        self._note = note
        self._keeps_partitions = keeps_partitions
        self._partitions: dict[str, int] = {}
        """Target → partitions of the source when it was looked at."""

    def ensure(self, names: Mapping[str, str]) -> None:
        """Make the targets that are missing, and add partitions that are.

        Nothing is done for a topic that is gone: its reader says so, or leaves it out.

        Args:
            names: topic of the source → topic of the target.

        Raises:
            PipelineError: the cluster does not make a topic; the target has fewer partitions.
        """
        counts = preflight.ask(self._source, self._asking).partitions
        new = {
            source: target
            for source, target in names.items()
            if source in counts and self._partitions.get(target) != counts[source]
        }
        if not new:
            return
        partitions = preflight.ask(self._target).partitions
        for source, target in new.items():
            count = counts[source]
            if target not in partitions:
                self._make(source, target, count)
            elif self._keeps_partitions and partitions[target] < count:
                if target not in self._partitions:
                    raise PipelineError(too_few(source, count, target, partitions[target]))
                grow(self._target, target, partitions[target], count)
            self._partitions[target] = count

    def _make(self, source: str, target: str, partitions: int) -> None:
        config = own_settings(self._source, source)
        create(self._target, target, partitions, config, any_time=True)
        settings = f", with {', '.join(f'{key}={config[key]}' for key in sorted(config))}"
        text = f"{counted(partitions, 'partition')}{settings if config else ''}"
        if self._note is not None:
            self._note(
                Note(
                    f"topic {target} is made, with {text}",
                    {"created_topic": target, "partitions": partitions, "config": config},
                )
            )


def too_few(source: str, source_count: int, target: str, target_count: int) -> str:
    """Return the sentence for a target with fewer partitions than the source."""
    return (
        f"topic {target!r} has {counted(target_count, 'partition')} and {source!r} has "
        f"{source_count}: add partitions, or give --by-key, with which keys choose the partitions "
        "anew"
    )


def own_settings(kafka: Kafka, topic: str) -> dict[str, str]:
    """Return the settings that a topic has of its own and its copy gets. Raises PipelineError."""
    return copied_settings(preflight.topic_settings(kafka, topic))


def copied_settings(entries: Iterable[OwnSetting]) -> dict[str, str]:
    """Return name → value of the entries that a copy gets."""
    return {
        entry.name: entry.value
        for entry in entries
        if entry.source == OF_TOPIC and entry.value is not None and entry.name not in LEFT_OUT
    }
