"""The only writer of the metadata image: applies what is known, and tells the listeners.

The values come from the tree, and from the requests of a controller (`requests`). Called on the
loop, under the cluster's lock. A state that is applied twice changes nothing and tells nobody. The
two sources overtake each other, so a partition never goes back to an older state: a leader epoch,
and below it the version of the state's node (the partition epoch), only grow.

Many partitions are applied a few at a time, and the loop serves clients in between. A partition and
its listeners change in the same turn, so work that is broken off leaves no listener behind.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.codecs import PartitionState
from minibroker.broker.cluster.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from minibroker.broker.slices import TimeSlice, collect
from minibroker.kafka.ids import ZERO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from minibroker.broker.cluster.codecs import TopicAssignment
    from minibroker.broker.cluster.image import BrokerInfo
    from minibroker.broker.cluster.sent_state import SentState
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.kafka.ids import TopicId, TopicPartition

    _Waiting = tuple[str, Callable[[TopicImage | None], bool], asyncio.Future[None]]
    Change = tuple[int, PartitionImage] | None
    """Index and new image of a partition; None for a partition that stays as it is."""

logger = logging.getLogger(__name__)


class FailedReplicas:
    """Topic → partition → brokers whose log directory with it failed since they were started.

    Changed under the cluster's lock.
    """

    __slots__ = ("_by_topic",)

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[int, set[int]]] = {}

    def of(self, topic: str, index: int) -> Collection[int]:
        """Return the brokers whose replica of this partition failed."""
        return self._by_topic.get(topic, {}).get(index, ())

    def has_topic(self, topic: str) -> bool:
        """Return whether a replica of a partition of this topic may have failed."""
        return topic in self._by_topic

    def has_broker(self, broker_id: int) -> bool:
        """Return whether a replica of this broker failed."""
        return any(
            broker_id in failed
            for of_topic in self._by_topic.values()
            for failed in of_topic.values()
        )

    def add(self, broker_id: int, partitions: Iterable[TopicPartition]) -> None:
        """Note that the replicas of this broker failed."""
        for name in partitions:
            of_topic = self._by_topic.setdefault(name.topic, {})
            of_topic.setdefault(name.partition, set()).add(broker_id)

    def replace(self, topic: str, index: int, failed: set[int]) -> None:
        """Note that the replicas of these brokers failed, and no others of this partition."""
        if failed:
            self._by_topic.setdefault(topic, {})[index] = failed
        else:
            self._by_topic.get(topic, {}).pop(index, None)

    def forget_brokers(self, broker_ids: Collection[int]) -> list[str]:
        """Take all replicas of these brokers for good; return the topics with failed replicas."""
        if not broker_ids:
            return []
        for of_topic in self._by_topic.values():
            for failed in of_topic.values():
                failed.difference_update(broker_ids)
        return list(self._by_topic)

    def forget_topic(self, name: str) -> None:
        """Forget the replicas of a topic that is gone."""
        self._by_topic.pop(name, None)


LISTS_MAX: Final = 4096
"""Lists that are kept, a megabyte at most. Three replicas on sixteen brokers make 3,360."""
NO_BROKERS: Final[list[int]] = []
_NO_STATE: Final = PartitionState(NO_LEADER, 0, NO_BROKERS, 0)


class BrokerLists:
    """Owned by the loop."""

    __slots__ = ("_lists",)

    def __init__(self) -> None:
        self._lists: dict[tuple[int, ...], list[int]] = {}

    def share(self, broker_ids: list[int]) -> list[int]:
        """Return one list object for equal lists.

        Where there are too many different ones, all are forgotten: equal lists that come before and
        after that are two objects.
        """
        if not broker_ids:
            return NO_BROKERS
        if len(self._lists) >= LISTS_MAX:
            self._lists.clear()
        return self._lists.setdefault(tuple(broker_ids), broker_ids)


STATES_PER_STEP: Final = 4
"""Partitions that are applied before others may have the loop. Each makes a log on its leader, so
these take half a millisecond."""


class ClusterListener:
    """Hears of changes once they are in the image, on the loop; must not block nor await.

    A listener ignores the changes whose methods it does not override.
    """

    __slots__ = ()

    def on_topic_created(self, topic: TopicImage) -> None:
        """Hear that a topic appeared; at start, once for every topic that is there."""

    def on_topic_deleted(self, topic: TopicImage, evidence: DeletionEvidence) -> None:
        """Hear that a topic is deleted; its name may come back with another id."""

    def on_topic_missing(self, topic: TopicImage) -> None:
        """Hear that a topic is not in the metadata any more, and that nothing says that it was
        deleted. It is not served, and everything that was stored for it is kept: it may come back.
        """

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Hear that the partitions `old_count` and above are new."""

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Hear that leader, leader epoch, ISR or replicas of a known partition changed."""

    def on_steps_begin(self) -> None:
        """Hear that the next changes of one topic belong together, until `on_steps_end`; others
        have the loop in between.
        """

    def on_steps_end(self) -> None:
        """Hear that the last of these changes is in the image, or that no more of them comes."""

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        """Hear that an entity's config changed; at start, once for each that is not a topic's."""


class ImageUpdater:
    """Applies changes to one image."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image  # constant after construction; what is in it, under the cluster's lock
        self.listeners: list[ClusterListener] = []
        """Constant once the cluster is started."""
        self.broker_listeners: list[Callable[[], None]] = []
        """Called when brokers came or went."""
        self.controller_listeners: list[Callable[[], None]] = []
        """Called when there is another controller, or an election of the same one."""
        # Changed under the cluster's lock.
        self.failed_replicas = FailedReplicas()
        self.share = BrokerLists().share
        self._by_metric_name: dict[str, list[str]] = {}
        self._waiters: list[_Waiting] = []
        """Changed on the loop by `wait_for_topic`."""

    # Topics

    def known_partitions(
        self,
        name: str,
        assignment: TopicAssignment,
        states: Iterable[tuple[PartitionState, int] | None],
        *,
        is_new_assignment: bool = True,
    ) -> Iterator[PartitionImage]:
        """Yield the images of a topic's partitions, from its nodes' values.

        `states` has for each partition from 0 the state and version of its node, None where there
        is no node. `is_new_assignment`: the assignment is read for the first time; an old one must
        not undo a later request of a controller. New neighbours with equal values share one image.
        """
        old_partitions = self._partitions_of(name, assignment.topic_id)
        has_failed_replicas = self.failed_replicas.has_topic(name)
        last_image: PartitionImage | None = None
        last_values: object = None
        for index, state in enumerate(states):
            values = (
                state,
                assignment.replicas.get(index, NO_BROKERS),
                assignment.adding.get(index, NO_BROKERS),
                assignment.removing.get(index, NO_BROKERS),
            )
            if last_image is not None and values == last_values:
                yield last_image
                continue
            old_partition = old_partitions[index] if index < len(old_partitions) else None
            if old_partition is not None and _is_older(state, old_partition):
                yield old_partition
                continue
            if old_partition is None or is_new_assignment:
                replicas, adding, removing = map(self.share, values[1:])
            else:
                replicas, adding, removing = (
                    old_partition.replicas,
                    old_partition.adding,
                    old_partition.removing,
                )
            image = PartitionImage(
                leader=state[0].leader if state else NO_LEADER,
                leader_epoch=state[0].leader_epoch if state else 0,
                replicas=replicas,
                isr=self.share(state[0].isr) if state else NO_BROKERS,
                adding=adding,
                removing=removing,
                offline=self.offline_of(name, index, replicas),
                controller_epoch=state[0].controller_epoch if state else 0,
                partition_epoch=state[1] if state else -1,
                leader_recovery_state=state[0].recovery if state else 0,
            )
            if old_partition is None and not has_failed_replicas:
                last_image, last_values = image, values
            yield image

    def _partitions_of(self, name: str, topic_id: TopicId | None) -> list[PartitionImage]:
        """Return the partitions of this very topic in the image.

        Without an id a topic cannot be told from another one of its name: the list is empty then.
        """
        topic = self.image.topics.get(name)
        if topic is None or topic_id is None or topic.topic_id != topic_id:
            return []
        return topic.partitions

    def apply_sent(self, name: str, states: Mapping[int, SentState]) -> None:
        """Apply a controller's states of partitions that the image has, those that are newer."""
        topic = self.image.topics[name]
        new_partitions: dict[int, PartitionImage] = {}
        for index, sent_state in states.items():
            old_partition = topic.partitions[index]
            if sent_state.offline is not None:
                failed = self.image.brokers.keys() & sent_state.offline  # registered, but no disk
                self.failed_replicas.replace(name, index, failed)
            if sent_state.state.leader_epoch < old_partition.leader_epoch:
                continue
            if (sent_state.state.leader_epoch, sent_state.partition_epoch) > (
                old_partition.leader_epoch,
                old_partition.partition_epoch,
            ):
                new_partition = self._with_sent(name, index, old_partition, sent_state)
            else:
                offline = self.offline_of(name, index, old_partition.replicas)
                new_partition = replace_partition(old_partition, offline=offline)
            if new_partition != old_partition:
                new_partitions[index] = new_partition
        if new_partitions:
            partitions = list(topic.partitions)
            for index, new_partition in new_partitions.items():
                partitions[index] = new_partition
            self.apply_states(TopicImage(name, topic.topic_id, partitions), new_partitions)

    def _with_sent(
        self, name: str, index: int, old_partition: PartitionImage, sent_state: SentState
    ) -> PartitionImage:
        return PartitionImage(
            leader=sent_state.state.leader,
            leader_epoch=sent_state.state.leader_epoch,
            replicas=self.share(sent_state.replicas),
            isr=self.share(sent_state.state.isr),
            adding=old_partition.adding
            if sent_state.adding is None
            else self.share(sent_state.adding),
            removing=old_partition.removing
            if sent_state.removing is None
            else self.share(sent_state.removing),
            offline=self.offline_of(name, index, sent_state.replicas),
            controller_epoch=sent_state.state.controller_epoch,
            partition_epoch=sent_state.partition_epoch,
            leader_recovery_state=sent_state.state.recovery,
        )

    def new_partitions(self, replicas: Iterable[list[int]]) -> Iterator[PartitionImage]:
        """Yield the images of partitions that have no state yet.

        Partitions with the same replicas share one image. A partition is new, so no replica of it
        has failed.
        """
        images: dict[tuple[int, ...], PartitionImage] = {}
        alive = self.image.brokers
        for broker_ids in replicas:
            key = tuple(broker_ids)
            image = images.get(key)
            if image is None:
                image = images[key] = PartitionImage(
                    leader=NO_LEADER,
                    leader_epoch=0,
                    replicas=self.share(broker_ids),
                    isr=NO_BROKERS,
                    adding=NO_BROKERS,
                    removing=NO_BROKERS,
                    offline=self.share([broker for broker in key if broker not in alive]),
                    controller_epoch=0,
                    partition_epoch=-1,
                )
            yield image

    def offline_of(self, topic: str, index: int, replicas: list[int]) -> list[int]:
        """Return those of a partition's replicas that are out of reach: no broker, or no disk."""
        alive = self.image.brokers
        failed = self.failed_replicas.of(topic, index)
        return self.share(
            [broker for broker in replicas if broker not in alive or broker in failed]
        )

    async def note_failed_replicas(
        self, broker_id: int, partitions: Collection[TopicPartition]
    ) -> None:
        """Note that a log directory of this broker failed, and that these partitions were in it."""
        self.failed_replicas.add(broker_id, partitions)
        await self._refresh_offline({name.topic for name in partitions})

    async def forget_failed_replicas(self, broker_ids: Collection[int]) -> None:
        """Take all replicas of these brokers for good: they are gone, or were started again.

        Source: Kafka KafkaController.onBrokerStartup, onBrokerFailure.
        """
        await self._refresh_offline(self.failed_replicas.forget_brokers(broker_ids))

    def begin_deletion(self, topic: TopicImage, evidence: DeletionEvidence) -> None:
        """Take a topic that the controller deletes out of the image.

        It stays out, though it has nodes until every broker has deleted its logs. The evidence is
        not about another topic of that name: that one counts as missing.
        """
        old_topic = self.image.topics.get(topic.name)
        if old_topic is not None and not _is_same(old_topic, topic):
            self.withdraw_topic(topic.name)
        self.delete_topic(topic.name, evidence)
        self.hide(topic.name, topic.topic_id)

    def hide(self, name: str, topic_id: TopicId) -> None:
        """Keep a topic out of the image that is not in it, until its nodes are gone, or `show`."""
        if topic_id != ZERO_TOPIC_ID:
            self.image.hidden_topics[name] = topic_id

    def is_hidden(self, name: str, topic_id: TopicId | None) -> bool:
        """Return whether this very topic is kept out of the image."""
        return name in self.image.hidden_topics and self.image.hidden_topics[name] == topic_id

    def show(self, name: str) -> bool:
        """Let a hidden topic into the image again; return whether it was hidden. The name may get
        another topic: replicas that failed meanwhile are none of its.
        """
        is_hidden = self.image.hidden_topics.pop(name, None) is not None
        if is_hidden:
            self.failed_replicas.forget_topic(name)
        return is_hidden

    async def begin_with_topic(self, topic: TopicImage) -> None:
        """Do `apply_topic` for a topic that the image does not have, while nobody is served yet:
        all leaders are in it at once. Listeners hear of a few partitions, then of the others.
        """
        rest = await collect(_without_states(topic.partitions[STATES_PER_STEP:]))
        first_partitions = [*topic.partitions[:STATES_PER_STEP], *rest]
        self._put(TopicImage(topic.name, topic.topic_id, first_partitions))
        self._put_values(topic)
        hears = [
            listener.on_leadership
            for listener in self.listeners
            if type(listener).on_leadership is not ClusterListener.on_leadership
        ]
        turn = TimeSlice()
        for index in range(STATES_PER_STEP, len(topic.partitions)):
            if topic.partitions[index].partition_epoch >= 0:
                for listen in hears:
                    _tell(listen, topic, index)
            if index % STATES_PER_STEP == 0 and turn.is_over:
                await turn.pause()
        self._wake(topic.name)

    async def apply_topic(self, topic: TopicImage) -> None:
        """Put a topic into the image; listeners hear of its changes.

        Until its turn comes, an old partition stays as it is, and a new one has no leader. All are
        told where the topic has got its id.
        """
        old_topic = self.image.topics.get(topic.name)
        if old_topic is None and len(topic.partitions) <= STATES_PER_STEP:
            self.apply_states(topic, ())  # listeners hear of the topic, with its leaders
            return
        old_partitions = (
            old_topic.partitions if old_topic is not None and _is_same(old_topic, topic) else []
        )
        new = await collect(_without_states(topic.partitions[len(old_partitions) :]))
        first_partitions = [*old_partitions[: len(topic.partitions)], *new]
        changes: Iterable[Change] = _differences(first_partitions, topic.partitions)
        if old_partitions and old_topic is not None and old_topic.topic_id != topic.topic_id:
            changes = enumerate(topic.partitions)
        await self._apply_in_steps(
            TopicImage(topic.name, topic.topic_id, first_partitions), changes
        )

    async def _apply_in_steps(self, topic: TopicImage, changes: Iterable[Change]) -> None:
        """Put a topic into the image, then these changes of its partitions, a few at a time."""
        is_there = self.image.topics.get(topic.name) is topic
        partitions = list(topic.partitions)
        step: list[int] = []
        turn = TimeSlice()
        for change in changes:
            if change is not None:
                index, partition = change
                partitions[index] = partition
                step.append(index)
            if len(step) == STATES_PER_STEP:
                self.apply_states(TopicImage(topic.name, topic.topic_id, list(partitions)), step)
                step = []
            if turn.is_over:
                await turn.pause()
        if step or not is_there:
            self.apply_states(TopicImage(topic.name, topic.topic_id, partitions), step)

    def apply_states(self, topic: TopicImage, indexes: Iterable[int]) -> None:
        """Put a topic into the image that is new, or that changed in these few partitions only.

        The other partitions are not looked at, so a few of 10,000 take no longer than a few of ten.
        """
        if self.is_hidden(topic.name, topic.topic_id):
            return
        old_count = self._put(topic)
        for index in indexes:
            if index < old_count:
                self._tell_leadership(topic, index)
        self._wake(topic.name)

    def begin_steps(self) -> None:
        """Tell the listeners that the next `apply_states` belong together, until `end_steps`."""
        for listener in self.listeners:
            _tell(listener.on_steps_begin)

    def end_steps(self) -> None:
        """Tell the listeners that all of the change is applied that will be."""
        for listener in self.listeners:
            _tell(listener.on_steps_end)

    def _put(self, topic: TopicImage) -> int:
        """Make this the topic of its name; tell listeners of the topic or of its new partitions.

        Returns how many partitions the topic had.
        """
        image = self.image
        self.show(topic.name)
        old_topic = image.topics.get(topic.name)
        if old_topic is not None and not _is_same(old_topic, topic):
            self.withdraw_topic(topic.name)  # another topic has its name now
            old_topic = None
        self._put_values(topic)
        if old_topic is None:
            self._by_metric_name.setdefault(metric_name(topic.name), []).append(topic.name)
            for listener in self.listeners:
                _tell(listener.on_topic_created, topic)
            return 0
        old_count = len(old_topic.partitions)
        if len(topic.partitions) > old_count:
            for listener in self.listeners:
                _tell(listener.on_partitions_added, topic, old_count)
        return old_count

    def _put_values(self, topic: TopicImage) -> None:
        """Let the image find this topic by its name and its id."""
        self.image.topics[topic.name] = topic
        if topic.topic_id != ZERO_TOPIC_ID:
            self.image.topic_by_id[topic.topic_id] = topic

    def _tell_leadership(self, topic: TopicImage, index: int) -> None:
        for listener in self.listeners:
            _tell(listener.on_leadership, topic, index)

    def delete_topic(self, name: str, evidence: DeletionEvidence) -> None:
        """Take a topic out of the image that is deleted; listeners delete what they have of it."""
        topic = self._take_out(name)
        if topic is not None:
            for listener in self.listeners:
                _tell(listener.on_topic_deleted, topic, evidence)
            self._wake(name)

    def withdraw_topic(self, name: str) -> None:
        """Take a topic out of the image that the tree does not have, or that has another id there.

        That is no evidence of a deletion: listeners keep what they have of it.
        """
        topic = self._take_out(name)
        if topic is not None:
            for listener in self.listeners:
                _tell(listener.on_topic_missing, topic)
            self._wake(name)

    def _take_out(self, name: str) -> TopicImage | None:
        """Take a topic out of the image, its config too; return it, None if it is not there."""
        self.show(name)
        topic = self.image.topics.pop(name, None)
        if topic is None:
            return None
        self.image.topic_by_id.pop(topic.topic_id, None)
        self.failed_replicas.forget_topic(name)
        same = self._by_metric_name[metric_name(name)]
        same.remove(name)
        if not same:
            del self._by_metric_name[metric_name(name)]
        self.image.configs.get("topics", {}).pop(name, None)
        return topic

    def colliding_with(self, name: str) -> list[str]:
        """Return the known topics (of another name) whose metrics would have the same name."""
        same = self._by_metric_name.get(metric_name(name), ())
        return [same_name for same_name in same if same_name != name]

    async def wait_for_topic(
        self, name: str, holds: Callable[[TopicImage | None], bool], timeout_s: float
    ) -> None:
        """Wait until `holds` is true of the topic, None for no topic. Raises TimeoutError."""
        if holds(self.image.topics.get(name)):
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        entry = (name, holds, future)
        self._waiters.append(entry)
        # `asyncio.timeout` wants a task, and the first step of a request is in none.
        timer = loop.call_later(timeout_s, _give_up, future)
        try:
            await future
        finally:
            timer.cancel()
            self._waiters.remove(entry)

    def _wake(self, name: str) -> None:
        if not self._waiters:
            return
        topic = self.image.topics.get(name)
        for waiting_name, holds, future in self._waiters:
            if waiting_name == name and not future.done() and holds(topic):
                future.set_result(None)

    # Brokers and controller

    async def apply_brokers(self, brokers: dict[int, BrokerInfo]) -> bool:
        """Replace the registered brokers; return whether the set of ids changed."""
        has_changed = self.image.brokers.keys() != brokers.keys()
        self.image.brokers = brokers
        if has_changed:
            await self._refresh_offline(list(self.image.topics))
            for listener in self.broker_listeners:
                _tell(listener)
        return has_changed

    async def _refresh_offline(self, names: Iterable[str]) -> None:
        """Find out anew which replicas of these topics are out of reach."""
        turn = TimeSlice()
        for name in names:
            topic = self.image.topics.get(name)
            if topic is not None:
                await self._apply_in_steps(topic, self._offline_changes(topic))
            if turn.is_over:
                await turn.pause()

    def _offline_changes(self, topic: TopicImage) -> Iterator[Change]:
        for index, partition in enumerate(topic.partitions):
            offline = self.offline_of(topic.name, index, partition.replicas)
            if offline == partition.offline:
                yield None
            else:
                yield index, replace_partition(partition, offline=offline)

    def apply_controller(self, broker_id: int, epoch: int) -> None:
        """Name the controller (NO_CONTROLLER: none) and the epoch in which it was elected."""
        image = self.image
        if (image.controller_id, image.controller_epoch) == (broker_id, epoch):
            return
        image.controller_id, image.controller_epoch = broker_id, epoch
        for listener in self.controller_listeners:
            _tell(listener)

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
            _tell(listener.on_config_changed, entity_type, entity_name)


