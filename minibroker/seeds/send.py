"""Loads a seed into any Kafka, as a producer and an admin client do.

    file ─stage─► StagedSeed ─► topics are made ─► batches are sent ─► offsets are committed

The whole seed is checked first, as by `load`, which does the same for brokers of this process.
"""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.client import admin, groups
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.produce import OutgoingBatch, ProduceLimits, ProduceQueue
from minibroker.clock import SystemClock
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.batch import read_header
from minibroker.seeds.errors import SeedError
from minibroker.seeds.load import LoadedSeed
from minibroker.seeds.staging import Cluster, StagedSeed, stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.client.client import Client

REQUEST_BYTES: Final = 900_000
"""Bytes of a request: below the `max.message.bytes` of a topic."""
DEFAULT_PARTITIONS: Final = 1
"""Partitions of a topic that a seed does not declare."""


def send(
    path: str | Path,
    client: Client,
    make_topic: Callable[[str, int, Mapping[str, str]], None],
    *,
    timeout_s: float,
) -> LoadedSeed:
    """Load a seed; everything in it is acknowledged when this returns.

    Args:
        path: see `load.load`.
        make_topic: makes a topic: name, partitions, settings. The cluster has its own replication.
        timeout_s: time without an acknowledgement after which it has failed.

    Raises:
        SeedError: the seed is wrong, and nothing was loaded; or the cluster refused a part of it.
        KafkaError, OSError, ProtocolError, ConfigError: of the client.
    """
    topics = admin.describe(client).topics
    counts = {name: topic.partition_count for name, topic in topics.items()}
    facts = Cluster(counts, DEFAULT_PARTITIONS, SystemClock().now_ms())
    with closing(StagedSeed(facts)) as seed:
        stage(Path(path), str(path), seed)
        new_topics = _make_topics(seed, counts, make_topic)
        _send_all(seed, client, timeout_s)
        return LoadedSeed(new_topics, dict(seed.records), _commit_all(seed, client, timeout_s))


def _make_topics(
    seed: StagedSeed,
    counts: Mapping[str, int],
    make_topic: Callable[[str, int, Mapping[str, str]], None],
) -> tuple[str, ...]:
    """Make the topics that are missing, and return their names. Raises SeedError."""
    new_topics = []
    for topic in seed.topics.values():
        if topic.name not in counts:
            try:
                make_topic(topic.name, max(topic.partitions, DEFAULT_PARTITIONS), topic.configs)
            except KafkaError as error:
                raise SeedError(f"{topic.place}: topic {topic.name}: {error}") from None
            new_topics.append(topic.name)
    for name, count in seed.undeclared.items():
        make_topic(name, count, {})
        new_topics.append(name)
    return tuple(new_topics)


def _send_all(seed: StagedSeed, client: Client, timeout_s: float) -> None:
    """Raises SeedError, and as `ProduceQueue.send`."""
    # One request at a time: batches without numbers keep their order so.
    limits = ProduceLimits(1, REQUEST_BYTES, timeout_s)
    queue = ProduceQueue(client, None, limits, lambda _batch, _offset: None)
    try:
        for batch in seed.batches():
            place = TopicPartition(batch.topic, batch.partition)
            count = read_header(batch.records).count
            try:
                queue.send([OutgoingBatch(place, batch.records, count)])
                queue.flush()
            except KafkaError as error:
                raise SeedError(f"{batch.place}: {place} refused the records: {error}") from None
    finally:
        queue.close()


def _commit_all(seed: StagedSeed, client: Client, timeout_s: float) -> tuple[str, ...]:
    """Commit the offsets of the groups, and return their names. Raises SeedError."""
    of_groups: dict[str, dict[TopicPartition, int]] = {}
    for offset in seed.offsets:
        place = TopicPartition(offset.topic, offset.partition)
        of_groups.setdefault(offset.group, {})[place] = offset.offset
    for name, offsets in of_groups.items():
        deadline = time.monotonic() + timeout_s
        try:
            groups.commit_offsets(CoordinatorClient(client, name), offsets, deadline)
        except KafkaError as error:
            raise SeedError(f"offsets of group {name}: {error}") from None
    return tuple(of_groups)
