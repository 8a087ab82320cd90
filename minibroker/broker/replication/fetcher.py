"""The fetcher: takes from one leader what this broker follows of it.

One task, one request in flight. A request names the partitions that changed since the last one, and
asks for each from the end of its log on; the leader remembers the others (`leader_session`). The
fetcher appends the records of the answer. A partition that the leader refuses, or that cannot be
appended to, is left out for `replica.fetch.backoff.ms`; the others go on.

Many partitions are named in several requests, so that none of them holds the loop.

Source: Kafka AbstractFetcherThread, ReplicaFetcherThread, RemoteLeaderEndPoint.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from minibroker.broker.event_loop import cancel_all
from minibroker.broker.partitions.role import NO_EPOCH, Follower
from minibroker.broker.replication.leader_session import SESSION_ERRORS, LeaderSession, position_of
from minibroker.broker.replication.truncation import diverged_at, may_differ, out_of_range
from minibroker.broker.slices import TimeSlice
from minibroker.client.answer_parts import by_partition, part_of
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, MinibrokerError, ProtocolError
from minibroker.kafka.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ZERO_TOPIC_ID, TopicPartition
from minibroker.kafka.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.broker.cluster.image import MetadataImage
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.peers import PeerClient
    from minibroker.broker.quotas.replication_quota import ReplicationQuota
    from minibroker.broker.replication.leader_session import FollowerPosition
    from minibroker.kafka.protocol.messages.fetch import PartitionData

logger = logging.getLogger(__name__)

OLDEST_FETCH: Final = 12
"""The first version in which the leader says where the logs part. It names topics, not their ids.
"""
WITH_BROKER_EPOCH: Final = 15
"""The first version that names the follower's broker epoch (KIP-903)."""
OLDEST_LIST_OFFSETS: Final = 4
"""The first version with the leader epoch that the follower knows."""
NAMED_MAX: Final = 32
"""Partitions that one request names, where the leader remembers them: less than 1 ms of work."""
LOOKED_AT_MAX: Final = 1000
"""Changed partitions that are looked at before a request leaves."""


class FollowedPartition:
    """A partition that is fetched. It tells its fetcher of each change that the leader has to know:
    the role, or the start of the log (`Waiter`).
    """

    __slots__ = ("_changed_names", "_name", "epoch", "is_behind", "partition")

    def __init__(
        self, name: TopicPartition, partition: Partition, changed_names: dict[TopicPartition, None]
    ) -> None:
        """Take the fetcher's `changed_names`: the partition's name goes in there."""
        self._name = name
        self._changed_names = changed_names
        self.partition = partition
        self.epoch = NO_EPOCH
        """The leader epoch in which it was last asked for."""
        self.is_behind = True
        """Its last answer left committed records to fetch, or there was none."""

    def on_progress(self) -> None:
        """Have the fetcher look at it before its next request."""
        self._changed_names[self._name] = None

    def complete(self) -> None:
        """Do as `on_progress`: the partition goes away, or has another role."""
        self._changed_names[self._name] = None


