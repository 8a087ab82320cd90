"""The only writer of the metadata image: applies what the tree says and tells the listeners.

Called on the loop, under the cluster's lock, by whoever wrote or read the tree. Applying the same
state twice is harmless and silent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from minibroker.cluster.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from minibroker.ids import ZERO_TOPIC_ID, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from minibroker.cluster.codecs import PartitionState, TopicAssignment
    from minibroker.cluster.image import BrokerInfo

    _Waiting = tuple[str, Callable[[TopicImage | None], bool], asyncio.Future[None]]

_NO_BROKERS: list[int] = []


class ClusterListener(Protocol):
    """Told of changes after they are in the image; on the loop; must not block nor await."""

    def on_topic_created(self, topic: TopicImage) -> None:
        """A topic appeared (also once for every topic found at start)."""

    def on_topic_deleted(self, topic: TopicImage) -> None:
        """A topic is gone; its name may come back with another id."""

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Partitions `old_count` and above are new."""

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Leader, leader epoch, ISR or replicas of a known partition changed."""

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        """The config of an entity changed; at start, once for each that is not a topic's."""


class ImageUpdater:
    """Applies changes to one image."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.listeners: list[ClusterListener] = []
        self.failed_replicas: dict[TopicPartition, set[int]] = {}
        """Partition → brokers whose log directory with it failed since they were started."""
        self._shared_lists: dict[tuple[int, ...], list[int]] = {}
        self._waiting: list[_Waiting] = []
        self._by_metric_name: dict[str, list[str]] = {}

    # Topics

    def build_topic(
        self,
        name: str,
        assignment: TopicAssignment,
        states: list[tuple[PartitionState, int] | None],
    ) -> TopicImage:
        """The image of a topic from its nodes' values.

        Args:
            states: per partition from 0: state and version of its node, None where there is none.
        """
        partitions = []
        for index, state in enumerate(states):
            replicas = self.share(assignment.replicas.get(index, _NO_BROKERS))
            partitions.append(
                PartitionImage(
                    leader=state[0].leader if state else NO_LEADER,
                    leader_epoch=state[0].leader_epoch if state else 0,
                    replicas=replicas,
                    isr=self.share(state[0].isr) if state else _NO_BROKERS,
                    adding=self.share(assignment.adding.get(index, _NO_BROKERS)),
                    removing=self.share(assignment.removing.get(index, _NO_BROKERS)),
                    offline=self.offline_of(name, index, replicas),
                    controller_epoch=state[0].controller_epoch if state else 0,
                    partition_epoch=state[1] if state else -1,
                )
            )
        return TopicImage(name, assignment.topic_id or ZERO_TOPIC_ID, partitions)

    def new_partitions(self, replicas: Iterable[list[int]]) -> Iterator[PartitionImage]:
        """Yield the images of partitions that have no state yet.

        Partitions with the same replicas share one image. A partition is new, so no replica of it
        has failed.
        """
        images: dict[tuple[int, ...], PartitionImage] = {}
        for broker_ids in replicas:
            key = tuple(broker_ids)
            image = images.get(key)
            if image is None:
                image = images[key] = PartitionImage(
                    leader=NO_LEADER,
                    leader_epoch=0,
                    replicas=self.share(broker_ids),
                    isr=_NO_BROKERS,
                    adding=_NO_BROKERS,
                    removing=_NO_BROKERS,
                    offline=self.share([one for one in key if one not in self.image.brokers]),
                    controller_epoch=0,
                    partition_epoch=-1,
                )
            yield image

    def offline_of(self, topic: str, index: int, replicas: list[int]) -> list[int]:
        """Those of a partition's replicas that are out of reach: no broker, or no disk."""
        alive = self.image.brokers
        failed = self.failed_replicas.get(TopicPartition(topic, index), ())
        return self.share([one for one in replicas if one not in alive or one in failed])

    def note_failed_replicas(self, broker_id: int, partitions: Collection[TopicPartition]) -> None:
        """A log directory of this broker failed, and these partitions were in it."""
        for name in partitions:
            self.failed_replicas.setdefault(name, set()).add(broker_id)
        for topic in {name.topic for name in partitions}:
            if topic in self.image.topics:
                self._refresh_offline(self.image.topics[topic])

    def share(self, broker_ids: list[int]) -> list[int]:
        """One list object for equal lists: ten thousand partitions have a handful of them."""
        if not broker_ids:
            return _NO_BROKERS
        return self._shared_lists.setdefault(tuple(broker_ids), broker_ids)

    def apply_topic(self, topic: TopicImage) -> None:
        """Put a topic into the image; listeners hear what is new about it."""
        image = self.image
        old = image.topics.get(topic.name)
        if old is not None and old.topic_id not in (topic.topic_id, ZERO_TOPIC_ID):
            self.remove_topic(topic.name)  # deleted and created again while we looked elsewhere
            old = None
        image.topics[topic.name] = topic
        if topic.topic_id != ZERO_TOPIC_ID:
            image.topic_by_id[topic.topic_id] = topic
        if old is None:
            self._by_metric_name.setdefault(metric_name(topic.name), []).append(topic.name)
            for listener in self.listeners:
                listener.on_topic_created(topic)
        else:
            self._tell_changes(old, topic)
        self._wake(topic.name)

    def _tell_changes(self, old: TopicImage, topic: TopicImage) -> None:
        old_count = len(old.partitions)
        if len(topic.partitions) > old_count:
            for listener in self.listeners:
                listener.on_partitions_added(topic, old_count)
        for index, (before, after) in enumerate(
            zip(old.partitions, topic.partitions, strict=False)
        ):
            if before is not after and before != after:
                self._tell_leadership(topic, index)

    def apply_states(self, topic: TopicImage, indexes: Iterable[int]) -> None:
        """Like `apply_topic`, when a known topic changed in these partitions only.

        The other partitions are not looked at, so a few of 10,000 take no longer than a few of ten.
        """
        known = self.image.topics.get(topic.name)
        if (
            known is None
            or known.topic_id != topic.topic_id
            or len(known.partitions) != len(topic.partitions)
        ):
            self.apply_topic(topic)
            return
        self.image.topics[topic.name] = topic
        if topic.topic_id != ZERO_TOPIC_ID:
            self.image.topic_by_id[topic.topic_id] = topic
        for index in indexes:
            self._tell_leadership(topic, index)
        self._wake(topic.name)

    def _tell_leadership(self, topic: TopicImage, index: int) -> None:
        for listener in self.listeners:
            listener.on_leadership(topic, index)

    def remove_topic(self, name: str) -> None:
        """Take a topic out of the image, its config too."""
        topic = self.image.topics.pop(name, None)
        if topic is None:
            return
        self.image.topic_by_id.pop(topic.topic_id, None)
        for index in range(len(topic.partitions)):
            self.failed_replicas.pop(TopicPartition(name, index), None)
        same = self._by_metric_name[metric_name(name)]
        same.remove(name)
        if not same:
            del self._by_metric_name[metric_name(name)]
        self.image.configs.get("topics", {}).pop(name, None)
        for listener in self.listeners:
            listener.on_topic_deleted(topic)
        self._wake(name)

    def colliding_with(self, name: str) -> list[str]:
        """Known topics (of another name) whose metrics would have the same name."""
        return [one for one in self._by_metric_name.get(metric_name(name), ()) if one != name]

    async def wait_for_topic(
        self, name: str, holds: Callable[[TopicImage | None], bool], timeout_s: float
    ) -> None:
        """Return when `holds` says yes of the topic (None: there is none). Raises TimeoutError."""
        if holds(self.image.topics.get(name)):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (name, holds, future)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(timeout_s):
                await future
        finally:
            self._waiting.remove(entry)

    def _wake(self, name: str) -> None:
        if not self._waiting:
            return
        topic = self.image.topics.get(name)
        for waiting_name, holds, future in self._waiting:
            if waiting_name == name and not future.done() and holds(topic):
                future.set_result(None)

    # Brokers and controller

    def apply_brokers(self, brokers: dict[int, BrokerInfo]) -> bool:
        """Replace the registered brokers; whether the set of ids changed."""
        before: Collection[int] = self.image.brokers.keys()
        changed = before != brokers.keys()
        self.image.brokers = brokers
        if changed:
            for topic in list(self.image.topics.values()):
                self._refresh_offline(topic)
        return changed

    def _refresh_offline(self, topic: TopicImage) -> None:
        partitions = []
        for index, partition in enumerate(topic.partitions):
            offline = self.offline_of(topic.name, index, partition.replicas)
            if offline == partition.offline:
                partitions.append(partition)
            else:
                partitions.append(replace_partition(partition, offline=offline))
        if partitions != topic.partitions:
            self.apply_topic(TopicImage(topic.name, topic.topic_id, partitions))

    # Configs

    def apply_config(self, entity_type: str, entity_name: str, config: dict[str, str]) -> None:
        """Put an entity's whole config into the image; listeners hear when it differs.

        Of a topic that is not in the image they hear nothing: `on_topic_created` comes after its
        config is there.
        """
        of_type = self.image.configs.setdefault(entity_type, {})
        if of_type.get(entity_name, {}) == config:
            return
        if config:
            of_type[entity_name] = config
        else:
            of_type.pop(entity_name, None)
        if entity_type == "topics" and entity_name not in self.image.topics:
            return
        for listener in self.listeners:
            listener.on_config_changed(entity_type, entity_name)


def metric_name(topic: str) -> str:
    """What a topic is called in metrics, where `.` and `_` are one."""
    return topic.replace(".", "_")


def replace_partition(
    partition: PartitionImage,
    *,
    state: PartitionState | None = None,
    partition_epoch: int | None = None,
    offline: list[int] | None = None,
) -> PartitionImage:
    """A copy with another state, version of the state's node, or offline replicas."""
    return PartitionImage(
        leader=state.leader if state else partition.leader,
        leader_epoch=state.leader_epoch if state else partition.leader_epoch,
        replicas=partition.replicas,
        isr=state.isr if state else partition.isr,
        adding=partition.adding,
        removing=partition.removing,
        offline=partition.offline if offline is None else offline,
        controller_epoch=state.controller_epoch if state else partition.controller_epoch,
        partition_epoch=partition.partition_epoch if partition_epoch is None else partition_epoch,
    )
