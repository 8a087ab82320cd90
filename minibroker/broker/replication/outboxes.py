"""The controller's outboxes: hears of every change of the image, and tells the other brokers.

Brokers that are processes of their own, Apache Kafka's and minibrokers alike, know of partitions
only from the controller's requests. minibrokers of one process follow the tree by themselves; they
get requests to delete, and confirm them. While this broker is the controller, each other registered
broker has an outbox. A broker that registers anew gets a new one, with everything in it.

Source: Kafka KafkaController (onControllerFailover, onBrokerStartup, onBrokerFailure),
PartitionStateMachine, ReplicaStateMachine, TopicDeletionManager.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster.image import NO_LEADER, PartitionImage
from minibroker.broker.cluster.updates import ClusterListener
from minibroker.broker.peers import PeerClient
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
"""The state of a partition that no outbox has sent yet."""


class _Recipient(NamedTuple):
    """A broker with its outbox."""

    epoch: int
    """The epoch of its registration."""
    outbox: Outbox
    hears_all: bool
    """False for a minibroker of this process: it gets deletions alone, and follows the tree."""


class Outboxes(ClusterListener):
    """Owned by the loop."""

    __slots__ = (
        "_cluster",
        "_config",
        "_copied_topics",
        "_is_between_steps",
        "_outboxes",
        "_peers",
        "_sent_states",
        "_tasks",
    )

    def __init__(self, cluster: Cluster, config: BrokerConfig) -> None:
        self._cluster = cluster
        self._config = config
        self._peers: PeerClient | None = None
        self._outboxes: dict[int, _Recipient] = {}
        """Broker id → its registration and outbox."""
        self._sent_states: dict[str, list[PartitionImage]] = {}
        """Topic → the last states that the outboxes got; empty while no broker hears all."""
        self._copied_topics: set[str] = set()
        """Topics whose list in `_known` is a copy, which may be changed."""
        self._is_between_steps = False
        """True while the outboxes hold, because the change of a topic is not complete."""
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Hear of changes from now on; called before the cluster's start."""
        self._cluster.subscribe(self)
        self._cluster.when_brokers_change(self._follow_brokers)
        self._cluster.when_elected(self._on_election)
        self._cluster.have_brokers_delete(self.delete)
        self._cluster.have_replicas_asked(self.ask_replicas)

    async def close(self) -> None:
        """Close every outbox."""
        self._end_all()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._peers is not None:
            await self._peers.close()

    # The brokers.

    def _on_election(self, is_controller: bool) -> None:
        """End the outboxes of an earlier office, and open new ones in a new office."""
        self._end_all()
        if is_controller:
            self._follow_brokers()

    def _follow_brokers(self) -> None:
        """Give each other registered broker that hears all an outbox."""
        if not self._cluster.is_controller:
            return
        new_brokers = {
            broker.id: broker
            for broker in self._cluster.image.brokers.values()
            if broker.id != self._cluster.broker_id and self._hears_all(broker)
        }
        brokers = self._cluster.image.brokers
        for broker_id, recipient in list(self._outboxes.items()):
            if broker_id not in brokers or brokers[broker_id].epoch != recipient.epoch:
                self._end(broker_id)
        for recipient in self._listening_recipients():
            recipient.outbox.greet()
        for broker_id in new_brokers.keys() - self._outboxes.keys():
            self._open(new_brokers[broker_id])
        if not any(self._listening_recipients()):
            self._sent_states.clear()
            self._copied_topics.clear()

    def _hears_all(self, broker: BrokerInfo) -> bool:
        """Return whether a broker knows partitions only from the controller's requests."""
        return not broker.is_minibroker or self._config.zookeeper_connect is not None

    def _listening_recipients(self) -> list[_Recipient]:
        """Return the recipients of every change."""
        return [recipient for recipient in self._outboxes.values() if recipient.hears_all]

    def _open(self, broker: BrokerInfo) -> _Recipient:
        """Make an outbox, and fill it with the image in slices."""
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
            stopping_brokers=lambda: self._cluster.stopping_brokers,
            listener=self._config.inter_broker_listener_name,
            protocol=self._config.inter_broker_protocol,
            on_offline=partial(self._replicas_failed, broker.epoch),
        )
        hears_all = self._hears_all(broker)
        recipient = self._outboxes[broker.id] = _Recipient(broker.epoch, outbox, hears_all)
        if self._is_between_steps:
            outbox.hold()
        if hears_all:
            outbox.greet()
            for topic in image.topics.values():
                self._sent_states.setdefault(topic.name, topic.partitions)
            run_in_slices(self._fill(outbox, with_metadata=True))
        return recipient

    def _fill(self, outbox: Outbox, *, with_metadata: bool) -> Iterator[None]:
        """Tell the state of every partition, then the broker's roles, one partition a step. It has
        no role before it knows every partition, as with Kafka, and nothing leaves before it is
        told all.
        """
        outbox.hold()
        try:
            if with_metadata:
                for name, _ in self._partitions():
                    if not self._is_open(outbox):
                        return
                    outbox.greet()  # in each parcel: the metadata goes first
                    outbox.tell_metadata(name)
                    yield
            for name, partition in self._partitions():
                if not self._is_open(outbox):
                    return
                if outbox.broker_id in partition.replicas:
                    outbox.tell_role(name, is_new=False)
                yield
        finally:
            outbox.release()

    def _is_open(self, outbox: Outbox) -> bool:
        """Return whether the broker of this outbox is still registered."""
        recipient = self._outboxes.get(outbox.broker_id)
        return recipient is not None and recipient.outbox is outbox

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
        recipient = self._outboxes.pop(broker_id)
        self._run(recipient.outbox.close())

    def _end_all(self) -> None:
        for broker_id in list(self._outboxes):
            self._end(broker_id)
        self._sent_states.clear()
        self._copied_topics.clear()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a change could not be told: %s", task.exception())

    def _replicas_failed(
        self, broker_epoch: int, broker_id: int, names: list[TopicPartition]
    ) -> None:
        work = self._cluster.leadership.replicas_failed(
            names, broker_id=broker_id, broker_epoch=broker_epoch
        )
        self._run(work)

    # The image.

    def on_steps_begin(self) -> None:
        """Let no request leave that has a part of the change."""
        self._is_between_steps = True
        for recipient in self._outboxes.values():
            recipient.outbox.hold()

    def on_steps_end(self) -> None:
        """Let the whole change leave."""
        self._is_between_steps = False
        for recipient in self._outboxes.values():
            recipient.outbox.release()

    def on_topic_created(self, topic: TopicImage) -> None:
        """Tell the partitions that have a state."""
        self._tell_from(topic, 0)

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Tell the new partitions that have a state."""
        self._tell_from(topic, old_count)

    def _tell_from(self, topic: TopicImage, start: int) -> None:
        if any(self._listening_recipients()):
            for index in range(start, len(topic.partitions)):
                if topic.partitions[index].partition_epoch >= 0:
                    self.on_leadership(topic, index)

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Send a partition's metadata to every recipient, and their roles to its replicas."""
        state = topic.partitions[partition]
        recipients = self._listening_recipients()
        if not recipients or state.partition_epoch < 0:
            return
        name = TopicPartition(topic.name, partition)
        old_state = self._replace_state(topic.name, partition, state)
        for recipient in recipients:
            recipient.outbox.tell_metadata(name, is_new=old_state is None)
            self._tell_replica(recipient.outbox, name, old_state, state)

    def _replace_state(
        self, topic: str, index: int, state: PartitionImage
    ) -> PartitionImage | None:
        """Note the state of a partition; return its old state, None if there was none."""
        states = self._sent_states.setdefault(topic, [])
        if topic not in self._copied_topics:
            states = self._sent_states[topic] = list(states)
            self._copied_topics.add(topic)
        while len(states) <= index:
            states.append(NO_STATE)
        old_state, states[index] = states[index], state
        return old_state if old_state.partition_epoch >= 0 else None

    def _tell_replica(
        self,
        outbox: Outbox,
        name: TopicPartition,
        old_state: PartitionImage | None,
        state: PartitionImage,
    ) -> None:
        broker_id = outbox.broker_id
        had = old_state is not None and broker_id in old_state.replicas
        if broker_id not in state.replicas:
            if had:
                outbox.stop(name, Stop(state.leader_epoch, deletes=True))
            return
        is_follower = state.leader != broker_id and broker_id not in state.isr
        if is_follower and broker_id in self._cluster.stopping_brokers:
            outbox.stop(name, Stop(state.leader_epoch, deletes=False))
        elif old_state is None or not had or old_state.leader_epoch != state.leader_epoch:
            outbox.tell_role(name, is_new=not had)

    def on_topic_deleted(self, topic: TopicImage, _evidence: DeletionEvidence) -> None:
        """Forget the topic; `delete` has the brokers delete their replicas."""
        self.on_topic_missing(topic)

    def on_topic_missing(self, topic: TopicImage) -> None:
        """Forget the topic: if it comes back it is sent as a new one."""
        self._sent_states.pop(topic.name, None)
        self._copied_topics.discard(topic.name)

    def delete(self, broker_id: int, topic: TopicImage) -> asyncio.Future[bool] | None:
        """Have a broker delete its replicas of a topic; return the future of whether it did.

        The future is cancelled when the broker is gone. None where this broker is not registered.
        """
        recipient = self._recipient(broker_id)
        return None if recipient is None else recipient.outbox.delete(topic)

    def ask_replicas(self, broker_id: int) -> None:
        """Tell a broker its roles: it answers which of its replicas are in failed log directories.

        Source: Kafka KafkaController.onBrokerLogDirFailure.
        """
        recipient = self._recipient(broker_id)
        if recipient is not None:
            run_in_slices(self._fill(recipient.outbox, with_metadata=False))

    def _recipient(self, broker_id: int) -> _Recipient | None:
        """Return a broker with an outbox, None where it is not registered."""
        recipient = self._outboxes.get(broker_id)
        broker = self._cluster.image.brokers.get(broker_id)
        if recipient is None and broker is not None:
            recipient = self._open(broker)
        return recipient
