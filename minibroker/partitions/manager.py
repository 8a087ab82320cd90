"""All partitions that this broker leads; follows the metadata image.

Handlers ask here for a partition; the connection calls `commit` before it sends answers. Metadata
changes (`cluster/`) make and drop partitions.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, MinibrokerError, StorageError
from minibroker.ids import TopicPartition
from minibroker.partitions.checking import Checker
from minibroker.partitions.directories import LogDirectoryView
from minibroker.partitions.flushing import Flusher, Flushing
from minibroker.partitions.ownerless import keep_ownerless
from minibroker.partitions.partition import Partition
from minibroker.slices import TimeSlice

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    RunThen = Callable[
        [Callable[[], None], Callable[[MinibrokerError | OSError | None], None]], None
    ]
    from minibroker.cluster.image import MetadataImage, PartitionImage, TopicImage
    from minibroker.config.broker import BrokerConfig
    from minibroker.config.dynamic import DynamicConfig
    from minibroker.partitions.waiters import Waiter
    from minibroker.storage.log_manager import LogManager
    from minibroker.storage.partition_log import AppendInfo

logger = logging.getLogger(__name__)


def _run_now(
    task: Callable[[], None], done: Callable[[MinibrokerError | OSError | None], None]
) -> None:
    """Without a worker: at once."""
    try:
        task()
    except (MinibrokerError, OSError) as error:
        done(error)
    else:
        done(None)


def _ignore(_error: StorageError) -> None:
    """Nobody asked to be told."""


class Failable(Protocol):
    """A part of an answer that says "written", until the disk says otherwise."""

    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int


def fail_answer(answer: Failable) -> None:
    """Not written after all: what Kafka answers when the disk refuses."""
    answer.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1


PRODUCE_VERSIONS: Final = 14


class PartitionManager:
    """Topic name and index → partition; staged appends; who waits."""

    __slots__ = (
        "_broker_id",
        "_dynamic",
        "_image",
        "_leaving",
        "_logs",
        "_lost",
        "_offline",
        "_on_change",
        "_run_later",
        "_topics",
        "checker",
        "flusher",
        "flushing",
        "is_started",
        "on_storage_error",
        "routes",
        "run_then",
        "staged",
    )

    def __init__(
        self,
        *,
        broker_id: int,
        image: Callable[[], MetadataImage],
        logs: LogManager,
        dynamic: DynamicConfig,
        on_change: Callable[[], None],
        run_later: Callable[[int, Callable[[], None]], None],
    ) -> None:
        """`on_change` is told of commits; `run_later` gets a delay (ms) and blocking work."""
        self._broker_id = broker_id
        self._image = image
        self._logs = logs
        self._dynamic = dynamic
        self._on_change = on_change
        self._run_later = run_later
        self._offline: set[TopicPartition] = set()
        self._lost: set[TopicPartition] = set()
        """Of the offline ones those whose directory failed: not made again before the next start.
        """
        self._leaving: set[str] = set()
        """Topics that are marked for deletion: nobody is served, though the image may have them."""
        self.on_storage_error: Callable[[StorageError], None] = _ignore
        """Told of everything the disk refused (`directories.FailedDirectories`)."""
        self.is_started = False
        """Set when the cluster's image is complete. Until then every partition is one that was
        there before, and one whose directory is offline must not be begun anew in another."""
        self._topics: dict[str, dict[int, Partition]] = {}
        self.routes: list[dict[bytes, Any]] = [{} for _ in range(PRODUCE_VERSIONS)]
        """Per Produce version: topic and partition as the request has them → where it goes.
        `handlers/produce_fast` fills it; emptied whenever a partition comes, goes or changes."""
        self.staged: list[tuple[Partition, Failable, AppendInfo]] = []
        """Appends that `commit` completes: partition, claiming answer, the log's entry."""
        self.checker = Checker(_run_now)
        self.flusher = Flusher(_run_now, fail_answer)
        """The broker puts others in the place of these two, that leave the loop."""
        self.run_then: RunThen = _run_now
        """Has a worker do what may block, and tells the loop how it ended."""
        self.flushing: Flushing | None = None
        """What answers that have not left have to wait for."""

    # Finding.

    def find(self, topic: str, index: int) -> Partition | None:
        """The partition if this broker leads it."""
        partitions = self._topics.get(topic)
        return partitions.get(index) if partitions is not None else None

    def get(self, topic: str, index: int) -> Partition:
        """The partition, online and led here.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
        """
        partitions = self._topics.get(topic)
        if partitions is not None:
            partition = partitions.get(index)
            if partition is not None:
                return partition
        known = None if topic in self._leaving else self._image().topics.get(topic)
        if known is None or not 0 <= index < len(known.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if (topic, index) in self._offline:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Partition {topic}-{index} is in an offline log directory",
            )
        raise KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"Broker {self._broker_id} does not lead partition {topic}-{index}",
        )

    def high_watermark_of(self, name: TopicPartition) -> int | None:
        """None: not led here."""
        partition = self.find(name.topic, name.partition)
        return None if partition is None else partition.high_watermark

    def of_topic(self, topic: str) -> dict[int, Partition]:
        """Index → partition of a topic, those led here; empty when there are none."""
        return self._topics.get(topic, {})

    def log_directories(self) -> list[LogDirectoryView]:
        """Every configured log directory with the logs in it (DescribeLogDirs)."""
        return [LogDirectoryView(directory, self._logs) for directory in self._logs.directories]

    # Appending.

    def commit(self) -> None:
        """Write what was staged since the last call, one `writev` per partition.

        A disk that refuses turns the answers that claimed the append into KAFKA_STORAGE_ERROR; the
        log has cut itself back, so nothing torn stays. Where `flushing` is set afterwards, who
        sends answers takes it and waits for it first.
        """
        staged = self.staged
        if not staged:
            return
        self.staged = []
        for partition, answer, entry in staged:
            try:
                partition.log.write_staged()
            except StorageError as error:
                self.log_failed(partition, error)
            except Exception:  # a bug of ours costs this partition, the others are written
                logger.exception("cannot write to %s", partition)
            if entry.is_lost or entry.last_offset >= partition.log.log_end_offset:
                fail_answer(answer)
        self._on_change()
        # Only now readers are woken: what they read may be staged in several partitions.
        unsynced: dict[Partition, list[Failable]] | None = None
        for partition, answer, _ in staged:
            log = partition.log
            end_offset = log.log_end_offset
            if end_offset == partition.high_watermark:
                continue
            if end_offset - log.recovery_point < log.config.flush_messages:
                partition.advance_high_watermark(end_offset)
            else:
                unsynced = unsynced or {}
                unsynced.setdefault(partition, []).append(answer)
        if unsynced is not None:
            self._flush(unsynced)

    def _flush(self, unsynced: dict[Partition, list[Failable]]) -> None:
        """`flush.messages` are reached: these answers wait for fsync, and readers too."""
        flushing = self.flushing
        if flushing is None or flushing.future.done():
            flushing = Flushing()
        flushing.begin()
        for partition, answers in unsynced.items():
            self.flusher.flush(partition, answers, flushing)
        flushing.end()
        self.flushing = flushing

    def when_synced(self, then: Callable[[bool], None]) -> None:
        """Call `then` when the fsyncs are done that the answers of this read wait for: mostly now.

        For answers of other connections, to which what was just committed leads. `then` is told
        whether it is on the disk.
        """
        flushing = self.flushing
        if flushing is None:
            then(True)
        elif flushing.future.done():
            then(not flushing.is_failed)
        else:
            flushing.future.add_done_callback(lambda _future: then(not flushing.is_failed))

    def log_failed(self, partition: Partition, error: StorageError) -> None:
        """Say once what the disk refused; the next append tries again, as room may come back,
        unless the whole directory goes offline.
        """
        self._say_failed(f"partition {partition}", error)

    def _say_failed(self, what: str, error: StorageError) -> None:
        logger.error("%s: %s", what, error)
        self.on_storage_error(error)

    def take_offline(self, lost: Collection[TopicPartition]) -> None:
        """The directory of these partitions failed: KAFKA_STORAGE_ERROR from now on.

        Answers that claim staged appends fail with the next `commit`.
        """
        self._forget_routes()
        self._offline.update(lost)
        self._lost.update(lost)
        for topic, index in lost:
            partition = self._topics.get(topic, {}).pop(index, None)
            if partition is not None:
                self._wake(partition)

    @property
    def lost(self) -> list[TopicPartition]:
        """Partitions of this broker that it cannot serve until it is started again."""
        return list(self._lost)

    def delete_records(self, partition: Partition, offset: int) -> int:
        """Let the partition start at `offset` (-1: its high watermark); the low watermark then.

        Raises KafkaError: POLICY_VIOLATION, OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR.
        """
        self.commit()
        low_watermark = partition.delete_records(offset)
        self._on_change()
        return low_watermark

    # Metadata changes (`cluster.subscribe`).

    def on_topic_created(self, topic: TopicImage) -> None:
        """Make the partitions of a new topic that this broker leads."""
        self._leaving.discard(topic.name)
        self.on_partitions_added(topic, 0)

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Make those of the added partitions that this broker leads."""
        for index in range(old_count, len(topic.partitions)):
            if topic.partitions[index].leader == self._broker_id:
                self._lead(topic, index, topic.partitions[index])

    async def delete_logs(self, topic: TopicImage) -> None:
        """Take the logs of a topic out of service that is about to leave the metadata.

        Their new names are durable when this returns; their files go on a worker, after
        `file.delete.delay.ms`. Raises StorageError where a disk refuses: its directory is offline
        then, and the log is deleted when a start finds it and the topic's mark. From now on clients
        hear UNKNOWN_TOPIC_OR_PARTITION, as from Kafka, whose metadata cache forgets it first.

        Source: Kafka ReplicaManager.stopReplicas, LogManager.asyncDelete.
        """
        failure: StorageError | None = None
        directories: set[str] = set()
        self._leaving.add(topic.name)
        self.commit()
        self._forget_routes()
        turn = TimeSlice()
        for index in range(len(topic.partitions)):
            if turn.is_over:
                await turn.pause()
                self.commit()
                self._forget_routes()
            try:
                directories.update(self._delete_log(topic, index))
            except StorageError as error:
                failure = failure or error
        synced: asyncio.Future[StorageError | None] = asyncio.get_running_loop().create_future()

        def end(error: StorageError | None) -> None:
            if not synced.done():
                synced.set_result(error)

        self._sync_names(directories, end)
        failure = await synced or failure
        if failure is not None:
            raise failure

    def _sync_names(
        self, directories: Collection[str], then: Callable[[StorageError | None], None]
    ) -> None:
        """Have a worker sync these log directories; tell `then` what a disk refused."""

        def end(error: MinibrokerError | OSError | None) -> None:
            if error is not None:
                assert isinstance(error, StorageError)
                self._say_failed("names of deleted logs", error)
            then(error)

        if directories:
            self.run_then(partial(self._logs.sync_names, directories), end)
        else:
            then(None)

    def on_topic_deleted(self, topic: TopicImage) -> None:
        """Drop what `delete_logs` has left: all where another broker deleted the topic."""
        self.commit()
        self._forget_routes()
        directories: set[str] = set()
        for index in range(len(topic.partitions)):
            self._offline.discard(TopicPartition(topic.name, index))
            self._lost.discard(TopicPartition(topic.name, index))
            with suppress(StorageError):  # was said, and the directory is offline
                directories.update(self._delete_log(topic, index))
        self._topics.pop(topic.name, None)
        self._leaving.discard(topic.name)
        self._sync_names(directories, lambda _error: None)

    def _delete_log(self, topic: TopicImage, index: int) -> list[str]:
        """Take one log out of service, if there is one; its log directory. Raises StorageError."""
        partition = self._topics.get(topic.name, {}).pop(index, None)
        if partition is not None:
            self._wake(partition)
        try:
            log = self._logs.get(topic.name, index)
            if log is None or (partition is None and log.is_of_other_topic(topic.topic_id)):
                return []
            task = self._logs.delete(topic.name, index)
        except StorageError as error:
            self._say_failed(f"partition {topic.name}-{index}", error)
            raise
        assert task is not None
        # As Kafka: the broker's delay, whatever the topic's own `file.delete.delay.ms`.
        self._run_later(self._dynamic.topic_default.file_delete_delay_ms, task)
        return [log.log_directory]

    def begin(self) -> None:
        """The image is complete now: new partitions may be made; logs that it knows no topic of
        are named, and kept whole.
        """
        self.is_started = True
        keep_ownerless(self._logs, self._image(), self._broker_id, self._dynamic.topic_default)

    def on_leadership(self, topic: TopicImage, index: int) -> None:
        """Leader, epoch or in-sync replicas of one partition changed."""
        self._lead(topic, index, topic.partitions[index])

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        """Configurations come resolved, as `on_topic_config`."""

    def on_topic_config(self, topic: str | None) -> None:
        """A topic's configuration (None: every topic's) changed: its logs follow at once."""
        names = list(self._topics) if topic is None else [topic]
        for name in names:
            config = self._dynamic.topic(name)
            rules = self._logs.rules_of(config)
            for partition in self._topics.get(name, {}).values():
                partition.log.update_config(config, rules)

    def on_broker_config(self, config: BrokerConfig, changed: frozenset[str]) -> None:
        """Broker settings that logs go by; what topics inherit comes as `on_topic_config`."""
        self._logs.disk.producer_expiration_ms = config.producer_id_expiration_ms

    def _lead(self, topic: TopicImage, index: int, state: PartitionImage) -> None:
        if topic.name in self._leaving:
            return
        self._forget_routes()
        partitions = self._topics.setdefault(topic.name, {})
        partition = partitions.get(index)
        if state.leader != self._broker_id:
            if partition is not None:
                del partitions[index]
                self._wake(partition)
            return
        if partition is not None:
            if state.leader_epoch != partition.leader_epoch:
                self.commit()
                try:
                    partition.log.begin_leader_epoch(state.leader_epoch)
                except StorageError as error:
                    # The epoch is noted again with the next batch; readers go on meanwhile.
                    self.log_failed(partition, error)
            is_new_epoch = partition.leader_epoch != state.leader_epoch
            partition.leader_epoch = state.leader_epoch
            partition.isr_size = len(state.isr)
            if is_new_epoch:
                self._wake(partition)  # a fetch that named the old epoch is fenced
            return
        name = TopicPartition(topic.name, index)
        if not self.is_started and self._logs.may_be_lost(name):
            self.take_offline([name])
            logger.error("partition %s is offline: its log directory may be", name)
        if name in self._lost:
            return
        config = self._dynamic.topic(topic.name)
        try:
            log = self._logs.create_log(topic.name, index, topic.topic_id, config)
            log.update_config(config, self._logs.rules_of(config))
            log.begin_leader_epoch(state.leader_epoch)
        except (KafkaError, StorageError) as error:
            self._offline.add(name)
            logger.error("partition %s is offline: %s", name, error)
            if isinstance(error, StorageError):
                self.on_storage_error(error)
            return
        self._offline.discard(name)
        partitions[index] = Partition(
            self,
            topic=topic.name,
            index=index,
            topic_id=topic.topic_id,
            leader_epoch=state.leader_epoch,
            isr_size=len(state.isr),
            log=log,
        )

    def _forget_routes(self) -> None:
        for routes in self.routes:
            routes.clear()

    # Waiting.

    def _wake(self, partition: Partition) -> None:
        waiters: set[Waiter] | None = partition.waiters
        if waiters:
            for waiter in list(waiters):
                waiter.complete()

    def wake_all(self) -> None:
        """The broker stops: every long poll is answered with what there is."""
        for partitions in self._topics.values():
            for partition in partitions.values():
                self._wake(partition)
