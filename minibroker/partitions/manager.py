"""All partitions that this broker leads; follows the metadata image.

Handlers ask here for a partition; the connection calls `commit` before it sends answers. Metadata
changes (`cluster/`) make and drop partitions.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, StorageError
from minibroker.partitions.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.cluster.image import MetadataImage, PartitionImage, TopicImage
    from minibroker.config.broker import BrokerConfig
    from minibroker.config.dynamic import DynamicConfig
    from minibroker.partitions.waiters import DelayedFetch
    from minibroker.storage.log_directory import LogDirectory
    from minibroker.storage.log_manager import LogManager
    from minibroker.storage.partition_log import PartitionLog

logger = logging.getLogger(__name__)


class Failable(Protocol):
    """A part of an answer that says "written", until the disk says otherwise."""

    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int


def _fail(answer: Failable) -> None:
    """Not written after all: what Kafka answers when the disk refuses."""
    answer.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1


PRODUCE_VERSIONS: Final = 14


class LogDirectoryView:
    """One log directory as DescribeLogDirs shows it."""

    __slots__ = ("_directory", "_logs")

    def __init__(self, directory: LogDirectory, logs: LogManager) -> None:
        self._directory = directory
        self._logs = logs

    @property
    def path(self) -> str:
        """Absolute path, as Kafka names it."""
        return str(Path(self._directory.path).absolute())

    def space(self) -> tuple[int, int]:
        """Total and usable bytes of its file system. Raises StorageError."""
        return self._logs.space_of(self._directory)

    def logs(self) -> list[PartitionLog]:
        """The partitions' logs in it."""
        return self._logs.logs_in(self._directory)


class PartitionManager:
    """Topic name and index → partition; staged appends; who waits."""

    __slots__ = (
        "_broker_id",
        "_dynamic",
        "_image",
        "_logs",
        "_offline",
        "_on_change",
        "_run_later",
        "_topics",
        "routes",
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
        self._offline: set[tuple[str, int]] = set()
        self._topics: dict[str, dict[int, Partition]] = {}
        self.routes: list[dict[bytes, Any]] = [{} for _ in range(PRODUCE_VERSIONS)]
        """Per Produce version: topic and partition as the request has them → where it goes.
        `handlers/produce_fast` fills it; emptied whenever a partition comes, goes or changes."""
        self.staged: list[tuple[Partition, Failable, int]] = []
        """Appends whose bytes `commit` still has to write: partition, the answer that claims it,
        and the last offset."""

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
        known = self._image().topics.get(topic)
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
        log has cut itself back, so nothing torn stays.
        """
        staged = self.staged
        if not staged:
            return
        self.staged = []
        for partition, answer, last_offset in staged:
            log = partition.log
            try:
                log.write_staged()
            except StorageError as error:
                self.log_failed(partition, error)
            if last_offset >= log.log_end_offset:
                _fail(answer)
        self._on_change()
        # Only now readers are woken: what they read may be staged in several partitions.
        for partition, _, _ in staged:
            if partition.log.log_end_offset != partition.high_watermark:
                partition.written()

    def drop_lost(self, partition: Partition) -> None:
        """The log took staged appends back to make a later one fail: their answers fail at once,
        because the next append gets their offsets. What the log had written before stays."""
        kept = []
        for staged in self.staged:
            if staged[0] is partition and staged[2] >= partition.log.log_end_offset:
                _fail(staged[1])
            else:
                kept.append(staged)
        self.staged = kept

    def log_failed(self, partition: Partition, error: StorageError) -> None:
        """Say once what the disk refused; the next append tries again, as room may come back."""
        logger.error("partition %s: %s", partition, error)

    # Metadata changes (`cluster.subscribe`).

    def on_topic_created(self, topic: TopicImage) -> None:
        """Make the partitions of a new topic that this broker leads."""
        for index, partition in enumerate(topic.partitions):
            self._lead(topic, index, partition)

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Make those of the added partitions that this broker leads."""
        for index in range(old_count, len(topic.partitions)):
            self._lead(topic, index, topic.partitions[index])

    def on_topic_deleted(self, topic: TopicImage) -> None:
        """Drop the partitions; their files go on a worker, after `file.delete.delay.ms`."""
        self.commit()
        self._forget_routes()
        for partition in self._topics.pop(topic.name, {}).values():
            self._wake(partition)
            self._delete_log(partition)

    def _delete_log(self, partition: Partition) -> None:
        delay_ms = partition.log.config.file_delete_delay_ms
        try:
            task = self._logs.delete(partition.topic, partition.index)
        except StorageError as error:
            self.log_failed(partition, error)
        else:
            if task is not None:
                self._run_later(delay_ms, task)

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
        config = self._dynamic.topic(topic.name)
        try:
            log = self._logs.create_log(topic.name, index, topic.topic_id, config)
            log.update_config(config, self._logs.rules_of(config))
            log.begin_leader_epoch(state.leader_epoch)
        except (KafkaError, StorageError) as error:
            self._offline.add((topic.name, index))
            logger.error("partition %s-%d is offline: %s", topic.name, index, error)
            return
        self._offline.discard((topic.name, index))
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
        waiters: set[DelayedFetch] | None = partition.waiters
        if waiters:
            for waiter in list(waiters):
                waiter.complete()

    def wake_all(self) -> None:
        """The broker stops: every long poll is answered with what there is."""
        for partitions in self._topics.values():
            for partition in partitions.values():
                self._wake(partition)
