"""The fetcher: takes from one leader what this broker follows of it.

One task, one request in flight. Each round asks for all partitions that may be asked now, from the
end of their logs on, and appends what comes. A partition that the leader refuses, or that cannot be
appended to, is left out for `replica.fetch.backoff.ms`; the others go on.

Source: Kafka AbstractFetcherThread, ReplicaFetcherThread, RemoteLeaderEndPoint.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, MinibrokerError, ProtocolError
from minibroker.ids import TopicPartition
from minibroker.partitions.role import Follower
from minibroker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from minibroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from minibroker.replication.truncation import diverged_at, out_of_range
from minibroker.slices import TimeSlice

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.cluster.image import MetadataImage
    from minibroker.config.broker import BrokerConfig
    from minibroker.partitions.manager import PartitionManager
    from minibroker.partitions.partition import Partition
    from minibroker.peers.client import PeerClient
    from minibroker.protocol.messages.fetch import PartitionData

logger = logging.getLogger(__name__)

OLDEST_FETCH: Final = 15
"""The first version that names the follower's broker epoch (KIP-903)."""
LATEST: Final = -1
EARLIEST: Final = -2


class Asked(NamedTuple):
    """One partition as it was when the leader was asked."""

    partition: Partition
    leader_epoch: int
    offset: int
    """End of its log: what came since then makes the answer worthless."""

    @property
    def is_as_before(self) -> bool:
        role = self.partition.role
        return (
            isinstance(role, Follower)
            and role.epoch == self.leader_epoch
            and self.partition.log_end_offset == self.offset
        )


