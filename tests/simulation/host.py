"""One broker id of a run: its disk, and the process that runs there now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.app import Broker
from minibroker.broker.cluster import paths
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.handlers.registry import ONLY_WITH_ZOOKEEPER, supported_versions
from minibroker.broker.storage.log_directory import LogDirectory
from minibroker.kafka.errors import MinibrokerError
from tests.simulation.loop import Machine, OrderedSet
from tests.simulation.network import FIRST_PORT
from tests.simulation.rules import content
from tests.support.faulty_files import FaultyFiles, PowerCut
from tests.support.logs import abandon

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from minibroker.broker.partitions.partition import Partition
    from minibroker.kafka.ids import TopicPartition
    from tests.simulation.tree import TreeSession
    from tests.simulation.world import World

SETTINGS = {
    "auto.create.topics.enable": "false",
    "replica.lag.time.max.ms": "1500",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "1000",
    "zookeeper.session.timeout.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "controller.socket.timeout.ms": "1000",
    "log.cleaner.enable": "false",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


class MachineFiles(FaultyFiles):
    """Files of one machine; after a cut every call fails as the cut did."""

    __slots__ = ("is_cut",)

    def __init__(self, root: str) -> None:
        self.is_cut = False
        super().__init__(root)

    def _count(self) -> None:
        if self.is_cut or self.call_count + 1 == self.cut_at:
            self.is_cut = True
            raise PowerCut(self.call_count)
        super()._count()


class Host:
    """One broker id: its disk, and the process that runs now."""

    def __init__(self, world: World, broker_id: int) -> None:
        self.world = world
        self.broker_id = broker_id
        self.root = world.directory / str(broker_id)
        self.root.mkdir()
        self.files = MachineFiles(str(self.root))
        self.machine: Machine | None = None
        self.broker: Broker
        self.session: TreeSession
        self.is_ready = False

    @property
    def is_running(self) -> bool:
        return self.machine is not None

    def replicas(self) -> Iterator[Partition]:
        """Yield the partitions of this broker that have a log; it runs."""
        for partitions in self.broker.partitions._topics.values():
            for partition in partitions.values():
                if partition.has_log:
                    yield partition

    def replica(self, name: TopicPartition) -> Partition | None:
        """Return a partition, None where it has no log now."""
        if self.machine is None or self.files.is_cut:
            return None
        partition = self.broker.partitions.replica(*name)
        return partition if partition is not None and partition.has_log else None

    def log_of(self, name: TopicPartition) -> tuple[int, bytes]:
        """Return where the log of a replica starts, and all its bytes."""
        partition = self.replica(name)
        assert partition is not None, f"broker {self.broker_id} has no replica of {name}"
        assert self.machine is not None
        return partition.log_start_offset, self.machine.context.run(content, partition)

    @property
    def is_settled(self) -> bool:
        """Return whether it knows all of the tree, and changes nothing there."""
        tree, cluster = self.world.tree, self.broker.cluster
        registered = {
            int(name): tree.nodes[paths.broker(int(name))].czxid
            for name in tree.children(paths.BROKER_IDS)
        }
        return (
            not self.session.is_away
            and not self.session.is_waiting
            and not self.broker.replication.isr._changing_partitions
            and registered == {id_: broker.epoch for id_, broker in cluster.image.brokers.items()}
            and registered.keys()
            == {host.broker_id for host in self.world.hosts if host.is_running}
        )

    @property
    def has_read_news(self) -> bool:
        """Return whether it has read all that the watches of the tree told it of."""
        cluster = self.broker.cluster
        return not cluster._follower._dirty and not cluster._context.lock.locked()

    def start(self) -> None:
        """Start a process."""
        world = self.world
        assert self.machine is None
        machine = self.machine = Machine(self.broker_id, world.network)
        self.session = world.tree.session(machine)
        self.is_ready = False
        config = {
            **SETTINGS,
            "broker.id": str(self.broker_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{FIRST_PORT + self.broker_id}",
            "log.dirs": str(self.root / "data"),
        }
        self.broker = machine.context.run(
            lambda: Broker(
                BrokerConfig(config), clock=world.clock, files=self.files, tree=self.session
            )
        )
        follower = self.broker.cluster._follower
        follower._dirty = OrderedSet(dict.fromkeys(follower._dirty))  # type: ignore[assignment]
        starting = world.loop.create_task(self._run(machine), context=machine.context)
        starting.add_done_callback(world.note_end, context=world.network.context)
        world.note(f"broker {self.broker_id} starts")

    async def _run(self, machine: Machine) -> None:
        try:
            await self.broker.start()
        except MinibrokerError as error:
            self.world.note(f"broker {self.broker_id} cannot start: {error}")
            self.world.loop.call_soon(
                self._start_again, machine, context=self.world.network.context
            )
            return
        if self.world.plan.has_stale_requests:
            served = supported_versions(with_zookeeper=True)
            self.broker.services.supported_apis.update(
                {key: served[key] for key in ONLY_WITH_ZOOKEEPER}
            )
        self.is_ready = True

    def _start_again(self, machine: Machine) -> None:
        if self.machine is machine:
            self.kill()
            self.world.later(1.0, self.start_if_down)

    def start_if_down(self) -> None:
        """Start a process where none runs."""
        if self.machine is None:
            self.start()

    def kill(self, *, is_silent: bool = False) -> None:
        """End the process as kill -9 does; with `is_silent` nobody is told."""
        machine, self.machine = self.machine, None
        assert machine is not None
        self.is_ready = False
        world, session = self.world, self.session
        world.loop.stop_machine(machine)
        session.stop()
        world.network.stop(machine, is_silent=is_silent)
        world.tree_expires_later(session)
        abandon(self.broker.logs)
        LogDirectory.locked_paths.discard(str(self.root / "data"))
        world.graveyard.append(self.broker)

    def cut_power(self, chance: random.Random, *, keeps_all: bool = False) -> None:
        """Lose the process, and what is not synced; with `keeps_all` the process only."""
        self.kill(is_silent=chance.random() < 0.5)
        self.files.is_cut = False
        self.files.cut_at = -1
        if keeps_all:
            return
        self.files.power_cut(
            lambda unsynced: chance.choice([0, unsynced, chance.randrange(unsynced + 1)]),
            lambda unsynced: chance.choice([0, unsynced, chance.randrange(unsynced + 1)]),
        )

    async def stop(self) -> None:
        """End the process as SIGTERM does."""
        machine = self.machine
        assert machine is not None
        self.is_ready = False
        world = self.world
        await world.loop.create_task(self.broker.stop(), context=machine.context)
        if self.machine is machine:
            self.machine = None
            world.loop.stop_machine(machine)
            self.session.stop()
            world.network.stop(machine, is_silent=False)
            world.graveyard.append(self.broker)
