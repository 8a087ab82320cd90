"""`Nodes`: the nodes of one cluster in this process, on their loop: what concerns several of them.

`testing.Cluster` has them in a thread. `minibroker serve --brokers N --control` has them behind the
control API of each broker.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.image import NO_CONTROLLER
from minibroker.broker.cluster.paths import CONFIG_TYPES
from minibroker.broker.cluster.updates import ClusterListener
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.rig.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from minibroker.broker.cluster.cluster import Cluster as Metadata
    from minibroker.broker.cluster.image import PartitionImage
    from minibroker.broker.security.acl_entries import Acl
    from minibroker.rig.node import Node

WAIT_S: Final = 30.0
"""How long brokers may take to follow a change that a test asked for."""
LOOK_AGAIN_S: Final = 0.02
"""Nothing tells of some changes (of the controller), so they are looked for."""


class Nodes:
    """The nodes of one cluster, in the order of their broker ids. Owned by the loop."""

    def __init__(self) -> None:
        self.all: list[Node] = []
        """Filled with `add`, before the start."""
        self.waits = Waits(lambda: self.active)
        """Waits for the consumers of the cluster."""
        self._changes = _Changes()

    def add(self, node: Node) -> None:
        """Take a node, not started yet."""
        if self.all:
            node.fetching = self.all[0].fetching
        self.all.append(node)
        node.on_start = self._changes.follow

    def find(self, broker_id: int) -> Node:
        """Return the node of a broker. Raises ValueError."""
        for node in self.all:
            if node.broker_id == broker_id:
                return node
        ids = [node.broker_id for node in self.all]
        raise ValueError(f"there is no broker {broker_id}, they are {ids[0]} to {ids[-1]}")

    @property
    def active(self) -> list[Node]:
        """Return the nodes that run and are not paused."""
        return [node for node in self.all if node.is_running and not node.is_paused]

    @property
    def metadata(self) -> Metadata:
        """Return the metadata as the controller knows them, or another broker where there is no
        controller. Raises RuntimeError.
        """
        return self.leading.app.cluster

    @property
    def leading(self) -> Node:
        """Return the controller, or another broker that runs where there is none. Raises
        RuntimeError.
        """
        active = self.active
        for node in active:
            if node.app.cluster.is_controller:
                return node
        if active:
            return active[0]
        raise RuntimeError("all brokers of the cluster are killed or paused: restart one")

    def partition(self, topic: str, index: int) -> PartitionImage:
        """Return a partition's state. Raises KafkaError."""
        return _partition(self.metadata, topic, index)

    # What a test does to the cluster.

    async def create_topic(
        self, name: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        """Make a topic; all brokers that run know it and its leaders when this returns.

        Raises KafkaError, ConfigError, RuntimeError, TimeoutError.
        """
        node = self.leading
        await node.inspector.create_topic(name, partitions, configs, replicas)
        await self.until_known(name, node.app.cluster)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic; no broker that runs has anything of it when this returns.

        Raises KafkaError, RuntimeError, TimeoutError.
        """
        controller = self.metadata  # it alone knows when every broker has deleted its replicas
        await controller.delete_topic(name)
        await self.until_known(name, controller)

    async def until_known(self, topic: str, source: Metadata, timeout_s: float = WAIT_S) -> None:
        """Wait until all brokers that run know a topic as `source` does: its partitions with their
        leaders, or that it is gone. Raises TimeoutError.
        """
        await self.until(
            lambda: all(
                _leaders(node.app.cluster, topic) == _leaders(source, topic) for node in self.active
            ),
            f"the brokers know topic {topic}",
            timeout_s,
        )

    async def until_set(
        self, kinds: Collection[str], name: str | None, source: Metadata, timeout_s: float = WAIT_S
    ) -> None:
        """Wait until all brokers that run have the settings that `source` has of an entity, None:
        of all entities of these kinds. Raises TimeoutError.
        """
        await self.until(
            lambda: all(
                _settings(node.app.cluster, kinds, name) == _settings(source, kinds, name)
                for node in self.active
            ),
            "the brokers know the settings",
            timeout_s,
        )

    async def make_controller(self, broker_id: int) -> None:
        """Make a broker the controller; all brokers that run know it when this returns.

        Raises ValueError, KafkaError, TimeoutError.
        """
        node = self._active(broker_id)
        await node.app.cluster.become_controller()
        await self._until_all(
            lambda cluster: cluster.image.controller_id == broker_id,
            f"the brokers know that broker {broker_id} is the controller",
        )

    async def make_leader(self, topic: str, index: int, broker_id: int) -> None:
        """Make a broker the leader of a partition; all brokers that run know it when this returns.

        Raises ValueError, KafkaError, TimeoutError.
        """
        if any(node.broker_id == broker_id for node in self.all):
            self._active(broker_id)
        await self.until(lambda: self.controller_id() != NO_CONTROLLER, "there is a controller")
        await self.metadata.leadership.move(topic, index, broker_id)
        await self._until_all(
            lambda cluster: _partition(cluster, topic, index).leader == broker_id,
            f"the brokers know that broker {broker_id} leads {topic}-{index}",
        )

    async def expire_session(self, broker_id: int) -> None:
        """End a broker's session with the metadata.

        A broker that is not paused has a new one when the others know that it is gone, which they
        do when this returns. Raises ValueError, KafkaError, TimeoutError.
        """
        node = self.find(broker_id)
        if not node.is_running:
            raise ValueError(f"broker {broker_id} is killed: restart it first")
        others = [other for other in self.active if other is not node]
        with node.deaf():
            await node.lose_session()
            await self.until(
                lambda: all(_is_gone(other.app.cluster, broker_id) for other in others),
                f"the others know that broker {broker_id} is gone",
            )

    async def reset(self) -> None:
        """Return to the state after the start: no faults, no data, the machine's time."""
        for node in self.all:
            await node.clear()
        await self.until(
            lambda: len(self.metadata.image.brokers) == len(self.all), "all brokers are back"
        )
        first, *others = self.all
        for name in list(self.metadata.image.topics):
            await self.delete_topic(name)
        await self._until_all(lambda cluster: not cluster.image.topics, "all topics are deleted")
        for node in others:  # each may have changes that the others do not know yet
            await node.inspector.forget_settings()
            node.request_log.clear()
        await first.reset()
        await self.until_in_sync(WAIT_S)
        source = first.app.cluster
        for name in source.image.topics:
            await self.until_known(name, source)
        await self.until_set(CONFIG_TYPES, None, source)
        if first.app.services.authorizer is not None:
            await self.acls()

    async def acls(self) -> list[Acl]:
        """Return the ACLs, once all brokers that run know the same. Raises RuntimeError,
        TimeoutError.
        """
        inspector = self.leading.inspector
        await self.until(
            lambda: all(node.inspector.acls() == inspector.acls() for node in self.active),
            "the brokers know the same ACLs",
        )
        return inspector.acls()

    async def change_acls(self, added: list[Acl], removed: list[Acl]) -> None:
        """Add and remove ACLs; all brokers that run decide by them when this returns.

        Raises KafkaError, RuntimeError, TimeoutError.
        """
        await self.leading.inspector.change_acls(added, removed)
        await self.until(
            lambda: all(node.inspector.has_acls(added, removed) for node in self.active),
            "the brokers know the ACLs",
        )

    async def set_acls(self, acls: list[Acl]) -> None:
        """Have these ACLs and no others, on all brokers. Raises KafkaError, RuntimeError,
        TimeoutError.
        """
        others = [acl for acl in await self.acls() if acl not in acls]
        await self.change_acls(acls, others)

    def controller_id(self) -> int:
        """Return the controller's id; NO_CONTROLLER while a node of these only seems to be it."""
        controller_id = self.metadata.image.controller_id
        is_here = any(node.broker_id == controller_id for node in self.all)
        return controller_id if not is_here or self.metadata.is_controller else NO_CONTROLLER

    def _active(self, broker_id: int) -> Node:
        node = self.find(broker_id)
        if node not in self.active:
            state = "paused" if node.is_running else "killed"
            raise ValueError(f"broker {broker_id} is {state}: restart or resume it first")
        return node

    # Waiting.

    def behind(self) -> list[str]:
        """Return the partitions that lack a replica, with those in sync, as the controller knows
        them or another broker that runs.
        """
        clusters = [self.metadata, *(node.app.cluster for node in self.active)]
        return next(filter(None, map(_behind, clusters)), [])

    def isrs(self, topic: str, index: int) -> list[set[int]]:
        """Return the replicas in sync of a partition as each broker knows them that runs. Raises
        KafkaError, RuntimeError.
        """
        self.partition(topic, index)
        parts = [node.app.cluster.image.partition(topic, index) for node in self.active]
        return [set() if part is None else set(part.isr) for part in parts]

    async def until_in_sync(self, timeout_s: float) -> None:
        """Wait until every replica of every partition is in sync. Raises TimeoutError."""
        try:
            await self.until(lambda: not self.behind(), "", timeout_s)
        except TimeoutError:
            behind_text = ", ".join(self.behind())
            raise TimeoutError(f"not in sync after {timeout_s:g} s: {behind_text}") from None

    async def _until_all(self, holds: Callable[[Metadata], bool], condition: str) -> None:
        await self.until(lambda: all(holds(node.app.cluster) for node in self.active), condition)

    async def until(
        self, holds: Callable[[], bool], condition: str, timeout_s: float = WAIT_S
    ) -> None:
        """Wait until something holds. Raises TimeoutError with `condition`."""
        try:
            async with asyncio.timeout(timeout_s):
                while not holds():
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._changes.next(), LOOK_AGAIN_S)
        except TimeoutError:
            raise TimeoutError(f"waited {timeout_s:g} s until {condition}") from None


