"""Topics as a person reads them: a list, and one with its partitions and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from minibroker.cli.errors import CommandError
from minibroker.cli.quantities import size
from minibroker.cli.text_table import table_lines, value_text
from minibroker.client import admin, configs
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    TopicPartition,
    topic_id_to_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from minibroker.client.admin import DescribedCluster, DescribedPartition, DescribedTopic
    from minibroker.client.client import Client


class TopicSummary(NamedTuple):
    """A topic in the list."""

    name: str
    partitions: int
    replicas: int
    """The most that a partition has."""
    is_internal: bool
    records: int | None
    """Offsets from the start to the end; None: a partition has no leader now."""
    size_bytes: int | None
    """The bytes of its leaders' logs; None: the brokers do not tell."""


class PartitionOfTopic(NamedTuple):
    """A partition with its log."""

    partition: DescribedPartition
    start: int | None
    end: int | None
    size_bytes: int | None


class TopicDescription(NamedTuple):
    """A topic with everything."""

    name: str
    topic: DescribedTopic
    partitions: list[PartitionOfTopic]
    settings: dict[str, str | None] | None
    """None: the broker does not tell them."""


class _Logs(NamedTuple):
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    sizes: Mapping[TopicPartition, int]


def summaries_of(client: Client, *, has_internal: bool) -> list[TopicSummary]:
    """Return the topics of the cluster, sorted. Raises KafkaError, OSError, ProtocolError,
    ConfigError.
    """
    cluster = admin.describe(client)
    details = {
        name: topic
        for name, topic in sorted(cluster.topics.items())
        if has_internal or not topic.is_internal
    }
    logs = _logs(client, cluster, details)
    rows = []
    for name, topic in details.items():
        places = [TopicPartition(name, part.number) for part in topic.partitions]
        counts = [
            logs.ends[place] - logs.starts[place]
            for place in places
            if place in logs.ends and place in logs.starts
        ]
        sizes = [logs.sizes[place] for place in places if place in logs.sizes]
        rows.append(
            TopicSummary(
                name,
                topic.partition_count,
                max((len(part.replicas) for part in topic.partitions), default=0),
                topic.is_internal,
                sum(counts) if len(counts) == len(places) else None,
                sum(sizes) if len(sizes) == len(places) else None,
            )
        )
    return rows


def list_lines(rows: Sequence[TopicSummary]) -> list[str]:
    """Return the lines of the list."""
    if not rows:
        return ["there are no topics: minibroker topics --create NAME makes one\n"]
    return table_lines(
        ("topic", "partitions", "replicas", "records", "size"),
        [
            (row.name, row.partitions, row.replicas, value_text(row.records), _size(row.size_bytes))
            for row in rows
        ],
        words=("replicas",),
    )


def described(
    client: Client, names: Iterable[str], *, has_defaults: bool = False
) -> list[TopicDescription]:
    """Return topics with everything.

    Raises CommandError for one that is missing; KafkaError, OSError, ProtocolError, ConfigError.
    """
    cluster = admin.describe(client, names)
    for name, topic in cluster.topics.items():
        if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise CommandError(
                f"there is no topic {name}: minibroker topics lists those that there are"
            )
        if topic.error and not topic.partitions:
            raise KafkaError(topic.error, f"topic {name}")
    logs = _logs(client, cluster, cluster.topics)
    views = []
    for name, topic in cluster.topics.items():
        parts = []
        for part in topic.partitions:
            place = TopicPartition(name, part.number)
            parts.append(
                PartitionOfTopic(
                    part, logs.starts.get(place), logs.ends.get(place), logs.sizes.get(place)
                )
            )
        settings = _settings(client, name, has_defaults=has_defaults)
        views.append(TopicDescription(name, topic, parts, settings))
    return views


def lines_of(view: TopicDescription) -> list[str]:
    """Return the lines of a topic."""
    topic = view.topic
    head = f"{view.name}: {topic.partition_count} partitions"
    if any(topic.topic_id):
        head += f", id {topic_id_to_text(topic.topic_id)}"
    lines = [f"{head}{', internal' if topic.is_internal else ''}\n"]
    if view.settings is None:
        lines.append("settings: this broker does not tell them\n")
    elif view.settings:
        lines.append("settings:\n")
        lines += [f"  {name}={value}\n" for name, value in sorted(view.settings.items())]
    lines += table_lines(
        ("partition", "leader", "replicas", "in sync", "first", "end", "size"),
        [
            (
                each.partition.number,
                "none" if each.partition.leader < 0 else each.partition.leader,
                _ids(each.partition.replicas),
                _ids(each.partition.in_sync),
                value_text(each.start),
                value_text(each.end),
                _size(each.size_bytes),
            )
            for each in view.partitions
        ],
        words=("replicas", "in sync"),
    )
    return lines


def fields_of(view: TopicDescription) -> dict[str, Any]:
    """Return a topic as JSON."""
    topic = view.topic
    return {
        "name": view.name,
        "id": topic_id_to_text(topic.topic_id) if any(topic.topic_id) else None,
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": each.partition.number,
                "leader": None if each.partition.leader < 0 else each.partition.leader,
                "replicas": list(each.partition.replicas),
                "in_sync": list(each.partition.in_sync),
                "offline": list(each.partition.offline),
                "first_offset": each.start,
                "end_offset": each.end,
                "size_bytes": each.size_bytes,
            }
            for each in view.partitions
        ],
        "settings": view.settings,
    }


def _logs(client: Client, cluster: DescribedCluster, topics: Mapping[str, DescribedTopic]) -> _Logs:
    """Return offsets and sizes of the partitions that have a leader."""
    places = [
        TopicPartition(name, part.number)
        for name, topic in topics.items()
        for part in topic.partitions
        if part.leader >= 0
    ]
    starts, ends = (
        admin.list_offsets(client, dict.fromkeys(places, when), is_committed=False).offsets
        for when in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
    )
    return _Logs(starts, ends, admin.log_sizes(client, cluster))


def _settings(client: Client, name: str, *, has_defaults: bool) -> dict[str, str | None] | None:
    try:
        settings = configs.topic_settings(client, name)
    except BrokerRefusedError:
        return None
    except KafkaError as error:
        if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return None
        raise
    return {
        each.name: each.value
        for each in settings
        if has_defaults or each.source == configs.OF_TOPIC
    }


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers)) or "none"


def _size(value: int | None) -> str:
    return "-" if value is None else size(value)
