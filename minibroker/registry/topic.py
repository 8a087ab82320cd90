"""The topic `_schemas` of one broker of this process: its state, and what is written to it.

    a request ─► read: records up to the high watermark ─► entries (a thread) ─► RegistryState
    a change  ─► write, at the leader: a batch with acks=all ─► visible ─► read ─► the answer

Nothing follows the topic in between: a request reads what came since the last one. The registry of
the broker that leads the partition writes, so nobody else gives out an id meanwhile. It decides on
everything that the log has: `all_visible` waits until all of it is visible.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.tree import NodeExists
from minibroker.broker.partitions.cold_reads import ROUNDS_MAX, ColdError, warm
from minibroker.broker.slices import TimeSlice
from minibroker.broker.storage.tasks import quick_switches
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.records.record import Record
from minibroker.registry.entries import TOPIC, UnreadableError, VersionEntry, decode, encode
from minibroker.registry.errors import (
    LostLeadershipError,
    backend_failed,
    has_no_leader,
    is_too_large,
    took_too_long,
)
from minibroker.registry.state import RegistryState
from minibroker.rig.inspector import Inspector, TopicProgress
from minibroker.rig.topic_records import ReadBatches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.app import Broker
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.storage.partition_directory import PartitionDirectory
    from minibroker.registry.entries import Entry

logger = logging.getLogger(__name__)

READ_BYTES: Final = 256 << 10
"""Bytes of batches that are decoded at once."""
BATCH_BYTES: Final = 2 << 10
"""Bytes of entries that are written at once, without the loop; a larger one is alone."""
LARGE_TEXT: Final = 64 << 10
"""Characters of a schema that is written in a thread."""
SMALL_BYTES: Final = 4 << 10
"""Batches up to this size are decoded on the loop."""
REPLICATED_S: Final = 10.0
"""Longest wait until a record is visible."""
LEADER_S: Final = 10.0
"""Longest wait for a leader of the topic."""
FOLLOWED_S: Final = 2.0
"""Longest wait until a follower hears of the high watermark."""
REPLICAS_MAX: Final = 3
_LOST: Final = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID}
)
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class Elsewhere(NamedTuple):
    """The leader of the topic is another broker."""

    broker_id: int
    is_followed: bool = False
    """This broker has the topic, and cannot tell whether its last records are committed."""


class SchemasTopic:
    """The topic as one broker has it. Owned by the loop."""

    def __init__(self, broker: Callable[[], Broker | None]) -> None:
        """`broker`: returns the broker, None while it does not run."""
        self._broker_now = broker
        self.state = RegistryState()
        self._topic_id = b""
        self._generation: tuple[PartitionDirectory | None, int] = (None, 0)
        """The directory of the log that is read, and how often it had been truncated: what was read
        may be gone then, and other records may have its offsets."""
        self._next_offset = 0
        self._committed_offset = 0
        """The leader said that all in-sync replicas have the records before it."""
        self._reading = asyncio.Lock()
        self._inspector: tuple[Broker, Inspector] | None = None

    @property
    def broker(self) -> Broker:
        """Return the broker. Raises RegistryError while it does not run."""
        broker = self._broker_now()
        if broker is None:
            raise backend_failed("the broker of this registry does not run now")
        return broker

    # Reading.

    async def read(self) -> RegistryState | Elsewhere:
        """Return the state with every change that was answered, or the leader to ask: the topic is
        not on this broker, or it has records that may not be committed. Raises RegistryError.
        """
        async with self._reading:
            broker = self.broker
            image = broker.cluster.image.topics.get(TOPIC)
            if image is None:
                self._begin_anew(b"")
                return self.state
            partition = broker.partitions.replica(TOPIC, 0)
            if partition is None or not partition.has_log:
                return Elsewhere(image.partitions[0].leader)
            place = partition.log.place
            generation = (place, place.generation)
            if image.topic_id != self._topic_id or generation != self._generation:
                self._begin_anew(image.topic_id)
                self._generation = generation
            try:
                await self._read_on(partition)
            except (KafkaError, CorruptionError) as error:
                raise backend_failed(f"{partition} cannot be read: {error}") from None
            if not partition.is_leader and self._next_offset < partition.log_end_offset:
                return Elsewhere(image.partitions[0].leader, is_followed=True)
            return self.state

    def _begin_anew(self, topic_id: bytes) -> None:
        if self._topic_id or self._next_offset:
            self.state = RegistryState()
        self._topic_id = topic_id
        self._next_offset = 0
        self._committed_offset = 0

    async def _read_on(self, partition: Partition) -> None:
        """Raises KafkaError, CorruptionError."""
        turn = TimeSlice()
        while True:
            offset = max(self._next_offset, partition.log_start_offset)
            end_offset = self._end_offset(partition)
            if offset >= end_offset:
                return
            batches = await _resident(partition, offset, end_offset)
            if len(batches.data) <= SMALL_BYTES:
                entries, next_offset = entries_of(batches)
            else:
                entries, next_offset = await asyncio.to_thread(entries_of, batches)
            if next_offset == offset:
                return
            for entry in entries:
                for _ in self.state.apply(entry):
                    if turn.is_over:
                        await turn.pause()
                if turn.is_over:
                    await turn.pause()
            self._next_offset = next_offset

    def _end_offset(self, partition: Partition) -> int:
        """Return the end of the records that are committed. A follower hears of the high watermark
        with its next fetch, half a second later; the answer to a write says it at once.
        """
        committed_offset = min(self._committed_offset, partition.log_end_offset)
        return max(partition.high_watermark, committed_offset)

    # Writing.

    async def leader(self) -> Partition | Elsewhere:
        """Return the partition if this broker leads it, else who does; the topic is made if there
        is none. Raises RegistryError.
        """
        broker = self.broker
        image = broker.cluster.image.topics.get(TOPIC)
        if image is None or image.partitions[0].leader < 0:
            image = await _led_topic(broker, exists=image is not None)
        _check_topic(broker, image)
        partition = broker.partitions.find(TOPIC, 0)
        if partition is not None:
            return partition
        leader = image.partitions[0].leader
        if leader < 0 or leader == broker.config.broker_id:
            raise has_no_leader(f"the topic {TOPIC} has no leader now: try again")
        return Elsewhere(leader)

    async def take_lead(self) -> bool:
        """Have this broker lead the topic where it is the preferred replica; return whether it
        does. The controller, also Apache Kafka's, elects as for kafka-leader-election.
        """
        broker = self.broker
        own = broker.config.broker_id
        partition = broker.cluster.image.topics[TOPIC].partitions[0]
        if partition.replicas[0] != own or own not in partition.isr:
            return False
        wish = {"version": 1, "partitions": [{"topic": TOPIC, "partition": 0}]}
        with suppress(NodeExists):  # another election is under way; the next try asks again
            await broker.cluster.tree.create(paths.PREFERRED_ELECTION, json.dumps(wish).encode())
        try:
            await broker.cluster.wait_for_leader(TOPIC, 0, own, LEADER_S)
        except TimeoutError:
            return False
        return True

    async def all_visible(self, partition: Partition) -> RegistryState:
        """Return the state with all records that the leader has, once all are visible.

        Raises RegistryError, LostLeadershipError.
        """
        await self._until_visible(partition, partition.log_end_offset)
        state = await self.read()
        if isinstance(state, Elsewhere):
            raise LostLeadershipError
        return state

    async def write(self, partition: Partition, entries: Sequence[Entry]) -> None:
        """Append the entries, and return when they are visible, and in the state. A few small
        entries are one batch.

        Raises RegistryError; LostLeadershipError: nothing was written.
        """
        end_offset = 0
        batch: list[Record] = []
        size_bytes, turn = 0, TimeSlice()
        now_ms = self.broker.clock.now_ms()
        for entry in entries:
            is_large = isinstance(entry, VersionEntry) and len(entry.schema.text) > LARGE_TEXT
            key, value = await asyncio.to_thread(encode, entry) if is_large else encode(entry)
            length = len(key) + len(value or b"")
            if batch and size_bytes + length > BATCH_BYTES:
                end_offset = await self._append(partition, batch, is_first=not end_offset)
                batch, size_bytes = [], 0
                await turn.pause()
            batch.append(Record(0, now_ms, key, value))
            size_bytes += length
        end_offset = await self._append(partition, batch, is_first=not end_offset)
        await self._until_visible(partition, end_offset)
        await self.read()

    async def _append(self, partition: Partition, records: list[Record], *, is_first: bool) -> int:
        """Append a batch; return the offset behind it. Raises RegistryError, and
        LostLeadershipError for a first one.
        """
        broker = self.broker
        if self._inspector is None or self._inspector[0] is not broker:
            self._inspector = (broker, Inspector(broker))
        try:
            return len(records) + await self._inspector[1].append_here(partition, records)
        except KafkaError as error:
            if error.code in _LOST and is_first:
                raise LostLeadershipError from None
            if error.code in _TOO_LARGE:
                raise is_too_large(
                    f"the schema does not fit into a record of the topic {TOPIC}: {error}"
                ) from None
            raise backend_failed(f"{partition} cannot be written: {error}") from None

    async def reaches(self, offset: int) -> None:
        """Return when the state of a follower has the records before `offset`, which the leader has
        committed. A follower that is too slow, or has no replica, is not waited for.
        """
        self._committed_offset = offset
        partition = self.broker.partitions.replica(TOPIC, 0)
        if partition is not None and partition.has_log and partition.log_end_offset < offset:
            await self._wait(partition, offset, lambda: partition.has_log)

    async def latest(self) -> RegistryState:
        """Return the state of a follower once it knows which of its records are committed, or after
        `FOLLOWED_S` what it has. Raises RegistryError.
        """
        partition = self.broker.partitions.replica(TOPIC, 0)
        if partition is not None and partition.has_log:
            end_offset = partition.log_end_offset
            await self._wait(partition, end_offset, lambda: partition.has_log, FOLLOWED_S)
        state = await self.read()
        return self.state if isinstance(state, Elsewhere) else state

    async def _until_visible(self, partition: Partition, end_offset: int) -> None:
        """Raises RegistryError."""
        if not await self._wait(partition, end_offset, lambda: partition.is_leader):
            raise took_too_long(
                f"{partition} was not replicated within {REPLICATED_S:g} s, or has another leader;"
                " ask again: the change may have happened"
            )

    async def _wait(
        self,
        partition: Partition,
        end_offset: int,
        may_come: Callable[[], bool],
        timeout_s: float = REPLICATED_S,
    ) -> bool:
        """Return whether readers get all before an offset, in time, and while it may come."""
        progress = TopicProgress()
        if partition.waiters is None:
            partition.waiters = {}
        partition.waiters[progress] = None
        try:
            with suppress(TimeoutError):  # the high watermark tells
                async with asyncio.timeout(timeout_s):
                    while partition.high_watermark < end_offset and may_come():
                        progress.event.clear()
                        await progress.event.wait()
        finally:
            if partition.waiters is not None:
                partition.waiters.pop(progress, None)
        return may_come() and partition.high_watermark >= end_offset


async def _led_topic(broker: Broker, *, exists: bool) -> TopicImage:
    """Return the topic once it has a leader, made as Confluent's registry makes it. Raises
    RegistryError.
    """
    cluster = broker.cluster
    try:
        if not exists:
            assignment = {0: _replicas(broker)}
            configs = {"cleanup.policy": "compact"}
            await cluster.create_topic(TOPIC, assignment=assignment, configs=configs)
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise backend_failed(f"the topic {TOPIC} cannot be made: {error}") from None
    try:
        await cluster.topics.wait_for_leaders(TOPIC, LEADER_S)
        return cluster.image.topics[TOPIC]
    except (KafkaError, KeyError):
        raise has_no_leader(f"the topic {TOPIC} has no leader now: try again") from None


def _replicas(broker: Broker) -> list[int]:
    """Return the brokers for a new topic; the first one leads. This one has a registry, and other
    minibrokers may have one, so Apache Kafka's brokers of the cluster come last.
    """
    own = broker.config.broker_id
    others = [each for each in broker.cluster.image.brokers.values() if each.id != own]
    others.sort(key=lambda each: (not each.is_minibroker, each.id))
    return [own, *(each.id for each in others)][:REPLICAS_MAX]


def _check_topic(broker: Broker, image: TopicImage) -> None:
    """Raise RegistryError for a topic that would lose schemas."""
    if len(image.partitions) != 1:
        raise backend_failed(
            f"the topic {TOPIC} has {len(image.partitions)} partitions, and the registry needs one"
        )
    config = broker.dynamic.topic(TOPIC)
    if config.delete or not config.compact:
        raise backend_failed(
            f"the topic {TOPIC} would lose schemas: set its cleanup.policy to compact, it is"
            f" {config.cleanup_policy}"
        )


async def _resident(partition: Partition, offset: int, end_offset: int) -> ReadBatches:
    """Return batches between two offsets, once they are in memory. Raises KafkaError."""

    def batches(*, resident_only: bool) -> ReadBatches:
        partition.flush_staged()
        log_read = partition.read_below(
            offset,
            READ_BYTES,
            end_offset=end_offset,
            min_one_batch=True,
            resident_only=resident_only,
        )
        return ReadBatches(partition.topic, partition.index, offset, log_read.records, {})

    for _ in range(ROUNDS_MAX):
        try:
            return batches(resident_only=True)
        except ColdError as cold:
            await warm([cold])
    return batches(resident_only=False)


def entries_of(batches: ReadBatches) -> tuple[list[Entry], int]:
    """Return the entries of batches, and the offset behind them. Raises CorruptionError."""
    entries: list[Entry] = []
    with quick_switches():
        records = batches.records()
        while True:
            try:
                record = next(records)
            except StopIteration as end:
                return entries, end.value
            try:
                entry = decode(record.key, record.value)
            except UnreadableError as error:
                logger.warning(
                    "%s-%d has a record at offset %d that is none of a registry: %s",
                    record.topic,
                    record.partition,
                    record.offset,
                    error,
                )
                continue
            if entry is not None:
                entries.append(entry)
