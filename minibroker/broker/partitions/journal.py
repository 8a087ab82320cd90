"""An internal topic as the journal of a coordinator: every decision is a record first.

`groups` keeps `__consumer_offsets` in one, `transactions` `__transaction_state`. A coordinator is
responsible for the keys (group ids, transactional ids) whose hash names a partition that this
broker leads:

    not led ──leadership──► LOADING ──everything replayed──► ACTIVE ──loss, deletion──► not led
                               ▲ └───unreadable log────────► FAILED ──────────────────────▲
                               └─────new leader epoch──────────┘

While a partition loads, its records are read and decoded on the worker, some at a time, and handed
to the listener on the loop, in slices and in the order of the log. Meanwhile requests get
COORDINATOR_LOAD_IN_PROGRESS.
Appends go the way of produced records: staged, written with everything else that one read of a
socket brought (`flush`) or at once (`write_staged`), and told when they are visible.

Source: Kafka 3.9 GroupMetadataManager, TransactionStateManager; 4.x CoordinatorRuntime.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from minibroker.broker.cluster.internal_topics import new_topic
from minibroker.broker.cluster.updates import ClusterListener
from minibroker.broker.partitions.cold_reads import ROUNDS_MAX, ColdError
from minibroker.broker.partitions.journal_partition import (
    JournalPartition,
    JournalState,
    LoadedPart,
    StagedAppend,
    coordinator_error,
    decode_batches,
)
from minibroker.broker.partitions.partition import LOG_END
from minibroker.broker.slices import run_in_slices
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, CorruptionError, KafkaError
from minibroker.kafka.ids import NO_PRODUCER_ID
from minibroker.kafka.java_strings import partition_for
from minibroker.kafka.records.batch import TRANSACTIONAL_FLAG
from minibroker.kafka.records.builder import encode_record, seal_batch
from minibroker.kafka.records.compression import NONE, compress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.broker.partitions.journal_partition import DecodeBatch
    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.slices import Steps
    from minibroker.broker.worker import Runner
    from minibroker.clock import Clock
    from minibroker.kafka.records.batch import BatchHeader
    from minibroker.kafka.records.record import Record

    JournalRecord = tuple[bytes, bytes | None]
    """Key and value as stored; value None is a tombstone."""

__all__ = ["Journal", "JournalListener", "JournalState", "StagedAppend"]

logger = logging.getLogger(__name__)

LOAD_BYTES: int = 256 * 1024
"""Read and decoded at a time: some two thousand records, applied in slices."""
TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
"""Errors of records that are larger than the topic takes."""


class JournalListener(Protocol):
    """The coordinator; called on the loop."""

    def on_batch(self, index: int, header: BatchHeader, records: Sequence[Any]) -> None:
        """During load: the next batch of partition `index`, control batches (markers) included.

        A batch of many records comes in parts. `records` are `Record`s, or what the journal's
        `decode` made of them.
        """

    def on_loaded(self, index: int) -> None:
        """Hear that everything was replayed: the partition is ACTIVE."""

    def on_unloaded(self, index: int) -> None:
        """Forget the partition: this broker does not lead it any more, its topic is gone, or it
        cannot be loaded; also called when it was not loaded to the end.
        """


class Journal(ClusterListener):
    """One internal topic; belongs to the loop's thread."""

    __slots__ = (
        "_clock",
        "_cluster",
        "_codec",
        "_config",
        "_decode",
        "_decode_batch",
        "_listener",
        "_manager",
        "_partitions",
        "_worker",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        *,
        cluster: Cluster,
        partitions: PartitionManager,
        clock: Clock,
        config: BrokerConfig,
        worker: Runner,
        listener: JournalListener,
        codec: int = 0,
        decode: Callable[[BatchHeader, list[Record]], Sequence[Any]] | None = None,
        decode_batch: DecodeBatch | None = None,
    ) -> None:
        """`worker` decodes; `codec` is the id of the compression of
        appended batches (`offsets.topic.compression.codec`). Called on the worker: `decode`, and
        before it `decode_batch`, for batches that can be read in one go.
        """
        self.topic = topic
        self._cluster = cluster
        self._manager = partitions
        self._clock = clock
        self._config = config
        self._worker = worker
        self._listener = listener
        self._codec = codec
        self._decode = decode
        self._decode_batch = decode_batch
        self._partitions: dict[int, JournalPartition] = {}

    def start(self) -> None:
        """Follow the cluster from now on; what this broker leads already is loaded.

        Start it after the `PartitionManager` was subscribed to the cluster.
        """
        self._cluster.subscribe(self)
        topic = self._cluster.image.topics.get(self.topic)
        if topic is not None:
            self.on_topic_created(topic)

    def close(self) -> None:
        """Forget the partitions: their logs are about to be closed."""
        self._partitions.clear()

    # The topic.

    async def ensure_topic(self) -> TopicImage:
        """Return the topic's image, after creating it if there is none.

        Raises KafkaError(COORDINATOR_NOT_AVAILABLE) where it cannot be created now. A broker that
        is not the controller only begins to create it, and raises that.
        """
        topic = self._cluster.image.topics.get(self.topic)
        if topic is not None:
            return topic
        new = new_topic(self.topic, self._config)
        if not self._cluster.is_controller:
            self._cluster.auto_creation.begin({self.topic: new})
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        try:
            return await self._cluster.create_topic(
                self.topic, new.partition_count, new.replication_factor, configs=new.configs
            )
        except KafkaError as error:
            if error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
                topic = self._cluster.image.topics.get(self.topic)
                if topic is not None:
                    return topic
            logger.warning("cannot create %s: %s", self.topic, error)
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.detail) from error
        except CoordinationError as absence:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(absence)) from absence

    def partition_of(self, key: str) -> int:
        """Return the partition that keeps `key`; without a topic, by the settings for a new one."""
        topic = self._cluster.image.topics.get(self.topic)
        if topic is not None:
            count = len(topic.partitions)
        else:
            count = new_topic(self.topic, self._config).partition_count
        return partition_for(key, count)

    # State.

    def state_of(self, index: int) -> JournalState | None:
        """Return the state of a partition, None: this broker does not lead it."""
        partition = self._partitions.get(index)
        return None if partition is None else partition.state

    def is_active(self, index: int) -> bool:
        """Return whether this broker serves the partition now."""
        return self.state_of(index) is JournalState.ACTIVE

    @property
    def is_loading(self) -> bool:
        """Return whether a partition is being loaded: then a list of everything is not complete."""
        return any(
            partition.state is JournalState.LOADING for partition in self._partitions.values()
        )

    def active_indexes(self) -> list[int]:
        """Return the partitions that are loaded."""
        return [
            partition.index
            for partition in self._partitions.values()
            if partition.state is JournalState.ACTIVE
        ]

    def check_active(self, index: int) -> None:
        """Raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR."""
        self._get_active(index)

    def leader_epoch_of(self, index: int) -> int:
        """Return the leader epoch, which coordinators call theirs.

        Raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        return self._get_active(index).partition.leader_epoch

    def end_offset_of(self, index: int) -> int:
        """Return the log end offset, what is staged included.

        Raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        return self._get_active(index).partition.log_end_offset

    def is_replicated(self, index: int) -> bool:
        """Return whether records are visible only when followers have them, too."""
        partition = self._partitions.get(index)
        return partition is not None and partition.partition.replicas is not None

    def lags(self, index: int) -> bool:
        """Return whether a record may be written and not visible yet: followers, or an fsync
        (`flush.messages`), come in between.
        """
        partition = self._partitions.get(index)
        return partition is not None and partition.partition.lags

    def is_told(self, index: int) -> bool:
        """Return whether this broker leads the partition, and nothing staged in it waits."""
        partition = self._partitions.get(index)
        return partition is not None and not partition.staged

    def _get_active(self, index: int) -> JournalPartition:
        partition = self._partitions.get(index)
        if partition is not None:
            if partition.state is JournalState.ACTIVE:
                return partition
            if partition.state is JournalState.LOADING:
                raise KafkaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    f"partition {index} of {self.topic} is being loaded",
                )
        raise KafkaError(
            ErrorCode.NOT_COORDINATOR,
            f"this broker does not serve partition {index} of {self.topic}",
        )

    # Appending.

    def batch_of(
        self,
        records: Iterable[JournalRecord],
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> Steps[bytearray]:
        """Return `records` (at least one) as one batch; with a producer, of its transaction."""
        now_ms = self._clock.now_ms()
        body = bytearray()
        count = 0
        for key, value in records:
            if count:
                yield
            encode_record(body, key, value, (), count, 0)
            count += 1
        is_transactional = producer_id != NO_PRODUCER_ID
        return seal_batch(
            body if self._codec == NONE else compress(self._codec, body),
            attributes=self._codec | TRANSACTIONAL_FLAG * is_transactional,
            base_offset=0,
            leader_epoch=-1,
            last_delta=count - 1,
            timestamps=(now_ms, now_ms),
            producer=(producer_id, producer_epoch, base_sequence),
            count=count,
        )

    def stage(
        self,
        index: int,
        batch: bytearray,
        *,
        on_written: Callable[[int], None] | None = None,
        on_failed: Callable[[ErrorCode], None] | None = None,
        required_acks: int = -1,
    ) -> StagedAppend:
        """Have a batch of `batch_of` written by the next `AppendQueue.commit`.

        Exactly one of the two is called then, before any answer of this socket read leaves:
        `on_written` with the first offset, in the order of the log, or `on_failed` with the code
        for the client.

        Raises KafkaError as Kafka's coordinators turn the log's: COORDINATOR_NOT_AVAILABLE (too few
        replicas in sync, no such partition), NOT_COORDINATOR (not led, the disk refused),
        COORDINATOR_LOAD_IN_PROGRESS, and MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE and any other,
        which mean different things to different callers, as they are.
        """
        partition = self._get_active(index)
        staged = StagedAppend(on_written, on_failed)
        try:
            appended = partition.partition.append(
                memoryview(batch),
                required_acks,
                self._clock.now_ms(),
                staged,
                origin="coordinator",
            )
        except KafkaError as error:
            raise KafkaError(coordinator_error(error.code), error.detail) from error
        staged.first_offset = appended.first_offset
        staged.last_offset = appended.last_offset
        partition.staged.append(staged)
        return staged

    def when_told(
        self, index: int, then: Callable[[], None], failed: Callable[[ErrorCode], None]
    ) -> None:
        """Call `then` when everything staged in a partition so far took effect: at once where
        nothing waits.

        `failed` is called instead, with the code for clients, where this broker loses the partition
        before, or does not lead it.
        """
        partition = self._partitions.get(index)
        if partition is None:
            failed(ErrorCode.NOT_COORDINATOR)
        else:
            partition.when_told(then, failed)

    def flush(self) -> None:
        """Write what is staged: whoever looks at state sees all that was accepted before."""
        if self._manager.appends.staged:
            self._manager.commit()

    def write_staged(self) -> None:
        """Write what was staged since the last `flush`; its entries are told, no answer waits."""
        self._manager.commit_told()

    # Changes of the cluster (`ClusterListener`).

    def on_topic_created(self, topic: TopicImage) -> None:
        """Load the partitions of the journal's topic that this broker leads."""
        if topic.name == self.topic:
            for index in list(self._manager.of_topic(self.topic)):
                self._follow(index)

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Load added partitions, which are empty; keys that hash to them now start there anew."""
        if topic.name == self.topic:
            for index in range(old_count, len(topic.partitions)):
                self._follow(index)

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Load what came, unload what went. A new epoch of the same leader changes nothing, but
        that what could not be loaded is tried again. Source: Kafka CoordinatorRuntime.
        """
        if topic.name == self.topic:
            self._follow(partition)

    def on_topic_deleted(self, topic: TopicImage, _evidence: DeletionEvidence) -> None:
        """Unload everything: the journal is gone."""
        self.on_topic_missing(topic)

    def on_topic_missing(self, topic: TopicImage) -> None:
        """Unload everything: the journal is not served."""
        if topic.name == self.topic:
            for index in list(self._partitions):
                self._unload(index)

    def _follow(self, index: int) -> None:
        led = self._manager.find(self.topic, index)
        journal_partition = self._partitions.get(index)
        if journal_partition is not None and journal_partition.partition is led:
            is_new_epoch = led.leader_epoch > journal_partition.leader_epoch
            if journal_partition.state is not JournalState.FAILED or not is_new_epoch:
                return
        if journal_partition is not None:
            self._unload(index)
        if led is not None:
            partition = JournalPartition(led)
            self._partitions[index] = partition
            self._load_next(partition)

    def _unload(self, index: int) -> None:
        partition = self._partitions.pop(index)
        partition.leave()
        partition.fail_staged()
        if partition.state is not JournalState.FAILED:
            self._listener.on_unloaded(index)

    # Loading.

    def _load_next(self, partition: JournalPartition) -> None:
        """Have the next part read by the worker, or be done.

        Loading ends where the log does, not where readers do: what waits for its fsync, say, was
        decided too. It is not visible before the high watermark is there (`await_loaded`). Source:
        Kafka CoordinatorLoaderImpl, GroupMetadataManager.
        """
        led = partition.partition
        led.flush_staged()
        offset = max(partition.next_offset, led.log_start_offset)
        try:
            led.require_producers()  # offsets of transactions are appended with producers' ids
            if offset >= led.log_end_offset:
                self._finish_loading(partition)
                return
            log_read = led.read(
                offset,
                LOAD_BYTES,
                isolation_level=LOG_END,
                resident_only=partition.cold_rounds < ROUNDS_MAX,
            )
        except ColdError as cold:
            partition.cold_rounds += 1
            cold.load(partial(self._go_on_loading, partition))
            return
        except KafkaError as error:
            self._fail_loading(partition, error)
            return
        partition.cold_rounds = 0
        if not log_read.records:
            self._end_in_gap(partition, offset)
            return
        loop = asyncio.get_running_loop()
        decode, decode_batch = self._decode, self._decode_batch

        def decode_part() -> None:
            part: LoadedPart | Exception
            try:
                part = decode_batches(log_read.records, offset, decode, decode_batch)
            except Exception as error:  # whatever it is, the partition must not load for ever
                part = error
            loop.call_soon_threadsafe(self._apply, partition, part)

        self._worker.run_later(decode_part)

    def _go_on_loading(self, partition: JournalPartition) -> None:
        """Go on when a worker has read what was missing, unless the partition is gone meanwhile."""
        if self._partitions.get(partition.index) is partition:
            self._load_next(partition)

    def _end_in_gap(self, partition: JournalPartition, offset: int) -> None:
        """End the load where no batch is at `offset` or behind it, and the log ends later:
        compaction took the last records, which leaves nothing but an empty active segment behind
        them.
        """
        if partition.partition.log.active_segment.size_bytes:
            end_offset = partition.partition.log_end_offset
            error = CorruptionError(
                f"no batch from offset {offset} on, the log ends at {end_offset}"
            )
            self._fail_loading(partition, error)
        else:
            self._finish_loading(partition)

    def _apply(self, partition: JournalPartition, part: LoadedPart | Exception) -> None:
        if self._partitions.get(partition.index) is not partition:
            return  # not led any more
        if isinstance(part, Exception):
            self._fail_loading(partition, part)
            return
        if part.next_offset == partition.next_offset:
            error = CorruptionError(f"no whole batch at offset {part.next_offset}")
            self._fail_loading(partition, error)
            return
        run_in_slices(self._replay(partition, part))

    def _replay(self, partition: JournalPartition, part: LoadedPart) -> Iterator[None]:
        """Hand a part to the listener in short steps, then load the next one."""
        for header, records in part.batches:
            try:
                self._listener.on_batch(partition.index, header, records)
            except Exception as error:  # one bad partition must not keep the others from serving
                logger.exception("cannot apply %s", partition.partition)
                self._fail_loading(partition, error)
                return
            yield
            if self._partitions.get(partition.index) is not partition:
                return  # not led any more
        partition.next_offset = part.next_offset
        self._load_next(partition)

    def _finish_loading(self, partition: JournalPartition) -> None:
        partition.state = JournalState.ACTIVE
        partition.await_loaded()
        partition.stay()
        try:
            self._listener.on_loaded(partition.index)
        except Exception as error:  # one bad partition must not keep the others from serving
            logger.exception("cannot serve %s", partition.partition)
            self._fail_loading(partition, error)

    def _fail_loading(self, partition: JournalPartition, error: Exception) -> None:
        partition.state = JournalState.FAILED
        partition.leave()
        self._listener.on_unloaded(partition.index)
        logger.error(
            "%s cannot be loaded from offset %d on, what it coordinates is not served: %s",
            partition.partition,
            partition.next_offset,
            error,
        )