def _give_up(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())


def _tell(listen: Callable[..., None], *news: object) -> None:
    """Tell one listener. A bug of it costs neither the other listeners nor the rest of the news."""
    try:
        listen(*news)
    except Exception:
        subject = getattr(news[0], "name", news[0]) if news else "the brokers"
        logger.exception("%r failed at the news of %s", listen, subject)


def _is_older(state: tuple[PartitionState, int] | None, partition: PartitionImage) -> bool:
    """Return whether a state that was read is older than the known one: the server that was asked
    may lag behind the controller.
    """
    version = (state[0].leader_epoch, state[1]) if state else (0, -1)
    return version < (partition.leader_epoch, partition.partition_epoch)


def _is_same(old_topic: TopicImage, topic: TopicImage) -> bool:
    """Return whether both are the same topic; one without an id may have got it."""
    return old_topic.topic_id in (topic.topic_id, ZERO_TOPIC_ID)


def _without_state(partition: PartitionImage) -> PartitionImage:
    """Return a partition as it is before its first state is known."""
    if partition.partition_epoch < 0:
        return partition
    return replace_partition(partition, state=_NO_STATE, partition_epoch=-1)


def _without_states(partitions: Iterable[PartitionImage]) -> Iterator[PartitionImage]:
    """Yield each as `_without_state`. Neighbours that share an image do so here, too."""
    last: PartitionImage | None = None
    for partition in partitions:
        if partition is not last:
            last, image = partition, _without_state(partition)
        yield image


def _differences(
    old_partitions: list[PartitionImage], new_partitions: list[PartitionImage]
) -> Iterator[Change]:
    """Yield the change of each partition from one list to the other."""
    for index, (old, new) in enumerate(zip(old_partitions, new_partitions, strict=True)):
        yield None if old is new or old == new else (index, new)


def metric_name(topic: str) -> str:
    """Return the name of a topic in metrics, where `.` and `_` are the same."""
    return topic.replace(".", "_")


def replace_partition(
    partition: PartitionImage,
    *,
    state: PartitionState | None = None,
    partition_epoch: int | None = None,
    offline: list[int] | None = None,
) -> PartitionImage:
    """Return a copy with another state, another version of the state's node, or other offline
    replicas.
    """
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
        leader_recovery_state=state.recovery if state else partition.leader_recovery_state,
    )