class Fetcher:
    """Fetches from one leader. Owned by the loop; `close` ends it."""

    __slots__ = (
        "_changed_names",
        "_config",
        "_followed_partitions",
        "_image",
        "_is_failing",
        "_leader",
        "_partitions",
        "_peers",
        "_quota",
        "_rest_ends_s",
        "_rests_until_s",
        "_session",
        "_task",
        "_wake",
    )

    def __init__(
        self,
        leader: int,
        *,
        partitions: PartitionManager,
        peers: PeerClient,
        config: BrokerConfig,
        image: Callable[[], MetadataImage],
        quota: ReplicationQuota,
    ) -> None:
        """`leader`: broker id. `quota`: the throttle of what this broker fetches."""
        # Constant after construction.
        self._leader = leader
        self._partitions = partitions
        self._peers = peers
        self._config = config
        self._image = image
        self._quota = quota
        self._changed_names: dict[TopicPartition, None] = {}
        """Partitions to look at before the next request; itself constant, the followed share it."""
        self._followed_partitions: dict[TopicPartition, FollowedPartition] = {}
        self._session = LeaderSession()
        self._rest_ends_s: dict[TopicPartition, float] = {}
        """Partition → time of the loop's clock before which it is not asked for, the soonest first.
        """
        self._rests_until_s = 0.0
        """Time of the loop's clock before which nothing is asked for: the leader did not answer."""
        self._is_failing = False
        """The last request had no answer."""
        self._wake = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def is_idle(self) -> bool:
        return not self._followed_partitions

    def add(self, name: TopicPartition, partition: Partition) -> None:
        """Fetch this partition from now on. It is asked for at once, even if it rests or the leader
        did not answer.
        """
        followed_partition = self._followed_partitions.get(name)
        if followed_partition is None or followed_partition.partition is not partition:
            self.remove(name)
            self._followed_partitions[name] = FollowedPartition(
                name, partition, self._changed_names
            )
        self._followed_partitions[name].is_behind = True
        self._rest_ends_s.pop(name, None)
        self._rests_until_s = 0.0
        self._changed_names[name] = None
        self._wake.set()

    def remove(self, name: TopicPartition) -> None:
        """Stop to fetch this partition; drop an answer that is on its way for it."""
        followed = self._followed_partitions.pop(name, None)
        if followed is not None:
            followed.partition.unwatch(followed)
        self._rest_ends_s.pop(name, None)
        self._session.forget(name)

    async def close(self) -> None:
        """End the task."""
        await cancel_all(self._task)

    # The rounds.

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                if asyncio.get_running_loop().time() < self._rests_until_s:
                    await self._wait(self._rests_until_s)
                    continue
                positions = await self._look()
                if self._session.has_a_request:
                    await self._fetch(positions)
                else:
                    await self._wait(next(iter(self._rest_ends_s.values()), None))
            except Exception:  # a bug of ours must not end the replication of other partitions
                logger.exception("cannot fetch from broker %d", self._leader)
                self._give_up()

    async def _look(self) -> dict[TopicPartition, FollowerPosition]:
        """Look at the partitions that changed; return those that the next request names.

        The others stay for the request behind it.
        """
        session, changed_names = self._session, self._changed_names
        now_s = asyncio.get_running_loop().time()
        for name, _ in list(takewhile(lambda rest: rest[1] <= now_s, self._rest_ends_s.items())):
            del self._rest_ends_s[name]
            changed_names[name] = None
        positions_max = NAMED_MAX if session.has_room else len(self._followed_partitions)
        positions: dict[TopicPartition, FollowerPosition] = {}
        turn = TimeSlice()
        for name in list(islice(changed_names, max(positions_max, LOOKED_AT_MAX))):
            if len(positions) >= positions_max:
                break
            changed_names.pop(name, None)
            position = await self._next_position(name)
            if position is None:
                session.forget(name)
            elif session.tell(name, position):
                positions[name] = position
            if turn.is_over:
                await turn.pause()
        return positions

    async def _next_position(self, name: TopicPartition) -> FollowerPosition | None:
        """Return `_position` once the log may be appended to; None where there is nothing."""
        try:
            position = self._position(name)
            if position is not None and position.partition.log.unsaved_cut is not None:
                await self._partitions.cut_saved(position.partition)
                position = self._position(name)
        except Exception:  # a bug of ours costs this partition, the others go on
            logger.exception("%s cannot be fetched from broker %d", name, self._leader)
            self._rest(name)
            return None
        return position

    def _position(self, name: TopicPartition) -> FollowerPosition | None:
        """Return the position to ask a partition from now, None for nothing."""
        followed = self._followed_partitions.get(name)
        if followed is None:
            return None
        partition = followed.partition
        role = partition.role
        if (
            not isinstance(role, Follower)
            or role.leader != self._leader
            or self._partitions.replica(*name) is not partition
        ):
            self.remove(name)
            return None
        if followed.epoch != role.epoch and not self._enter_epoch(name, followed, role.epoch):
            return None
        partition.watch(followed)
        if self._is_throttled(name, followed):
            self._rest_ends_s.setdefault(name, self._rest_over_s())
        return position_of(partition, role) if name not in self._rest_ends_s else None

    def _enter_epoch(self, name: TopicPartition, followed: FollowedPartition, epoch: int) -> bool:
        """Prepare a log for another leader epoch; return whether it may be asked for.

        Without epochs in its records (formats 0 and 1) the leader cannot say where the logs part.
        Only what is committed is the same in both for sure. Source: Kafka
        ReplicaManager.initialFetchOffset, AbstractFetcherThread.truncateToHighWatermark.
        """
        partition = followed.partition
        end_offset = partition.high_watermark
        if partition.log.epochs.history.latest_epoch < 0 and partition.log_end_offset > end_offset:
            logger.info("%s is cut to offset %d: its records have no epochs", name, end_offset)
            try:
                self._partitions.truncate(partition, end_offset)
            except KafkaError as error:
                logger.warning("%s cannot be cut: %s", name, error)
                self._rest(name)
                return False
        followed.epoch = epoch
        return True

    def _is_throttled(self, name: TopicPartition, followed: FollowedPartition) -> bool:
        """Return whether a partition waits, because this broker fetched too much of those that are
        throttled. Source: Kafka ReplicaManager.shouldFollowerThrottle.
        """
        quota = self._quota
        return followed.is_behind and quota.is_throttled(*name) and quota.is_exceeded

    async def _wait(self, until_s: float | None) -> None:
        """Wait until a partition comes, or until this time of the loop's clock."""
        try:
            async with asyncio.timeout_at(until_s):
                await self._wake.wait()
        except TimeoutError:
            return

    def _rest(self, name: TopicPartition) -> None:
        """Ask for this partition again after a pause, if it is still fetched from here."""
        if name not in self._followed_partitions:
            return  # nobody would end the rest
        self._rest_ends_s.pop(name, None)  # the last one ends last
        self._rest_ends_s[name] = self._rest_over_s()
        self._changed_names[name] = None

    def _rest_over_s(self) -> float:
        pause_s = self._config.replica_fetch_backoff_ms / 1000
        return asyncio.get_running_loop().time() + pause_s

    def _give_up(self, code: ErrorCode | None = None) -> None:
        """Let everything rest: the request has no usable answer."""
        self._begin_session(self._session.on_lost(code))
        self._rests_until_s = self._rest_over_s()

    def _begin_session(self, names: Iterable[TopicPartition]) -> None:
        """Name these partitions to the leader again, in requests that begin anew."""
        self._changed_names.update(dict.fromkeys(names))

    async def _fetch(self, new_positions: dict[TopicPartition, FollowerPosition]) -> None:
        """Send one request, and take its answer."""
        session = self._session
        request = self._request(new_positions)
        positions = session.positions
        try:
            newest = self._config.inter_broker_protocol.fetch
            answer = await self._peers.call(
                self._leader,
                request,
                FetchResponse,
                oldest=WITH_BROKER_EPOCH if newest >= WITH_BROKER_EPOCH else OLDEST_FETCH,
                newest=newest,
            )
            if answer.error_code in SESSION_ERRORS:
                logger.info("broker %d ends the session: %d", self._leader, answer.error_code)
                self._begin_session(session.on_lost(ErrorCode(answer.error_code)))
                return
            if answer.error_code:
                raise KafkaError(ErrorCode(answer.error_code))
        except (OSError, ProtocolError, KafkaError) as error:
            if not self._is_failing:  # the log hears of it once
                logger.warning("cannot fetch from broker %d: %s", self._leader, error)
            self._is_failing = True
            self._give_up(error.code if isinstance(error, KafkaError) else None)
            return
        self._is_failing = False
        if not session.on_answer(answer.session_id):
            self._begin_session(positions)
        image = self._image()
        turn = TimeSlice()
        for topic in answer.responses:
            topic_name = topic.topic
            if topic.topic_id != ZERO_TOPIC_ID:
                topic_image = image.topic_by_id.get(topic.topic_id)
                if topic_image is None:
                    continue
                topic_name = topic_image.name
            for data in topic.partitions:
                name = TopicPartition(topic_name, data.partition_index)
                if name in positions:
                    self._changed_names[name] = None
                    await self._take(name, positions[name], data)
                if turn.is_over:
                    await turn.pause()

    def _request(self, new_positions: dict[TopicPartition, FollowerPosition]) -> FetchRequest:
        """Return the request that names `new_positions` and removes partitions not fetched."""
        config = self._config
        session = self._session
        topics: dict[bytes, FetchTopic] = {}
        for name, position in new_positions.items():
            if session.positions.get(name) is not position:  # removed meanwhile
                continue
            topic = topics.get(position.topic_id)
            if topic is None:
                topic = topics[position.topic_id] = FetchTopic(
                    topic=name.topic, topic_id=position.topic_id
                )
            topic.partitions.append(
                position.to_message(name.partition, config.replica_fetch_max_bytes)
            )
        removals: dict[bytes, ForgottenTopic] = {}
        for topic_id, name in session.take_removals():
            if topic_id not in removals:
                removals[topic_id] = ForgottenTopic(topic=name.topic, topic_id=topic_id)
            removals[topic_id].partitions.append(name.partition)
        request = FetchRequest(
            max_wait_ms=0 if self._changed_names else config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=session.id,
            session_epoch=session.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(removals.values()),
        )
        if config.inter_broker_protocol.fetch < WITH_BROKER_EPOCH:
            request.replica_id = config.broker_id
        else:
            own = self._image().brokers.get(config.broker_id)
            epoch = own.epoch if own is not None else -1
            request.replica_state = ReplicaState(replica_id=config.broker_id, replica_epoch=epoch)
        return request

    # One partition's part of an answer.

    async def _take(
        self, name: TopicPartition, position: FollowerPosition, data: PartitionData
    ) -> None:
        """Append the records, or cut the log; do nothing if role or log changed meanwhile."""
        partition = position.partition
        followed = self._followed_partitions.get(name)
        if followed is None or followed.partition is not partition or not position.is_unchanged:
            return
        try:
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._restart(name, position)
            elif data.error_code:
                self._take_refusal(name, data.error_code)
            elif data.diverging_epoch is not None:
                self._cut(name, partition, data)
            elif self._may_differ(position, data.log_start_offset):
                self._partitions.begin_anew(partition, data.log_start_offset)
            else:
                records = memoryview(data.records or b"")
                self._partitions.append_as_follower(
                    partition,
                    records,
                    leader_high_watermark=data.high_watermark,
                    leader_log_start_offset=data.log_start_offset,
                )
                followed.is_behind = partition.log_end_offset < data.high_watermark
                if self._quota.is_throttled(*name):
                    self._quota.record(len(records))
        except (MinibrokerError, OSError) as error:
            # What the disk of this broker refuses is said, and counted, by `partitions.refusals`.
            if not (isinstance(error, KafkaError) and error.code == ErrorCode.KAFKA_STORAGE_ERROR):
                logger.warning("%s, followed from broker %d: %s", name, self._leader, error)
            self._rest(name)
        except Exception:  # a bug of ours costs this partition, the others go on
            logger.exception("%s, followed from broker %d", name, self._leader)
            self._rest(name)

    def _take_refusal(self, name: TopicPartition, code: int) -> None:
        """Ask again later: the broker no longer leads it, or not yet, or in another epoch."""
        logger.info("broker %d does not serve %s: error %d", self._leader, name, code)
        self._rest(name)

    @staticmethod
    def _may_differ(position: FollowerPosition, leader_start_offset: int) -> bool:
        log = position.partition.log
        return may_differ(
            log.epochs.history,
            log.log_start_offset,
            log.log_end_offset,
            leader_epoch=position.leader_epoch,
            leader_start_offset=leader_start_offset,
        )

    def _cut(self, name: TopicPartition, partition: Partition, data: PartitionData) -> None:
        """Cut the log to where it agrees with the leader's, and ask again from there.

        Where the leader has deleted all up to there, nothing shows that they agree. This log begins
        anew then (`truncation`).
        """
        leader_has = data.diverging_epoch
        assert leader_has is not None
        offset = diverged_at(
            partition.log.epochs.history,
            partition.log_end_offset,
            partition.high_watermark,
            leader_epoch=leader_has.epoch,
            leader_end_offset=leader_has.end_offset,
        )
        logger.info(
            "%s is cut to offset %d: epoch %d ends at %d on broker %d",
            name,
            offset,
            leader_has.epoch,
            leader_has.end_offset,
            self._leader,
        )
        if offset <= data.log_start_offset:
            self._partitions.begin_anew(partition, data.log_start_offset)
        else:
            self._partitions.truncate(partition, offset)

    async def _restart(self, name: TopicPartition, position: FollowerPosition) -> None:
        """Find out where to go on, as the end of this log is outside of the leader's log."""
        leader_end_offset = await self._offset_of(name, position.leader_epoch, LATEST_TIMESTAMP)
        leader_start_offset = await self._offset_of(name, position.leader_epoch, EARLIEST_TIMESTAMP)
        if not position.is_unchanged:
            return
        restart = out_of_range(position.offset, leader_start_offset, leader_end_offset)
        logger.warning("%s goes on at offset %d of broker %d", name, restart.offset, self._leader)
        if restart.is_cut:
            self._partitions.truncate(position.partition, restart.offset)
        elif restart.begins_anew:
            self._partitions.begin_anew(position.partition, restart.offset)
        else:
            self._rest(name)  # nothing has changed: the next answer would be the same

    async def _offset_of(self, name: TopicPartition, epoch: int, timestamp: int) -> int:
        """Return an end of the leader's log. Raises OSError, ProtocolError, KafkaError."""
        part = ListOffsetsPartition(
            partition_index=name.partition, current_leader_epoch=epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._config.broker_id,
            topics=[ListOffsetsTopic(name=name.topic, partitions=[part])],
        )
        answer = await self._peers.call(
            self._leader,
            request,
            ListOffsetsResponse,
            oldest=OLDEST_LIST_OFFSETS,
            newest=self._config.inter_broker_protocol.list_offsets,
        )
        answer_part = part_of(by_partition(answer.topics), name)
        if answer_part.error_code:
            raise KafkaError(ErrorCode(answer_part.error_code))
        offset: int = answer_part.offset
        return offset
