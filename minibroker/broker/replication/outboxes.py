"""The controller's outboxes: hears of every change of the image, and tells the other brokers.

Brokers that are processes of their own know of partitions what the controller sends them, Apache
Kafka's and minibrokers alike. minibrokers of one process follow the tree by themselves; they are
told what to delete, and say that it is done. While this broker is the controller, each other
registered broker has an outbox. A broker that registers anew gets a new one, with everything in it.

Source: Kafka KafkaController (onControllerFailover, onBrokerStartup, onBrokerFailure),
PartitionStateMachine, ReplicaStateMachine, TopicDeletionManager.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster.image import NO_LEADER, PartitionImage
from minibroker.broker.peers.client import PeerClient
from minibroker.broker.replication.control_requests import Address, Stop
from minibroker.broker.replication.outbox import Outbox
from minibroker.broker.slices import run_in_slices
from minibroker.kafka.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from typing import Any

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.image import BrokerInfo, TopicImage
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.evidence import DeletionEvidence

logger = logging.getLogger(__name__)

NO_STATE: Final = PartitionImage(
    leader=NO_LEADER,
    leader_epoch=0,
    replicas=[],
    isr=[],
    adding=[],
    removing=[],
    offline=[],
    controller_epoch=0,
    partition_epoch=-1,
)
"""A partition that the outboxes were not told of."""


class _Told(NamedTuple):
    """One broker."""

    epoch: int
    """The epoch of its registration."""
    outbox: Outbox
    hears_all: bool
    """False for a minibroker of this process, which is only asked, and follows the tree."""


class Outboxes:
    """A `ClusterListener`. Owned by the loop."""

    __slots__ = (
        "_cluster",
        "_config",
        "_known",
        "_outboxes",
        "_owned",
        "_peers",
        "_tasks",
    )

    def __init__(self, cluster: Cluster, config: BrokerConfig) -> None:
        self._cluster = cluster
        self._config = config
        self._peers: PeerClient | None = None
        self._outboxes: dict[int, _Told] = {}
        """By broker."""
        self._known: dict[str, list[PartitionImage]] = {}
        """Topic → the last states that the outboxes were told; empty while nobody hears all."""
        self._owned: set[str] = set()
        """Topics whose list in `_known` is a copy, which may be changed."""
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Hear of changes from now on; before the cluster's start."""
        self._cluster.subscribe(self)
        self._cluster.when_brokers_change(self._follow_brokers)
        self._cluster.when_elected(self._on_election)
        self._cluster.have_brokers_delete(self.delete)
        self._cluster.have_replicas_asked(self.ask_replicas)

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
        """Give each other registered broker that hears all an outbox."""
        if not self._cluster.is_controller:
            return
        wanted = {
            broker.id: broker
            for broker in self._cluster.image.brokers.values()
            if broker.id != self._cluster.broker_id and self._hears_all(broker)
        }
        brokers = self._cluster.image.brokers
        for broker_id, told in list(self._outboxes.items()):
            if broker_id not in brokers or brokers[broker_id].epoch != told.epoch:
                self._end(broker_id)
        for told in self._hearing():
            told.outbox.greet()
        for broker_id in wanted.keys() - self._outboxes.keys():
            self._open(wanted[broker_id])
        if not any(self._hearing()):
            self._known.clear()
            self._owned.clear()

    def _hears_all(self, broker: BrokerInfo) -> bool:
        """Return whether a broker knows of partitions only what it is told."""
        return not broker.is_minibroker or self._config.zookeeper_connect is not None

    def _hearing(self) -> list[_Told]:
        """Return those who hear of every change."""
        return [told for told in self._outboxes.values() if told.hears_all]

    def _open(self, broker: BrokerInfo) -> _Told:
        """Make an outbox. What the broker has to know is put into it in slices."""
        if self._peers is None:
            self._peers = PeerClient.of(
                self._cluster,
                self._config,
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
            protocol=self._config.inter_broker_protocol,
            on_offline=self._replicas_failed,
        )
        hears_all = self._hears_all(broker)
        told = self._outboxes[broker.id] = _Told(broker.epoch, outbox, hears_all)
        if hears_all:
            outbox.greet()
            for topic in image.topics.values():
                self._known.setdefault(topic.name, topic.partitions)
            run_in_slices(self._fill(outbox, with_metadata=True))
        return told

    def _fill(self, outbox: Outbox, *, with_metadata: bool) -> Iterator[None]:
        """Tell the state of every partition, and the broker's roles, one partition a step."""
        broker_id = outbox.broker_id
        for name, partition in self._partitions():
            told = self._outboxes.get(broker_id)
            if told is None or told.outbox is not outbox:
                return  # the broker is gone
            if with_metadata:
                outbox.tell_metadata(name)
            if broker_id in partition.replicas:
                outbox.tell_role(name, is_new=False)
            yield

    def _partitions(self) -> Iterator[tuple[TopicPartition, PartitionImage]]:
        """Yield each partition with a state as it is now; the image may change in between."""
        image = self._cluster.image
        for topic_name in list(image.topics):
            index = 0
            while (topic := image.topics.get(topic_name)) and index < len(topic.partitions):
                if topic.partitions[index].partition_epoch >= 0:
                    yield TopicPartition(topic_name, index), topic.partitions[index]
                index += 1

    def _end(self, broker_id: int) -> None:
        told = self._outboxes.pop(broker_id)
        self._run(told.outbox.close())

    def _end_all(self) -> None:
        for broker_id in list(self._outboxes):
            self._end(broker_id)
        self._known.clear()
        self._owned.clear()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a change could not be told: %s", task.exception())

    def _replicas_failed(self, broker_id: int, names: list[TopicPartition]) -> None:
        self._run(self._cluster.leadership.replicas_failed(names, broker_id=broker_id))

    # The image.

    def on_topic_created(self, topic: TopicImage) -> None:
        """Tell the partitions that have a state."""
        self._tell_from(topic, 0)

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Tell those that have a state."""
        self._tell_from(topic, old_count)

    def _tell_from(self, topic: TopicImage, start: int) -> None:
        if any(self._hearing()):
            for index in range(start, len(topic.partitions)):
                if topic.partitions[index].partition_epoch >= 0:
                    self.on_leadership(topic, index)

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Tell a partition's state: to all its metadata, to its replicas their roles."""
        state = topic.partitions[partition]
        hearing = self._hearing()
        if not hearing or state.partition_epoch < 0:
            return
        name = TopicPartition(topic.name, partition)
        before = self._replace_known(topic.name, partition, state)
        for told in hearing:
            told.outbox.tell_metadata(name)
            self._tell_replica(told.outbox, name, before, state)

    def _replace_known(
        self, topic: str, index: int, state: PartitionImage
    ) -> PartitionImage | None:
        """Note the state of a partition; return the one before, None if there was none."""
        known = self._known.setdefault(topic, [])
        if topic not in self._owned:
            known = self._known[topic] = list(known)
            self._owned.add(topic)
        while len(known) <= index:
            known.append(NO_STATE)
        before, known[index] = known[index], state
        return before if before.partition_epoch >= 0 else None

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

    def on_topic_deleted(self, topic: TopicImage, _evidence: DeletionEvidence) -> None:
        """Forget it. What a broker has to delete, `delete` says."""
        self.on_topic_missing(topic)

    def on_topic_missing(self, topic: TopicImage) -> None:
        """Forget it: when it comes back it is told as a new one."""
        self._known.pop(topic.name, None)
        self._owned.discard(topic.name)

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        """Do nothing: brokers read configurations from the tree."""

    def delete(self, broker_id: int, topic: TopicImage) -> asyncio.Future[bool] | None:
        """Have a broker delete its replicas of a topic; return the future of whether it did.

        The future is cancelled when the broker is gone. None where this broker is not registered.
        """
        told = self._told(broker_id)
        return None if told is None else told.outbox.delete(topic)

    def ask_replicas(self, broker_id: int) -> None:
        """Tell a broker its roles: it answers which of its replicas are in failed log directories.

        Source: Kafka KafkaController.onBrokerLogDirFailure.
        """
        told = self._told(broker_id)
        if told is not None:
            run_in_slices(self._fill(told.outbox, with_metadata=False))

    def _told(self, broker_id: int) -> _Told | None:
        """Return a broker with an outbox, None where it is not registered."""
        told = self._outboxes.get(broker_id)
        broker = self._cluster.image.brokers.get(broker_id)
        if told is None and broker is not None:
            told = self._open(broker)
        return told