class Fetcher:
    """Fetches from one leader. Owned by the loop; `close` ends it."""

    __slots__ = (
        "_config",
        "_image",
        "_is_failing",
        "_leader",
        "_partitions",
        "_peers",
        "_resting",
        "_task",
        "_wake",
        "_wanted",
    )

    def __init__(
        self,
        leader: int,
        *,
        partitions: PartitionManager,
        peers: PeerClient,
        config: BrokerConfig,
        image: Callable[[], MetadataImage],
    ) -> None:
        """`leader`: broker id."""
        # Constant after construction.
        self._leader = leader
        self._partitions = partitions
        self._peers = peers
        self._config = config
        self._image = image
        self._wanted: dict[TopicPartition, Partition] = {}
        self._resting: dict[TopicPartition, float] = {}
        """Partition → time of the loop's clock before which it is not asked for."""
        self._is_failing = False
        """The last request had no answer."""
        self._wake = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def is_idle(self) -> bool:
        return not self._wanted

    def add(self, name: TopicPartition, partition: Partition) -> None:
        """Fetch this partition from now on; a partition that rests is asked for at once."""
        self._wanted[name] = partition
        self._resting.pop(name, None)
        self._wake.set()

    def remove(self, name: TopicPartition) -> None:
        """Fetch it no more. What is on its way for it is dropped."""
        self._wanted.pop(name, None)
        self._resting.pop(name, None)

    async def close(self) -> None:
        """End the task."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    # The rounds.

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            asked = self._ready()
            try:
                if asked:
                    await self._fetch(asked)
                else:
                    await self._wait()
            except Exception:  # a bug of ours must not end the replication of other partitions
                logger.exception("cannot fetch from broker %d", self._leader)
                for name in asked:
                    self._rest(name)

    def _ready(self) -> dict[TopicPartition, Asked]:
        """Return what may be asked for now."""
        now_s = asyncio.get_running_loop().time()
        ready = {}
        for name, partition in list(self._wanted.items()):
            role = partition.role
            if (
                not isinstance(role, Follower)
                or role.leader != self._leader
                or self._partitions.replica(*name) is not partition
            ):
                self.remove(name)
            elif self._resting.get(name, 0.0) <= now_s:
                self._resting.pop(name, None)
                ready[name] = Asked(partition, role.epoch, partition.log_end_offset)
        return ready

    async def _wait(self) -> None:
        """Wait until a partition comes, or one has rested."""
        timeout_s = None
        if self._resting:
            now_s = asyncio.get_running_loop().time()
            timeout_s = max(0.0, min(self._resting.values()) - now_s)
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            return

    def _rest(self, name: TopicPartition) -> None:
        """Ask for this partition again after a pause, if it is still fetched from here."""
        if name not in self._wanted:
            return  # `_wait` would return at once, again and again, for a rest that nobody ends
        pause_s = self._config.replica_fetch_backoff_ms / 1000
        self._resting[name] = asyncio.get_running_loop().time() + pause_s

    async def _fetch(self, asked: dict[TopicPartition, Asked]) -> None:
        """One request, and what comes of it."""
        try:
            answer = await self._peers.call(
                self._leader, self._request(asked), FetchResponse, oldest=OLDEST_FETCH
            )
            if answer.error_code:
                raise KafkaError(ErrorCode(answer.error_code))
        except (OSError, ProtocolError, KafkaError) as error:
            if not self._is_failing:  # the log hears of it once
                logger.warning("cannot fetch from broker %d: %s", self._leader, error)
            self._is_failing = True
            for name in asked:
                self._rest(name)
            return
        self._is_failing = False
        image = self._image()
        turn = TimeSlice()
        for topic in answer.responses:
            known = image.topic_by_id.get(topic.topic_id)
            if known is None:
                continue
            for data in topic.partitions:
                name = TopicPartition(known.name, data.partition_index)
                if name in asked:
                    await self._take(name, asked[name], data)
                if turn.is_over:
                    await turn.pause()

    def _request(self, asked: dict[TopicPartition, Asked]) -> FetchRequest:
        """Return the request for these partitions."""
        config = self._config
        own = self._image().brokers.get(config.broker_id)
        topics: dict[str, FetchTopic] = {}
        for name, (partition, epoch, offset) in asked.items():
            topic = topics.get(name.topic)
            if topic is None:
                topic = topics[name.topic] = FetchTopic(topic_id=partition.topic_id)
            topic.partitions.append(
                FetchPartition(
                    partition=name.partition,
                    current_leader_epoch=epoch,
                    fetch_offset=offset,
                    last_fetched_epoch=partition.log.epochs.latest_epoch,
                    log_start_offset=partition.log_start_offset,
                    partition_max_bytes=config.replica_fetch_max_bytes,
                )
            )
        return FetchRequest(
            replica_state=ReplicaState(
                replica_id=config.broker_id, replica_epoch=own.epoch if own is not None else -1
            ),
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            topics=list(topics.values()),
        )

    # One partition's part of an answer.

    async def _take(self, name: TopicPartition, asked: Asked, data: PartitionData) -> None:
        """Append what came, or cut the log; nothing if the role or the log changed meanwhile."""
        partition = asked.partition
        if self._wanted.get(name) is not partition or not asked.is_as_before:
            return
        try:
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._restart(name, asked)
            elif data.error_code:
                self._refused(name, data.error_code)
            elif data.diverging_epoch is not None:
                self._cut(name, partition, data)
            else:
                self._partitions.append_as_follower(
                    partition,
                    memoryview(data.records or b""),
                    leader_high_watermark=data.high_watermark,
                    leader_log_start_offset=data.log_start_offset,
                )
        except (MinibrokerError, OSError) as error:
            logger.warning("%s, followed from broker %d: %s", name, self._leader, error)
            self._rest(name)

    def _refused(self, name: TopicPartition, code: int) -> None:
        """The leader is none any more, is none yet, or has another epoch: ask again later."""
        logger.info("broker %d does not serve %s: error %d", self._leader, name, code)
        self._rest(name)

    def _cut(self, name: TopicPartition, partition: Partition, data: PartitionData) -> None:
        """The logs part: cut to where they agree, and ask again from there."""
        leader_has = data.diverging_epoch
        assert leader_has is not None
        offset = diverged_at(
            partition.log.epochs,
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
        self._partitions.truncate(partition, offset)

    async def _restart(self, name: TopicPartition, asked: Asked) -> None:
        """The end of this log is outside of the leader's log: find out where to go on."""
        leader_end_offset = await self._offset_of(name, asked.leader_epoch, LATEST)
        leader_start_offset = await self._offset_of(name, asked.leader_epoch, EARLIEST)
        if not asked.is_as_before:
            return
        restart = out_of_range(asked.offset, leader_start_offset, leader_end_offset)
        logger.warning("%s goes on at offset %d of broker %d", name, restart.offset, self._leader)
        if restart.is_cut:
            self._partitions.truncate(asked.partition, restart.offset)
        elif restart.begins_anew:
            self._partitions.begin_anew(asked.partition, restart.offset)

    async def _offset_of(self, name: TopicPartition, epoch: int, timestamp: int) -> int:
        """Return an end of the leader's log. Raises OSError, ProtocolError, KafkaError."""
        part = ListOffsetsPartition(
            partition_index=name.partition, current_leader_epoch=epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._config.broker_id,
            topics=[ListOffsetsTopic(name=name.topic, partitions=[part])],
        )
        answer = await self._peers.call(self._leader, request, ListOffsetsResponse, oldest=4)
        found = answer.topics[0].partitions[0]
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code))
        offset: int = found.offset
        return offset
