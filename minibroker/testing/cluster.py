"""`Cluster`: several minibrokers in the test's process, which replicate as a Kafka cluster does.

One thread, one loop, one metadata tree without ZooKeeper; each broker has a session with the tree,
a port and a directory of its own. A broker that is killed loses its session at once, so others lead
what it led a moment later.

    with Cluster(3, topics=["orders:6"]) as cluster:
        cluster.kill(cluster.leader("orders"))
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from minibroker.config.broker import BrokerConfig
from minibroker.config.members import configs_of, replicas_of
from minibroker.config.options import parse_topic
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.local_cluster import LocalCluster
from minibroker.testing.broker import (
    MEMORY,
    START_TIMEOUT_S,
    TEST_DEFAULTS,
    WAIT_TIMEOUT_S,
    setting_text,
)
from minibroker.testing.clock import MovableClock
from minibroker.testing.faults import Fault, refuse_in_loop
from minibroker.testing.loop_thread import LoopThread
from minibroker.testing.node import Node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence

    from minibroker.cluster.cluster import Cluster as Metadata
    from minibroker.cluster.image import PartitionImage, TopicImage


CLUSTER_DEFAULTS: Final = {
    **TEST_DEFAULTS,
    # Leaders move when the test moves them.
    "auto.leader.rebalance.enable": "false",
    # A stop does not wait for another replica to catch up.
    "controlled.shutdown.max.retries": "1",
    # A follower that could not fetch tries again soon, by the machine's clock.
    "replica.fetch.backoff.ms": "50",
}


class Cluster:
    """Brokers 0 to `brokers` - 1, between `start` and `stop`, or in a `with` block.

    Args:
        brokers: how many.
        topics: topics to make at the start: `"orders"`, `"orders:3"`, as on the command line.
        config: Kafka's settings, the same for each broker.
        data_dir: directory of their data; None: in memory, until the cluster stops.
        racks: `broker.rack` of broker 0, 1, …; brokers behind the last one have none.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        topics: Iterable[str] = (),
        config: Mapping[str, str | int | bool] | None = None,
        data_dir: str | Path | None = None,
        racks: Sequence[str] = (),
    ) -> None:
        if brokers < 1:
            raise ValueError(f"brokers={brokers}: a cluster has one broker or more")
        # Constant after construction.
        self._count = brokers
        self._topics = tuple(parse_topic(topic) for topic in topics)
        self._settings = {name: setting_text(value) for name, value in (config or {}).items()}
        self._data_dir = data_dir
        self._racks = tuple(racks)
        self._thread = LoopThread(self._serving, on_end=self._remove_data)
        self._own_dir: str | None = None
        self._nodes: list[Node] = []
        """In the order of broker ids; the loop's, while the cluster runs."""
        self._changes = _Changes()

    # Life.

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.wrap_future(self._thread.begin())
        return self

    async def __aexit__(self, *_: object) -> None:
        ended = self._thread.end()
        if ended is not None:
            await asyncio.wrap_future(ended)
            self._thread.join()

    def start(self) -> None:
        """Start the brokers; clients may come when this returns. Raises MinibrokerError."""
        self._thread.begin().result(START_TIMEOUT_S)

    def stop(self) -> None:
        """Stop the brokers and remove their data in memory; do nothing if they are stopped."""
        ended = self._thread.end()
        if ended is not None:
            ended.result(START_TIMEOUT_S)
            self._thread.join()

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        directory = self._directory()
        clock = MovableClock()
        cluster = LocalCluster(directory, clock)
        config = BrokerConfig({**CLUSTER_DEFAULTS, **self._settings, "log.dirs": str(directory)})
        self._nodes = [
            Node(self._in_rack(number, member), clock=clock, new_tree=cluster.tree.session)
            for number, member in enumerate(configs_of(config, self._count))
        ]
        cluster.members.extend(self._nodes)
        await cluster.start(self._topics)
        for node in self._nodes:
            self._changes.follow(node.app.cluster)
        yield
        await cluster.stop()

    def _directory(self) -> Path:
        if self._data_dir is not None:
            directory = Path(self._data_dir)
            directory.mkdir(parents=True, exist_ok=True)
            return directory
        memory = MEMORY if MEMORY.is_dir() else None
        self._own_dir = tempfile.mkdtemp(prefix="minibroker-", dir=memory)
        return Path(self._own_dir)

    def _remove_data(self) -> None:
        if self._own_dir is not None:
            shutil.rmtree(self._own_dir, ignore_errors=True)
            self._own_dir = None

    def _in_rack(self, number: int, member: BrokerConfig) -> BrokerConfig:
        """Return the configuration of a broker with its rack, if it has one."""
        if number >= len(self._racks):
            return member
        return member.with_overrides({"broker.rack": self._racks[number]})

    # What a test wants to know.

    @property
    def bootstrap(self) -> str:
        """Return `HOST:PORT,HOST:PORT,…` for a client's bootstrap.servers."""
        self._check_running()
        return ",".join(f"{host}:{port}" for host, port in (node.address for node in self._nodes))

    @property
    def controller(self) -> int:
        """Return the id of the broker that is the controller, -1 while there is none."""
        controller_id: int = self._call(lambda: self._metadata().image.controller_id)
        return controller_id

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the id of a partition's leader, -1 while there is none. Raises KafkaError."""
        leader: int = self._call(lambda: self._partition(topic, partition).leader)
        return leader

    def in_sync(self, topic: str, partition: int = 0) -> list[int]:
        """Return the brokers that are in sync (the ISR), ascending. Raises KafkaError."""
        isr: list[int] = self._call(lambda: sorted(self._partition(topic, partition).isr))
        return isr

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str | int | bool] | None = None,
        *,
        replication_factor: int | None = None,
    ) -> None:
        """Make a topic, with 3 replicas where there are as many brokers. Raises KafkaError."""
        named = {key: setting_text(value) for key, value in (config or {}).items()}
        replicas = replication_factor or replicas_of(self._count)

        async def create() -> None:
            await self._metadata().create_topic(name, partitions, replicas, configs=named)

        self._await(create())

    # What may happen to a broker.

    def kill(self, broker_id: int) -> None:
        """End a broker as `kill -9` does; its files stay."""
        node = self._node(broker_id)
        if node.is_running:
            self._await(node.add(Fault(broker="killed")))

    def restart(self, broker_id: int) -> None:
        """Start a killed broker again, on its files and at its address."""
        node = self._node(broker_id)

        async def restart() -> None:
            await node.clear()
            self._changes.follow(node.app.cluster)

        self._await(restart())

    # Waiting.

    def wait_until_in_sync(self, timeout_s: float = WAIT_TIMEOUT_S) -> None:
        """Wait until every replica of every partition is in sync, all brokers running.

        Raises TimeoutError with the partitions that are not; RuntimeError in a running event loop.
        """
        refuse_in_loop("wait_until_in_sync")
        self._await(self._until_in_sync(timeout_s), timeout_s)

    async def await_in_sync(self, timeout_s: float = WAIT_TIMEOUT_S) -> None:
        """Do `wait_until_in_sync`, for a test in a loop of its own."""
        self._check_running()
        await asyncio.wrap_future(self._thread.submit(self._until_in_sync(timeout_s)))

    async def _until_in_sync(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while self._behind():
                    await self._changes.next()
        except TimeoutError:
            listed = ", ".join(self._behind())
            raise TimeoutError(f"not in sync after {timeout_s:g} s: {listed}") from None

    def _behind(self) -> list[str]:
        """Return the partitions that lack a replica, with those in sync."""
        return [
            f"{topic.name}-{index} (in sync: {sorted(partition.isr)})"
            for topic in self._metadata().image.topics.values()
            for index, partition in enumerate(topic.partitions)
            if set(partition.isr) != set(partition.replicas)
        ]

    # Calls onto the loop.

    def _node(self, broker_id: int) -> Node:
        self._check_running()
        if not 0 <= broker_id < self._count:
            raise ValueError(f"there is no broker {broker_id}, they are 0 to {self._count - 1}")
        return self._nodes[broker_id]

    def _metadata(self) -> Metadata:
        """Return the metadata of a broker that runs. Raises RuntimeError."""
        for node in self._nodes:
            if node.is_running:
                return node.app.cluster
        raise RuntimeError("all brokers of the cluster are killed: restart one")

    def _partition(self, topic: str, partition: int) -> PartitionImage:
        found = self._metadata().image.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{partition}"
            )
        return found.partitions[partition]

    def _call(self, function: Callable[[], Any]) -> Any:
        self._check_running()

        async def call() -> Any:
            return function()

        return self._await(call())

    def _await(self, coroutine: Coroutine[Any, Any, Any], timeout_s: float = WAIT_TIMEOUT_S) -> Any:
        return self._thread.submit(coroutine).result(timeout_s + 5)

    def _check_running(self) -> None:
        if not self._thread.is_running:
            raise RuntimeError("this cluster is not running: use it in a with block, or start it")


class _Changes:
    """Hears of metadata changes of all brokers (`cluster.updates.ClusterListener`)."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def follow(self, metadata: Metadata) -> None:
        """Hear of what one broker learns."""
        metadata.subscribe(self)
        metadata.when_brokers_change(self._tell)

    async def next(self) -> None:
        """Wait for the next change."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def on_topic_created(self, topic: TopicImage) -> None:
        """Tell who waits."""
        self._tell()

    def on_topic_deleted(self, topic: TopicImage) -> None:
        """Tell who waits."""
        self._tell()

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Tell who waits."""
        self._tell()

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Tell who waits."""
        self._tell()

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        """Ignore it: nobody waits for a setting."""
