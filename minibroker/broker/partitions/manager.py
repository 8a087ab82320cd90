"""All partitions of this broker; follows the metadata image.

Handlers ask here for a partition, and get those that this broker leads. Metadata changes
(`cluster/`) and failed disks make partitions and change their roles (`role`).

A partition with a replica on this broker has a log here, as a leader's or a follower's. Fetchers
bring a follower's log to where its leader's is (`replication.fetcher`). Logs of topics that are
deleted, and of replicas that move away, leave, and those of topics that are missing in the metadata
are kept (`leaving_logs`).
"""

from __future__ import annotations

import asyncio
import logging
from functools import cache
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.image import NO_LEADER
from minibroker.broker.cluster.updates import ClusterListener
from minibroker.broker.partitions.append_queue import AppendQueue
from minibroker.broker.partitions.leaving_logs import PendingDeletions, keep_missing, keep_ownerless
from minibroker.broker.slices import run_in_slices
from minibroker.broker.worker import AT_ONCE
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError, UnexpectedOffsetError
from minibroker.kafka.ids import NO_LEADER_EPOCH, ZERO_TOPIC_ID, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator

    from minibroker.broker.cluster.image import MetadataImage, PartitionImage, TopicImage
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.broker.partitions.checking import Checker
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.partitions.replicas import FollowerId, ReplicaRules
    from minibroker.broker.storage.disk import Disk
    from minibroker.broker.storage.log_directory import LogDirectory
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import PartitionLog
    from minibroker.broker.worker import Workers
    from minibroker.kafka.errors import MinibrokerError
    from minibroker.kafka.ids import TopicId

logger = logging.getLogger(__name__)


class LogDirectoryView:
    """One log directory as DescribeLogDirs shows it."""

    __slots__ = ("_directory", "_logs")

    def __init__(self, directory: LogDirectory, logs: LogManager) -> None:
        self._directory = directory
        self._logs = logs

    @property
    def path(self) -> str:
        """Absolute path, as Kafka names it."""
        from pathlib import Path  # noqa: PLC0415  a start does without

        return str(Path(self._directory.path).absolute())

    @property
    def configured_path(self) -> str:
        """Return the path in `log.dirs`."""
        return self._directory.path

    @property
    def is_offline(self) -> bool:
        """Return whether the directory failed, and nothing in it is served."""
        return self._directory.is_offline

    def space(self) -> tuple[int, int]:
        """Return total and usable bytes of its file system. Raises StorageError."""
        return self._logs.space_of(self._directory)

    def logs(self) -> list[PartitionLog]:
        """Return the partitions' logs in it."""
        return self._logs.logs_in(self._directory)


DELETED_AT_ONCE: Final = 10
"""A topic that leaves the metadata does so in one turn if it has at most so many partitions."""


@cache
def _partition_type() -> type[Partition]:
    """Return `Partition`. A start without a topic does without its module, see `LogManager`."""
    from minibroker.broker.partitions.partition import Partition  # noqa: PLC0415

    return Partition


def _ignore(_error: StorageError) -> None:
    """Do nothing: nobody asked to be told."""


def _have_no_followers(_partition: Partition) -> None:
    """Replicate nothing: there is no other broker."""


def _ignore_follower(_partition: Partition, _follower: FollowerId) -> None:
    """Keep the ISR as it is."""


