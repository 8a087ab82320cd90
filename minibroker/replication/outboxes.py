"""The controller's outboxes: hears of every change of the image, and tells Apache Kafka's brokers.

minibrokers follow the tree by themselves. Apache Kafka's brokers know only what the controller
sends them. While this broker is the controller, each registered broker of Kafka has an outbox. A
broker that registers anew gets a new one, with everything in it.

Source: Kafka KafkaController (onControllerFailover, onBrokerStartup, onBrokerFailure),
PartitionStateMachine, ReplicaStateMachine, TopicDeletionManager.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.ids import TopicPartition
from minibroker.peers.client import PeerClient
from minibroker.replication.control_requests import Address, Stop
from minibroker.replication.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from minibroker.cluster.cluster import Cluster
    from minibroker.cluster.image import BrokerInfo, PartitionImage, TopicImage
    from minibroker.config.broker import BrokerConfig

logger = logging.getLogger(__name__)

DELETION_WAIT_S: Final = 10.0
"""How long a deletion waits for Kafka's brokers before it is put off."""


class Outboxes:
    """A `ClusterListener`. Owned by the loop."""

    __slots__ = (
        "_cluster",
        "_config",
        "_known",
        "_met",
        "_outboxes",
        "_peers",
        "_tasks",
    )

    def __init__(self, cluster: Cluster, config: BrokerConfig) -> None:
        self._cluster = cluster
        self._config = config
        self._peers: PeerClient | None = None
        self._outboxes: dict[int, tuple[int, Outbox]] = {}
        """Broker → epoch of its registration, outbox."""
        self._known: dict[TopicPartition, PartitionImage] = {}
        """The last state of each partition that the outboxes were told; empty without them."""
        self._met: set[int] = set()
        """Brokers of Kafka that were registered since this broker was elected."""
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Hear of changes from now on; before the cluster's start."""
        self._cluster.subscribe(self)
        self._cluster.when_brokers_change(self._follow_brokers)
        self._cluster.when_elected(self._on_election)

    async def close(self) -> None:
        """Tell nobody any more."""
        self._end_all()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._peers is not None:
            await self._peers.close()

    # The brokers.

    def _on_election(self, is_controller: bool) -> None:
        self._end_all()
        if is_controller:
            self._follow_brokers()

    def _follow_brokers(self) -> None:
        """Give each registered broker of Kafka an outbox, and no other."""
        if not self._cluster.is_controller:
            return
        wanted = {
            broker.id: broker
            for broker in self._cluster.image.brokers.values()
            if not broker.is_minibroker
        }
        self._met |= wanted.keys()
        for broker_id, (epoch, _) in list(self._outboxes.items()):
            if broker_id not in wanted or wanted[broker_id].epoch != epoch:
                self._end(broker_id)
        for _, outbox in self._outboxes.values():
            outbox.greet()
        for broker_id in wanted.keys() - self._outboxes.keys():
            self._open(wanted[broker_id])
        if not self._outboxes:
            self._known.clear()

    def _open(self, broker: BrokerInfo) -> None:
        """Make an outbox with everything that the broker has to know."""
        if self._peers is None:
            self._peers = PeerClient(
                self._cluster,
                listener=self._config.controller_listener_name,
                timeout_ms=self._config.request_timeout_ms,
            )
        image = self._cluster.image
        outbox = Outbox(
            broker.id,
            Address(self._cluster.broker_id, image.controller_epoch, broker.epoch),
            peers=self._peers,
            image=lambda: self._cluster.image,
            leaving=lambda: self._cluster.leaving,
            listener=self._config.inter_broker_listener_name,
            on_offline=self._replicas_failed,
        )
        self._outboxes[broker.id] = broker.epoch, outbox
        outbox.greet()
        for topic in image.topics.values():
            for index, partition in enumerate(topic.partitions):
                name = TopicPartition(topic.name, index)
                self._known[name] = partition
                if partition.partition_epoch >= 0:
                    outbox.tell_metadata(name)
                    if broker.id in partition.replicas:
                        outbox.tell_role(name, is_new=False)

    def _end(self, broker_id: int) -> None:
        _, outbox = self._outboxes.pop(broker_id)
        self._run(outbox.close())

    def _end_all(self) -> None:
        for broker_id in list(self._outboxes):
            self._end(broker_id)
        self._known.clear()
        self._met.clear()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a change could not be told: %s", task.exception())

    def _replicas_failed(self, broker_id: int, names: list[TopicPartition]) -> None:
        self._run(self._cluster.replicas_failed(names, broker_id=broker_id))

    # The image.

    def on_topic_created(self, topic: TopicImage) -> None:
        """Tell the partitions that have a state."""
        self._tell_from(topic, 0)

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Tell those that have a state."""
        self._tell_from(topic, old_count)

    def _tell_from(self, topic: TopicImage, start: int) -> None:
        if self._outboxes:
            for index in range(start, len(topic.partitions)):
                self.on_leadership(topic, index)

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Tell a partition's state: to all its metadata, to its replicas their roles."""
        state = topic.partitions[partition]
        if not self._outboxes or state.partition_epoch < 0:
            return
        name = TopicPartition(topic.name, partition)
        before = self._known.get(name)
        if before is not None and before.partition_epoch < 0:
            before = None
        self._known[name] = state
        for _, outbox in self._outboxes.values():
            outbox.tell_metadata(name)
            self._tell_replica(outbox, name, before, state)

    def _tell_replica(
        self,
        outbox: Outbox,
        name: TopicPartition,
        before: PartitionImage | None,
        now: PartitionImage,
    ) -> None:
        broker_id = outbox.broker_id
        had = before is not None and broker_id in before.replicas
        if broker_id not in now.replicas:
            if had:
                outbox.stop(name, Stop(now.leader_epoch, deletes=True))
            return
        is_follower = now.leader != broker_id and broker_id not in now.isr
        if is_follower and broker_id in self._cluster.leaving:
            outbox.stop(name, Stop(now.leader_epoch, deletes=False))
        elif before is None or not had or before.leader_epoch != now.leader_epoch:
            outbox.tell_role(name, is_new=not had)

    def on_topic_deleted(self, topic: TopicImage) -> None:
        """Forget it: its brokers were told before."""
        for index in range(len(topic.partitions)):
            self._known.pop(TopicPartition(topic.name, index), None)

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        """Do nothing: brokers read configurations from the tree."""

    async def delete_topic(self, topic: TopicImage) -> None:
        """Have Kafka's brokers delete their replicas; return when all have done it.

        Raises KafkaError(REQUEST_TIMED_OUT) where one is away, or takes long: the topic stays
        marked, and the deletion goes on when the brokers change, or when the late one answers.
        """
        replicas = {broker for partition in topic.partitions for broker in partition.replicas}
        away = sorted((replicas & self._met) - self._outboxes.keys())
        if away:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"topic {topic.name} is deleted when brokers {away} are back",
            )
        waiting = [outbox.delete(topic) for _, outbox in self._outboxes.values()]
        if not waiting:
            return
        done, late = await asyncio.wait(waiting, timeout=DELETION_WAIT_S)
        for future in late:
            future.add_done_callback(lambda _: self._cluster.look_at_deletions())
        if late or any(future.cancelled() or not future.result() for future in done):
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"not every broker has deleted its replicas of topic {topic.name} yet",
            )
