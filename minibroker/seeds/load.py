"""Loads a seed into the brokers of this process, on their loop.

    file ─stage (a thread)─► StagedSeed ─► topics are made ─► batches are appended by the leaders
                                                              ─► offsets of groups are committed

The whole seed is checked before anything is made: a wrong line loads nothing. Batches come from the
thread some at a time, so neither the loop nor the memory holds more. Records are appended as a
client's with acks=all, and all of them can be read when `load` returns. A load adds to the records
that a topic has; that of `serve --seed`, which comes again with each start, does not
(`LoadedBeforeError`).
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.broker.config.topic import validate_topic_config
from minibroker.broker.groups.offsets import NO_EXPIRY, CommittedOffset
from minibroker.broker.partitions.checking import AnyBatch, ReceivedBatch
from minibroker.broker.partitions.partition import ACKS_ALL
from minibroker.broker.slices import TimeSlice, run_with_pauses
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError
from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.protocol.messages.produce import PartitionProduceResponse
from minibroker.kafka.records.batch import read_header, read_produced_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.record import decode_records
from minibroker.seeds.errors import LoadedBeforeError, SeedError
from minibroker.seeds.staging import Cluster, StagedSeed, stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence

    from minibroker.broker.app import Broker
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.broker.partitions.partition import Partition
    from minibroker.seeds.items import SeedOffset, Topic
    from minibroker.seeds.segments import StagedBatch

TURN_BYTES: Final = 8 << 20
"""Bytes of batches that come from the thread together."""
WAIT_S: Final = 30.0
"""Longest wait for a leader, a coordinator, or for replicas."""
LOOK_AGAIN_S: Final = 0.005
"""Nothing tells of these changes, so they are looked for."""
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class LoadedSeed(NamedTuple):
    """The result of a load."""

    topics: tuple[str, ...]
    """The topics that were made."""
    records: dict[str, int]
    """Topic → records that were written."""
    groups: tuple[str, ...]
    """Groups with an offset that was committed."""


async def load(
    path: str | Path, brokers: Sequence[Broker], *, name: str | None = None
) -> LoadedSeed:
    """Load a seed; everything in it can be read when this returns.

    Args:
        path: JSON lines (`.jsonl`), YAML (`.yaml`), a segment file, or a directory of these.
        brokers: all brokers of one cluster that run in this process, on this loop.
        name: of the seed in messages; None: `path`.

    Raises:
        SeedError: the seed is wrong, and nothing was loaded; or a broker refused a part of it.
        KafkaError, StorageError, CoordinationError: of the brokers.
    """
    async with staged_load(path, brokers, name=name) as loading:
        return await loading.run()


@asynccontextmanager
async def staged_load(
    path: str | Path,
    brokers: Sequence[Broker],
    *,
    name: str | None = None,
    used_topics: Collection[str] = frozenset(),
) -> AsyncIterator[SeedLoad]:
    """Read and check a seed, for a load inside of the context.

    Args:
        path, brokers, name: as of `load`.
        used_topics: topics that have records if the seed was loaded before.

    Raises the errors of `load`, and LoadedBeforeError for a record of a used topic.
    """
    seed_name = str(path) if name is None else name
    with closing(StagedSeed(facts_of(brokers, used_topics))) as seed:
        await asyncio.to_thread(stage, Path(path), seed_name, seed)
        yield SeedLoad(seed, brokers)


def used_topics(brokers: Sequence[Broker]) -> set[str]:
    """Return the topics that have records, or had some, in partitions that the brokers lead."""
    return {
        topic
        for broker in brokers
        for topic in broker.cluster.image.topics
        if any(part.log_end_offset > 0 for part in broker.partitions.of_topic(topic).values())
    }


def facts_of(brokers: Sequence[Broker], used: Collection[str]) -> Cluster:
    """Return the facts of the brokers that a seed is checked with."""
    first = brokers[0]
    topics = first.cluster.image.topics
    return Cluster(
        {name: len(topic.partitions) for name, topic in topics.items()},
        first.config.num_partitions,
        first.clock.now_ms(),
        used,
    )


class SeedLoad:
    """One load. Owned by the loop."""

    def __init__(self, seed: StagedSeed, brokers: Sequence[Broker]) -> None:
        self._seed = seed
        self._brokers = brokers
        self._first = next((each for each in brokers if each.cluster.is_controller), brokers[0])
        """The controller, if it is here: it makes topics in one step."""
        self._leaders: dict[tuple[str, int], tuple[Broker, Partition]] = {}
        self._new_topics: list[str] = []
        self._answers: list[tuple[StagedBatch, PartitionProduceResponse]] = []
        """Answers to the batches that are staged and not committed yet."""

    async def check_groups(self, besides: Collection[str]) -> None:
        """Check that no group of the seed has offsets.

        Args:
            besides: groups that may have some.

        Raises:
            LoadedBeforeError: a group has offsets.
            KafkaError, SeedError: the group has no coordinator here.
        """
        if OFFSETS_TOPIC not in self._first.cluster.image.topics:
            return
        for group in sorted({offset.group for offset in self._seed.offsets}.difference(besides)):
            _, shard = await self._coordinator(group)
            if shard.offsets.of_group(group):
                raise LoadedBeforeError(f"group {group} has offsets")

    async def run(self) -> LoadedSeed:
        """Load the seed. Raises SeedError, KafkaError, StorageError, CoordinationError."""
        seed = self._seed
        for topic in seed.topics.values():
            await self._make(topic)
        for topic_name, count in seed.undeclared.items():
            await self._create(topic_name, count, 0, {})
        await self._append_all()
        await self._until(self._are_replicated, "the replicas have the records")
        await self._until(self._are_known, "the brokers know the topics")
        await self._commit_all()
        return LoadedSeed(
            tuple(self._new_topics),
            dict(seed.records),
            tuple(dict.fromkeys(offset.group for offset in seed.offsets)),
        )

    async def _make(self, topic: Topic) -> None:
        """Make a topic, or check that the one that exists is the same. Raises SeedError."""
        broker = self._first
        try:
            validate_topic_config(topic.configs, broker.config)
        except ConfigError as error:
            raise SeedError(f"{topic.place}: topic {topic.name}: {error}") from None
        if topic.name in broker.cluster.image.topics:
            own = broker.cluster.image.configs.get("topics", {}).get(topic.name, {})
            for key, value in topic.configs.items():
                if own.get(key) != value:
                    is_set = f"has {key}={own[key]}" if key in own else f"has no {key} of its own"
                    raise SeedError(
                        f"{topic.place}: configs: {key}: {value}: topic {topic.name} exists and "
                        f"{is_set}: give the same, or delete the topic"
                    )
            return
        count = topic.partitions if topic.partitions > 0 else broker.config.num_partitions
        try:
            await self._create(topic.name, count, topic.replicas, topic.configs)
        except KafkaError as error:
            reason = error.detail or error.code.name
            raise SeedError(f"{topic.place}: topic {topic.name}: {reason}") from None

    async def _create(
        self, name: str, partitions: int, replicas: int, configs: dict[str, str]
    ) -> None:
        broker = self._first
        replication = replicas or broker.config.default_replication_factor
        await broker.cluster.create_topic(name, partitions, replication, configs=configs)
        self._new_topics.append(name)

    # Records.

    async def _append_all(self) -> None:
        batches = self._seed.batches()
        turn = TimeSlice()
        while group := await asyncio.to_thread(_next_batches, batches):
            for batch in group:
                await self._append(batch)
                if turn.is_over:
                    self._commit()
                    await turn.pause()
            self._commit()
            await self._until_synced()

    async def _append(self, batch: StagedBatch) -> None:
        """Stage a batch at its leader, in smaller ones where it is too large for its topic."""
        try:
            await self._append_whole(batch)
        except KafkaError as error:
            header = read_header(batch.records)
            if error.code not in _TOO_LARGE or header.count < 2:
                reason = getattr(error, "detail", None) or error.code.name
                raise SeedError(
                    f"{batch.place}: {batch.topic}-{batch.partition} refused the record"
                    f"{'s that begin there' if header.count > 1 else ''}: {reason}"
                ) from None
            for part in await asyncio.to_thread(_halves, batch):
                await self._append(part)

    async def _append_whole(self, batch: StagedBatch) -> None:
        """Raises KafkaError."""
        broker, partition = await self._leader(batch.topic, batch.partition)
        records = memoryview(batch.records)
        header = read_produced_header(records)
        received: AnyBatch = ReceivedBatch(partition, records, header)
        now_ms = broker.clock.now_ms()
        if received.check(now_ms):
            await broker.partitions.checker.check_large([received], now_ms)
        answer = PartitionProduceResponse(index=batch.partition)
        partition.append(records, ACKS_ALL, now_ms, answer, header=header, checked=received.checked)
        self._answers.append((batch, answer))

    def _commit(self) -> None:
        """Write what is staged."""
        for broker in self._brokers:
            broker.partitions.commit()

    async def _until_synced(self) -> None:
        """Wait for the fsyncs that acks=all waits for. Raises SeedError."""
        for broker in self._brokers:
            synced: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            broker.partitions.appends.when_synced(synced.set_result)
            await synced
        for batch, answer in self._answers:
            if answer.error_code:
                code = ErrorCode(answer.error_code)
                raise SeedError(
                    f"{batch.place}: {batch.topic}-{batch.partition} was not written: {code.name}; "
                    "the broker's log says why"
                )
        self._answers.clear()

    async def _leader(self, topic: str, index: int) -> tuple[Broker, Partition]:
        """Return the broker that leads a partition. Raises SeedError."""
        place = (topic, index)
        leader = self._leaders.get(place)
        if leader is None or not leader[1].is_leader:
            leaders: list[tuple[Broker, Partition]] = []

            def is_led() -> bool:
                for broker in self._brokers:
                    partition = broker.partitions.find(topic, index)
                    leaders.extend([(broker, partition)] if partition is not None else [])
                return bool(leaders)

            await self._until(is_led, f"a broker of this process leads {topic}-{index}")
            leader = self._leaders[place] = leaders[0]
        return leader

    def _are_replicated(self) -> bool:
        return all(
            partition.high_watermark >= partition.log_end_offset
            for _, partition in self._leaders.values()
        )

    def _are_known(self) -> bool:
        """Return whether all brokers know the new topics and their leaders."""
        return all(
            broker.cluster.topics.have_leaders(name)
            for broker in self._brokers
            for name in self._new_topics
        )

    # Groups.

    async def _commit_all(self) -> None:
        by_group: dict[str, list[SeedOffset]] = {}
        for offset in self._seed.offsets:
            by_group.setdefault(offset.group, []).append(offset)
        if by_group:
            await self._first.coordinators.groups.journal.ensure_topic()
        for group, offsets in by_group.items():
            try:
                await self._commit_group(group, offsets)
            except KafkaError as error:
                raise SeedError(f"{offsets[0].place}: group {group}: {error}") from None

    async def _coordinator(self, group: str) -> tuple[Broker, GroupShard]:
        """Return the broker and the shard that keep a group. Raises KafkaError, SeedError."""
        shards: list[tuple[Broker, GroupShard]] = []

        def is_coordinated() -> bool:
            for broker in self._brokers:
                try:
                    shards.append((broker, broker.coordinators.groups.shard(group)))
                except KafkaError as error:
                    if not error.code.retriable:
                        raise
            return bool(shards)

        await self._until(is_coordinated, f"a broker of this process coordinates group {group}")
        return shards[0]

    async def _commit_group(self, group: str, offsets: Sequence[SeedOffset]) -> None:
        """Raises KafkaError, SeedError."""
        broker, shard = await self._coordinator(group)
        now_ms = broker.clock.now_ms()
        commits = [
            (
                (group, offset.topic, offset.partition),
                CommittedOffset(offset.offset, -1, "", now_ms, NO_EXPIRY, ZERO_TOPIC_ID),
            )
            for offset in offsets
        ]
        batch = await run_with_pauses(shard.commit_batch(commits))
        shard.commit_offsets(group, commits, batch)
        self._commit()
        await self._until_synced()
        visible = broker.coordinators.groups.visible(group)
        if visible is not None:
            await visible

    async def _until(self, holds: Callable[[], bool], condition: str) -> None:
        """Wait until something holds. Raises SeedError."""
        try:
            async with asyncio.timeout(WAIT_S):
                while not holds():  # noqa: ASYNC110  see LOOK_AGAIN_S
                    await asyncio.sleep(LOOK_AGAIN_S)
        except TimeoutError:
            raise SeedError(
                f"the seed is not loaded: waited {WAIT_S:g} s until {condition}"
            ) from None


def _next_batches(batches: Iterator[StagedBatch]) -> list[StagedBatch]:
    """Return the next batches, of `TURN_BYTES` about; none at the end. Raises SeedError."""
    group: list[StagedBatch] = []
    size_bytes = 0
    try:
        for batch in batches:
            group.append(batch)
            size_bytes += len(batch.records)
            if size_bytes >= TURN_BYTES:
                break
    except OSError as error:
        raise SeedError(f"{error.filename} cannot be read: {error.strerror}") from None
    return group


def _halves(batch: StagedBatch) -> list[StagedBatch]:
    """Return a batch of several records as two."""
    header = read_header(batch.records)
    records = decode_records(batch.records, header=header)
    middle = len(records) // 2
    build = partial(build_batch, codec=CODEC_NAMES[header.codec])
    parts = (islice(records, middle), islice(records, middle, None))
    return [batch._replace(records=build(list(part))) for part in parts]