class PartitionManager(ClusterListener):
    """Topic name and index → partition; the queue of their appends. Owned by the loop."""

    __slots__ = (
        "_broker_id",
        "_checker",
        "_dynamic",
        "_image",
        "_logs",
        "_on_change",
        "_replica_rules",
        "_role_listeners",
        "_topics",
        "_workers",
        "appends",
        "deletions",
        "is_started",
        "on_follower_fetch",
        "on_role",
        "on_storage_error",
    )

    def __init__(
        self,
        *,
        broker_id: int,
        image: Callable[[], MetadataImage],
        logs: LogManager,
        dynamic: DynamicConfig,
        on_change: Callable[[], None],
        workers: Workers = AT_ONCE,
    ) -> None:
        """Tell `on_change` of commits. `workers` sync, check and remove."""
        self._broker_id = broker_id
        """Constant after construction, as are the callables and parts that follow."""
        self._image = image
        self._logs = logs
        self._dynamic = dynamic
        self._on_change = on_change
        self._workers = workers
        self.on_storage_error: Callable[[StorageError], None] = _ignore
        """Told of everything the disk refused (`directories.FailedDirectories`)."""
        self.is_started = False
        """Set when the cluster's image is complete. Until then every partition is one that was
        there before, and one whose directory is offline must not be begun anew in another."""
        self._topics: dict[str, dict[int, Partition]] = {}
        """In every role."""
        self._role_listeners: list[Callable[[], None]] = []
        self.appends = AppendQueue(workers.flushes, on_change=on_change, on_failed=self._say_failed)
        self.deletions = PendingDeletions(
            image=image,
            logs=logs,
            dynamic=dynamic,
            workers=workers.files,
            on_failed=self._say_failed,
        )
        self._checker: Checker | None = None
        self._replica_rules: ReplicaRules | None = None
        """How leaders judge their followers. Made with the first role."""
        self.on_role: Callable[[Partition], None] = _have_no_followers
        """Told of each role that a partition with a log takes (`replication`)."""
        self.on_follower_fetch: Callable[[Partition, FollowerId], None] = _ignore_follower
        """Told of each fetch of a follower (`replication`)."""

    @property
    def disk(self) -> Disk:
        """Return the door to the files of all logs."""
        return self._logs.disk

    # Finding.

    def find(self, topic: str, index: int) -> Partition | None:
        """Return the partition if this broker leads it, else None."""
        partition = self.replica(topic, index)
        return partition if partition is not None and partition.is_leader else None

    def replica(self, topic: str, index: int) -> Partition | None:
        """Return the partition in any role, None if this broker has nothing of it."""
        partitions = self._topics.get(topic)
        return partitions.get(index) if partitions is not None else None

    def get(self, topic: str, index: int, leader_epoch: int = NO_LEADER_EPOCH) -> Partition:
        """Return the partition, online and led here in `leader_epoch` (-1: in any).

        Raises KafkaError: as `hosted` and `check_leads`.
        """
        partition = self.hosted(topic, index)
        self.check_leads(partition, leader_epoch)
        return partition

    def hosted(self, topic: str, index: int) -> Partition:
        """Return the partition, a leader's or a follower's.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, and where the partition
        is on other brokers only, NOT_LEADER_OR_FOLLOWER. Source: Kafka
        ReplicaManager.getPartitionOrError.
        """
        partitions = self._topics.get(topic)
        partition = partitions.get(index) if partitions is not None else None
        if partition is not None and partition.is_leader:
            return partition
        if self._image().partition(topic, index) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition is not None and not partition.has_log:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Partition {topic}-{index} is in an offline log directory",
            )
        if partition is None:
            raise self._leads_not(f"{topic}-{index}")
        return partition

    def check_leads(self, partition: Partition, leader_epoch: int) -> None:
        """Compare the leader epoch that a client believes in, -1 for none, then the role.

        Raises KafkaError: FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH, also of a follower, then
        NOT_LEADER_OR_FOLLOWER. Source: Kafka Partition.getLocalLog.
        """
        if leader_epoch != NO_LEADER_EPOCH:
            partition.check_leader_epoch(leader_epoch)
        if not partition.is_leader:
            raise self._leads_not(str(partition))

    def check_has_replica(self, partition: Partition, broker_id: int, leader_epoch: int) -> None:
        """Check that a broker which fetches as a follower has a replica of what is led here.

        Raises KafkaError: UNKNOWN_LEADER_EPOCH where it named the leader epoch, which is the right
        one: this broker may not have heard of the replica yet. NOT_LEADER_OR_FOLLOWER where it
        named none, as old versions. Source: Kafka Partition.followerReplicaOrThrow.
        """
        replicas = partition.replicas
        if replicas is None or broker_id not in replicas.followers:
            code = ErrorCode.UNKNOWN_LEADER_EPOCH
            if leader_epoch == NO_LEADER_EPOCH:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(code, f"broker {broker_id} has no replica of {partition}")

    def _leads_not(self, name: str) -> KafkaError:
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"Broker {self._broker_id} does not lead partition {name}",
        )

    def high_watermark_of(self, name: TopicPartition) -> int | None:
        """Return the high watermark of a leader or a follower, None where there is neither."""
        partition = self.replica(name.topic, name.partition)
        if partition is None or not partition.has_log:
            return None
        return partition.high_watermark

    def of_topic(self, topic: str) -> dict[int, Partition]:
        """Return index → partition of a topic, those led here; empty if there are none."""
        partitions = self._topics.get(topic, {})
        return {index: partition for index, partition in partitions.items() if partition.is_leader}

    def log_directories(self) -> list[LogDirectoryView]:
        """Return every configured log directory with the logs in it (DescribeLogDirs)."""
        return [LogDirectoryView(directory, self._logs) for directory in self._logs.directories]

    # Disks.

    def commit(self) -> None:
        """Write what is staged (`AppendQueue.commit`)."""
        self.appends.commit()

    def commit_told(self) -> None:
        """Write what is staged and tells by itself (`AppendQueue.commit_told`)."""
        self.appends.commit_told()

    def _say_failed(self, subject: str, error: StorageError) -> None:
        """Log an error of a disk with its subject, or count it, and pass it on."""
        self._logs.note_refusal(subject, error)
        self.on_storage_error(error)

    def take_offline(self, lost: Collection[TopicPartition]) -> None:
        """Answer KAFKA_STORAGE_ERROR for these partitions from now on: their directory failed.

        Answers that claim staged appends fail with the next `commit`. A log without a partition may
        be one of a topic that is being deleted, whose name is free for another one soon.
        """
        self._tell_roles_change()
        for topic, index in lost:
            partition = self.replica(topic, index)
            if partition is None:
                partition = self._add(topic, index, self.deletions.id_of(topic))
            partition.lose_directory()
            partition.wake()

    @property
    def lost(self) -> list[TopicPartition]:
        """Return the partitions of this broker that it cannot serve until it is started again."""
        return [
            TopicPartition(topic, index)
            for topic, partitions in self._topics.items()
            for index, partition in partitions.items()
            if partition.is_lost
        ]

    def delete_records(self, partition: Partition, offset: int) -> int:
        """Let the partition start at `offset` (-1: its high watermark); return that offset.

        The followers learn of it with their next Fetch; it is done when the low watermark is there.
        Raises KafkaError: NOT_LEADER_OR_FOLLOWER, POLICY_VIOLATION, OFFSET_OUT_OF_RANGE,
        KAFKA_STORAGE_ERROR.
        """
        self.commit()
        self.check_leads(partition, NO_LEADER_EPOCH)  # the commit may take it offline
        start_offset = partition.delete_records(offset)
        self._on_change()
        return start_offset

    # Following a leader: fetchers call this with its answers (`replication.fetcher`).

    def append_as_follower(
        self,
        partition: Partition,
        records: memoryview,
        *,
        leader_high_watermark: int,
        leader_log_start_offset: int,
    ) -> None:
        """Append the records of a Fetch answer, with the offsets and epochs of the leader.

        They are written when this returns. The high watermark is the leader's, as far as the log
        reaches; it may go back. The log starts where the leader's does, once that is committed.
        Nothing is appended where the log has to begin anew: `cut_saved` comes first then.
        Raises KafkaError: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, and as
        `PartitionLog.append_as_follower`.

        Source: Kafka ReplicaFetcherThread.processPartitionData,
        Partition.appendRecordsToFollowerOrFutureReplica.
        """
        partition.check_follows()
        log, epoch = partition.log, partition.leader_epoch
        high_watermark_before = log.high_watermark
        try:
            try:
                log.append_as_follower(records, epoch)
            except UnexpectedOffsetError as error:
                # The leader's log starts inside of a batch, which the leader sends as a whole.
                end_offset = log.log_end_offset
                if not error.first_offset < end_offset <= error.last_offset:
                    raise
                if not log.is_empty:
                    if leader_log_start_offset < end_offset:
                        raise
                    self._begin_behind(partition, leader_log_start_offset)
                    return
                # No checkpoint has to follow first: a start checks this batch, as it ends beyond.
                log.truncate_to(error.first_offset)
                log.append_as_follower(records, epoch)
            high_watermark = log.update_high_watermark(leader_high_watermark)
            if leader_log_start_offset <= high_watermark:
                log.advance_log_start(leader_log_start_offset, high_watermark)
        except StorageError as error:
            self.appends.log_failed(partition, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        if high_watermark != high_watermark_before:
            partition.tell_readers()  # consumers may read from a follower

    def _begin_behind(self, partition: Partition, offset: int) -> None:
        """Remove everything of a follower that ends inside of its leader's first batch, while the
        leader's log starts at `offset`, there or behind. The next answer has that batch again.

        The two logs differ there, and the leader's epochs cannot say so: it has deleted what they
        tell of. Kafka follows such a partition no more.
        """
        logger.warning(
            "%s-%d begins anew at offset %d, where its leader's log starts: that has another batch "
            "at the end of this one, offset %d",
            partition.topic,
            partition.index,
            offset,
            partition.log_end_offset,
        )
        self.begin_anew(partition, offset)

    def truncate(self, partition: Partition, offset: int) -> None:
        """Remove everything of a follower from `offset` on; its high watermark is at most `offset`
        then. Append nothing before `cut_saved`.

        Raises KafkaError: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
        """
        partition.check_follows()
        try:
            self._logs.truncate(partition.topic, partition.index, offset)
        except StorageError as error:
            self.appends.log_failed(partition, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        partition.tell_readers()

    def begin_anew(self, partition: Partition, offset: int) -> None:
        """Remove everything of a follower, whose log begins at `offset` then. Append nothing before
        `cut_saved`.

        Raises KafkaError: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
        """
        partition.check_follows()
        try:
            self._logs.begin_anew(partition.topic, partition.index, offset)
        except StorageError as error:
            self.appends.log_failed(partition, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        partition.tell_readers()

    async def cut_saved(self, partition: Partition) -> None:
        """Return when the checkpoints have followed the last truncation of a partition, if there
        was one. An append before would wait for the disk on the loop.
        """
        save_cut = partition.log.unsaved_cut if partition.has_log else None
        if save_cut is None:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(_error: MinibrokerError | OSError | None) -> None:
            """Go on; an error is told by the worker, and by the next append."""
            if not future.done():
                future.set_result(None)

        # The worker has it already. This stands behind it in the worker's queue.
        self._workers.files.of(partition.log.log_directory).run_then(save_cut, done)
        await future

    # Followers of what this broker leads.

    def follower_fetched(
        self, partition: Partition, follower: FollowerId, offset: int, log_start_offset: int
    ) -> None:
        """Note that a follower fetches from `offset`, and so has everything before.

        Raises KafkaError(NOT_LEADER_OR_FOLLOWER): that broker has no replica, or was started again
        since.
        """
        partition.follower_fetched(follower, offset, log_start_offset)
        self.on_follower_fetch(partition, follower)

    def with_followers(self) -> Iterator[Partition]:
        """Yield the partitions led here that have followers."""
        for partitions in self._topics.values():
            for partition in partitions.values():
                if partition.replicas is not None:
                    yield partition

    # Metadata changes (`cluster.subscribe`).

    def on_topic_created(self, topic: TopicImage) -> None:
        """Make the partitions of a new topic that are here."""
        self.deletions.finish(topic.name)
        self.deletions.forget_errors(topic.name)
        self._forget_lost_of_others(topic)
        self.on_partitions_added(topic, 0)

    def _forget_lost_of_others(self, topic: TopicImage) -> None:
        """Forget the partitions in offline directories that an earlier topic of this name has."""
        hosted = self._topics.get(topic.name, {})
        for index, partition in list(hosted.items()):
            if partition.topic_id not in (topic.topic_id, ZERO_TOPIC_ID):
                del hosted[index]

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Make those of the added partitions that are here."""
        for index in range(old_count, len(topic.partitions)):
            if topic.partitions[index].leader != NO_LEADER:
                self._follow_image(topic, index)

    async def delete_logs(self, topic: TopicImage, evidence: DeletionEvidence) -> None:
        """Take the logs of a topic out of service that has left the metadata.

        Their new names are durable when this returns; their files go on a worker, after
        `file.delete.delay.ms`. Raises StorageError where a disk refuses: its directory is offline
        then, and the log is deleted when a start finds it and the topic's mark.

        Source: Kafka ReplicaManager.stopReplicas, LogManager.asyncDelete.
        """
        if not self.deletions.is_under_way(topic.name):
            run_in_slices(self._deletion_steps(topic, evidence))  # a start found the mark
        await self.deletions.wait_until_settled(topic.name)
        self.deletions.check_refused(topic.name)

    def on_topic_deleted(self, topic: TopicImage, evidence: DeletionEvidence) -> None:
        """Forget the topic's partitions, and delete their logs, a few at a time."""
        self.deletions.forget_errors(topic.name)
        self._run_steps(topic, self._deletion_steps(topic, evidence))

    def on_topic_missing(self, topic: TopicImage) -> None:
        """Forget the topic's partitions, and keep their logs, which are served again when the topic
        comes back. One in an offline directory stays as it is: it must not be begun anew elsewhere.
        """
        partitions = self._give_up(topic.name)
        lost = {index: partition for index, partition in partitions.items() if partition.is_lost}
        if lost:
            self._topics[topic.name] = lost
        with_logs = [partition for partition in partitions.values() if partition.has_log]
        if with_logs:
            logger.warning(
                "topic %s is not in the metadata any more, and nothing says that it was deleted: "
                "%d logs of it are kept and not served",
                *(topic.name, len(with_logs)),
            )
        steps = keep_missing(self._logs, with_logs, self._dynamic.topic_default)
        self._run_steps(topic, self.deletions.begin_keeping(topic.name, steps))

    def _deletion_steps(self, topic: TopicImage, evidence: DeletionEvidence) -> Generator[None]:
        """Take the topic's partitions out of service; return the steps that delete their logs."""
        return self.deletions.begin(topic, self._give_up(topic.name), evidence)

    def _give_up(self, topic: str) -> dict[int, Partition]:
        """Return the partitions of a topic, which nobody finds any more; nothing is staged."""
        self.deletions.finish(topic)
        self.commit()
        self._tell_roles_change()
        return self._topics.pop(topic, {})

    def _run_steps(self, topic: TopicImage, steps: Generator[None]) -> None:
        """Take these steps of `deletions`, those of a small topic at once."""
        if len(topic.partitions) <= DELETED_AT_ONCE:
            self.deletions.finish(topic.name)
        else:
            run_in_slices(steps)

    def begin(self) -> None:
        """Make new partitions from now on: the image is complete. Name the logs that it knows no
        topic of, and keep them whole.
        """
        self.is_started = True
        keep_ownerless(self._logs, self._image(), self._broker_id, self._dynamic.topic_default)

    def on_leadership(self, topic: TopicImage, index: int) -> None:
        """Follow leader, epoch or in-sync replicas of one partition."""
        self._follow_image(topic, index)

    def on_topic_config(self, topic: str | None) -> None:
        """Give the logs of a topic (None: of every topic) its changed configuration at once."""
        names = list(self._topics) if topic is None else [topic]
        for name in names:
            config = self._dynamic.topic(name)
            rules = self._logs.rules_of(config)
            for partition in self._topics.get(name, {}).values():
                if partition.has_log:
                    partition.log.update_config(config, rules)

    def on_broker_config(self, config: BrokerConfig, changed: frozenset[str]) -> None:
        """Take the broker settings that logs go by. Topics inherit by `on_topic_config`."""
        self._logs.disk.producer_expiration_ms = config.producer_id_expiration_ms

    def _follow_image(self, topic: TopicImage, index: int) -> None:
        """Give one partition the role that the image says."""
        self._tell_roles_change()
        state = topic.partitions[index]
        partition = self.replica(topic.name, index)
        if partition is not None and partition.topic_id == ZERO_TOPIC_ID:
            self._take_topic_id(partition, topic.topic_id)
        if state.leader == self._broker_id:
            self._lead(partition or self._add(topic.name, index, topic.topic_id), topic, state)
        elif self._broker_id not in state.replicas:
            if partition is not None and partition.has_log:
                self._leave(partition, topic, index, state)
        else:
            self._follow(partition or self._add(topic.name, index, topic.topic_id), topic, state)

    def _take_topic_id(self, partition: Partition, topic_id: TopicId) -> None:
        """Give a partition, and its log's directory, the id of a topic that is older than its id.

        Without it in the directory a start would take the log for one of any topic of this name.
        Source: Kafka ReplicaManager.becomeLeaderOrFollower, UnifiedLog.assignTopicId.
        """
        partition.topic_id = topic_id
        if not partition.has_log:
            return
        try:
            partition.log.place.assign_topic_id(topic_id)
        except KafkaError as error:
            logger.error("%s", error)
        except StorageError as error:
            self.appends.log_failed(partition, error)

    def _leave(
        self, partition: Partition, topic: TopicImage, index: int, state: PartitionImage
    ) -> None:
        """Delete the log: this broker has no replica any more. Source: Kafka's StopReplica."""
        if partition.is_ahead_of(state):
            self._say_stale(partition, state)
            return
        self.commit()
        del self._topics[topic.name][index]
        from minibroker.broker.evidence import moved_replica  # noqa: PLC0415  for several brokers

        evidence = moved_replica(state.replicas, state.leader_epoch)
        self.deletions.delete(topic, {index: partition}, index, evidence)

    # A controller's StopReplica requests (`handlers.stop_replica`).

    def stop_fetching(self, partition: Partition) -> None:
        """Fetch this replica no more, until a LeaderAndIsr request; a leader leads on."""
        self._tell_roles_change()
        partition.is_stopped = True
        if partition.follow_nobody():
            self.on_role(partition)
        partition.wake()

    def resume(self, partition: Partition) -> None:
        """Let a stopped replica follow its leader again."""
        if not partition.is_stopped:
            return
        partition.is_stopped = False
        topic = self._image().topics.get(partition.topic)
        if topic is not None and partition.index < len(topic.partitions):
            self._follow_image(topic, partition.index)

    async def delete_replicas(
        self, topic: str, indexes: Collection[int], evidence: DeletionEvidence
    ) -> dict[int, StorageError | None]:
        """Delete the logs of these replicas, where there are any, known to the metadata or not.

        Return as `PendingDeletions.delete_replicas`. A replica that comes back before its turn
        stays, and the result leaves it out: another controller gave it to this broker again.
        Source: Kafka ReplicaManager.stopPartitions, LogManager.asyncDelete.
        """
        await self.deletions.wait_until_settled(topic)
        self.commit()
        self._tell_roles_change()
        hosted = self._topics.get(topic, {})
        stopped = {
            index: (hosted[index], hosted[index].leader_epoch)
            for index in indexes
            if index in hosted
        }

        def has_come_back(index: int) -> bool:
            partition = self.replica(topic, index)
            if partition is None:
                return False
            return (partition, partition.leader_epoch) != stopped.get(index)

        return await self.deletions.delete_replicas(
            topic,
            (index for index in indexes if not has_come_back(index)),
            lambda index: hosted.pop(index, None),
            evidence,
        )

    def _lead(self, partition: Partition, topic: TopicImage, state: PartitionImage) -> None:
        """Make a partition the leader in the epoch of `state`, after it has a log."""
        if partition.has_log:
            self.commit()
        elif not self._make_log(partition, topic):
            return
        old_epoch = partition.leader_epoch
        role = partition.leader_of(state)
        if role is None:
            self._say_stale(partition, state)
            return
        if role.epoch != old_epoch:
            try:
                partition.log.begin_leader_epoch(role.epoch)
            except StorageError as error:
                # The epoch is noted again with the next batch; readers go on meanwhile.
                self.appends.log_failed(partition, error)
                if not partition.has_log:
                    return
        partition.take_role(role, self.replica_rules)
        if role.epoch != old_epoch:
            partition.wake()  # a fetch that named the old epoch is fenced
        else:
            partition.tell_news()  # a follower that is out of sync has to be looked at again
        self.on_role(partition)

    def _follow(self, partition: Partition, topic: TopicImage, state: PartitionImage) -> None:
        """Make a partition a follower of the leader in `state`, or of nobody."""
        self.commit()
        if not partition.has_log and not self._make_log(partition, topic):
            return
        leader = NO_LEADER if partition.is_stopped else state.leader
        role = partition.follower_of(state, leader)
        if role is None:
            self._say_stale(partition, state)
            return
        partition.take_role(role)
        partition.wake()
        self.on_role(partition)

    def _say_stale(self, partition: Partition, state: PartitionImage) -> None:
        """Log an event that is refused because the partition knows a later one."""
        logger.warning(
            "partition %s stays as it is: leader epoch %d, partition epoch %d is older than %s",
            partition,
            state.leader_epoch,
            state.partition_epoch,
            partition.role,
        )

    def _make_log(self, partition: Partition, topic: TopicImage) -> bool:
        """Open an offline partition's log, or make it; False where it stays offline."""
        name = TopicPartition(partition.topic, partition.index)
        if not self.is_started and self._logs.may_be_lost(name):
            self.take_offline([name])
            logger.error(
                "partition %s is offline, because its log may be in an offline log directory", name
            )
        if partition.is_lost:
            return False
        config = self._dynamic.topic(topic.name)
        try:
            log = self._logs.create_log(topic.name, partition.index, topic.topic_id, config)
            if log.config is not config or not log.has_epochs:
                log.update_config(config, self._logs.rules_of(config))
        except (KafkaError, StorageError) as error:
            logger.error("partition %s is offline: %s", name, error)
            partition.lose_log()
            if isinstance(error, StorageError):
                self.on_storage_error(error)
            return False
        partition.open(log)
        return True

    def _add(self, topic: str, index: int, topic_id: bytes) -> Partition:
        """Make a partition, which is offline as yet."""
        partition = _partition_type()(self.appends, topic=topic, index=index, topic_id=topic_id)
        self._topics.setdefault(topic, {})[index] = partition
        return partition

    @property
    def replica_rules(self) -> ReplicaRules:
        """Return how leaders judge their followers; the first call imports and makes it."""
        if self._replica_rules is None:
            from minibroker.broker.partitions.replicas import ReplicaRules  # noqa: PLC0415  see above

            self._replica_rules = ReplicaRules(
                self._broker_id,
                self._logs.clock.now_ms,
                lambda: self._dynamic.broker.replica_lag_time_max_ms,
                lambda: self._image().brokers,
            )
        return self._replica_rules

    @property
    def checker(self) -> Checker:
        """Return what checks large batches; the first call imports and makes it."""
        if self._checker is None:
            from minibroker.broker.partitions.checking import Checker  # noqa: PLC0415  see above

            self._checker = Checker(self._workers)
        return self._checker

    def when_roles_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` from now on before a partition comes, goes or changes its role."""
        self._role_listeners.append(listener)

    def _tell_roles_change(self) -> None:
        for listener in self._role_listeners:
            listener()

    # Waiting.

    def wake_all(self) -> None:
        """Answer every long poll with the records there are: the broker stops."""
        for partitions in self._topics.values():
            for partition in partitions.values():
                partition.wake()
                if partition.replicas is not None:
                    partition.replicas.refuse_waiting()