def _is_gone(cluster: Metadata, broker_id: int) -> bool:
    """Return whether a broker of this metadata leads nothing and is not the controller."""
    image = cluster.image
    return (
        broker_id not in image.brokers
        and image.controller_id not in (broker_id, NO_CONTROLLER)
        and all(
            partition.leader != broker_id
            for topic in image.topics.values()
            for partition in topic.partitions
        )
    )


def _behind(cluster: Metadata) -> list[str]:
    return [
        f"{topic.name}-{index} (in sync: {sorted(partition.isr)})"
        for topic in cluster.image.topics.values()
        for index, partition in enumerate(topic.partitions)
        if set(partition.isr) != set(partition.replicas)
    ]


def _leaders(cluster: Metadata, topic: str) -> list[int] | None:
    """Return the leader of each partition of a topic, None where there is no such topic."""
    image = cluster.image.topics.get(topic)
    return None if image is None else [state.leader for state in image.partitions]


def _settings(
    cluster: Metadata, kinds: Collection[str], name: str | None
) -> list[Mapping[str, Any]]:
    """Return the settings of an entity, None: of all entities of these kinds."""
    configs = cluster.image.configs
    return [
        configs.get(kind, {}) if name is None else configs.get(kind, {}).get(name, {})
        for kind in kinds
    ]


def _partition(cluster: Metadata, topic: str, index: int) -> PartitionImage:
    image = cluster.image.topics.get(topic)
    if image is None or not 0 <= index < len(image.partitions):
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}"
        )
    return image.partitions[index]


class _Changes(ClusterListener):
    """Hears of metadata changes of all brokers."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def follow(self, node: Node) -> None:
        """Hear of what a broker learns that starts now."""
        metadata = node.app.cluster
        metadata.subscribe(self)
        metadata.when_brokers_change(self._tell)

    async def next(self) -> None:
        """Wait for the next change."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def _tell(self, *_change: Any, **_names: Any) -> None:
        """Tell who waits."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    on_topic_created = on_topic_deleted = on_topic_missing = _tell
    on_partitions_added = on_leadership = _tell
