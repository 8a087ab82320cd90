"""Three brokers and the faults that a test lets happen to one of them.

| fault  | meaning                                                                     |
|--------|-----------------------------------------------------------------------------|
| crash  | killed with -9 and started at once, within its session                      |
| death  | killed with -9 and started when its session is over and the others work     |
| cut    | stands still until its session is over and the others work, then goes on    |
| pause  | stands still for some transactions of the others, maybe within a session    |
| island | it runs and has its clients, and is cut off from the others and ZooKeeper,   |
|        | both ways, until its session is over and the others work                    |
| split  | it is cut off from one of the others for a while, both ways; not from clients |
|        | and ZooKeeper                                                               |
| power  | its machine loses power, and what was not synced; it starts at once         |
| outage | the same, and it starts when its session is over and the others work        |

Apache Kafka cannot start again within its old session, so its crash is a death.

A broker that is in sync alone is not taken away while others have to work: nobody could lead.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Final

from confluent_kafka.admin import AdminClient, NewTopic

from tests.fire import three_replicas
from tests.fire.links import ZOOKEEPER, Links
from tests.fire.losing_power import EXIT_CODE
from tests.fire.plan import CLUSTER_SETTINGS, PARTITIONS, WAIT_S
from tests.fire.three_replicas import IDS, all_partitions, in_sync
from tests.support.broker import Minibroker
from tests.support.peers import KafkaPeer
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from tests.compat_cluster.tree import ClusterTree
    from tests.fire.clients import Clients
    from tests.support.peers import ZooKeeper

ROLES: Final = ("leader", "controller", "follower")
KILLS: Final = ("crash", "death", "cut", "pause", "island", "split")
POWER_CUTS: Final = ("power", "outage")
OTHERS_WORK: Final = ("crash", "death", "cut", "pause", "island")
"""Faults in which the others have to go on without the broker."""
SPLIT_S: Final = 10.0
"""Longest time of a split, in which a leader may have no way to commit."""


class PoweredMinibroker(Minibroker):
    """A minibroker on a machine that may lose power."""

    def command(self) -> list[str]:
        """Return the command line of the next start."""
        command = super().command()
        at = command.index("minibroker")
        return [*command[:at], "tests.fire.losing_power", *command[at + 1 :]]

    def lose_power(self) -> None:
        """Drop what was not synced, and end the process."""
        assert self.process is not None
        self.process.popen.send_signal(signal.SIGUSR1)
        code = self.process.popen.wait(WAIT_S)
        assert code == EXIT_CODE, f"the broker ended with {code}\n{self.process.log_tail()}"
        self.kill()


class Brokers:
    """Brokers 0, 1 and 2; called by one thread."""

    def __init__(
        self, kafkas: frozenset[int], directory: Path, zookeeper: ZooKeeper, tree: ClusterTree
    ) -> None:
        """`kafkas`: the ids of those that are Apache Kafka 3.9.1; the others are minibroker."""
        self.tree = tree
        self.links = Links(IDS, zookeeper.port, self._pid)
        self.all: list[Minibroker | KafkaPeer] = []
        for broker_id in IDS:
            make = self._kafka if broker_id in kafkas else self._minibroker
            self.all.append(make(broker_id, directory))

    @property
    def address(self) -> str:
        """Return the addresses of all, for a client's bootstrap.servers."""
        return ",".join(broker.address for broker in self.all)

    def start_all(self) -> None:
        """Start all; when this returns they know each other, and the topics are there."""
        for broker in self.all:
            broker.start()
        self._wait(lambda: all(map(self._knows_all, IDS)), "each broker knows all")
        admin = AdminClient({"bootstrap.servers": self.address})
        topics = [NewTopic(name, PARTITIONS, 3) for name in ("input", "output")]
        for future in admin.create_topics(topics).values():
            future.result(WAIT_S)

    def _settings(self, n: int, port: int) -> dict[str, str]:
        inside, outside = self.links.inside[n], self.links.outside[n]
        return {
            **CLUSTER_SETTINGS,
            "broker.id": str(n),
            "listeners": f"CLIENTS://127.0.0.1:{port},BROKERS://127.0.0.1:{inside}",
            "advertised.listeners": f"CLIENTS://127.0.0.1:{port},BROKERS://127.0.0.1:{outside}",
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
        }

    def _connect(self, n: int) -> str:
        return f"127.0.0.1:{self.links.zookeeper[n]}/{self.tree.chroot}"

    def _kafka(self, n: int, directory: Path) -> KafkaPeer:
        peer = KafkaPeer("3.9.1", directory / f"kafka-{n}", zookeeper=self._connect(n))
        peer.settings.update(self._settings(n, peer.port))
        return peer

    def _minibroker(self, n: int, directory: Path) -> Minibroker:
        broker = PoweredMinibroker(
            directory / f"data-{n}", directory / f"data-{n}.log", zookeeper=self._connect(n)
        )
        broker.settings.update(self._settings(n, int(broker.listen.rpartition(":")[2])))
        return broker

    def _knows_all(self, n: int) -> bool:
        with WireClient(self.all[n].host, self.all[n].port) as client:
            return len(client.call("metadata", 1, topics=[])["brokers"]) == len(IDS)

    def _pid(self, n: int) -> int | None:
        process = self.all[n].process
        return None if process is None else process.popen.pid

    def kill_all(self) -> None:
        """Kill every broker that runs."""
        for broker in self.all:
            broker.kill()
        self.links.close()

    def victim(self, role: str, dice: random.Random) -> int:
        """Return the broker that has a role now; another one where none has it."""
        topic, partition = dice.choice(("input", "output")), dice.randrange(PARTITIONS)
        drawn = dice.choice(IDS)
        if role == "controller":
            controller = self.tree.controller
            return drawn if controller is None else controller
        state = self.tree.state(topic, partition)
        assert state is not None
        leader: int = state["leader"]
        if role == "leader":
            return leader if leader in IDS else drawn
        others = [n for n in IDS if n not in {leader, self.tree.controller}]
        return others[0] if others else drawn

    def play(self, fault: str, victim: int, clients: Clients, count: int) -> None:
        """Let a fault happen; `count` transactions are committed while the victim is away."""
        condition = f"{count} transactions while broker {victim} is away ({fault})"
        if fault in OTHERS_WORK:
            self._wait(
                lambda: not any(in_sync(self.tree, *at) == {victim} for at in all_partitions()),
                f"broker {victim} is in sync with another one",
            )
        if fault in {"crash", "death"}:
            self.all[victim].kill()
            self._start_again(fault == "death", victim, clients, count, condition)
        elif fault in POWER_CUTS:
            self._cut_power(fault == "outage", victim, clients, count, condition)
        elif fault in {"cut", "pause"}:
            self._stand(fault == "cut", victim, clients, count, condition)
        else:
            self._isolate(fault, victim, clients, count, condition)
        self._wait(lambda: victim in self.tree.brokers(), f"broker {victim} is registered")

    def _start_again(
        self, is_death: bool, victim: int, clients: Clients, count: int, condition: str
    ) -> None:
        broker = self.all[victim]
        if is_death or isinstance(broker, KafkaPeer):
            self._wait_until_forgotten(victim)
            clients.wait_for_transactions(count, condition)
        broker.start()

    def _cut_power(
        self, is_outage: bool, victim: int, clients: Clients, count: int, condition: str
    ) -> None:
        """Cut the power of one machine; when this returns all replicas are in sync again.

        So the next cut of another one removes nothing that only two brokers have.
        """
        broker = self.all[victim]
        assert isinstance(broker, PoweredMinibroker)
        versions = {at: self.tree.state_version(*at) for at in all_partitions()}
        broker.lose_power()
        self._start_again(is_outage, victim, clients, count, condition)
        for at, version in versions.items():
            self._wait(
                lambda at=at, version=version: self.tree.state_version(*at) > version,  # type: ignore[misc]
                f"the state of {at} has changed since broker {victim} lost power",
            )
        self.wait_until_in_sync()

    def _stand(
        self, is_cut: bool, victim: int, clients: Clients, count: int, condition: str
    ) -> None:
        pid = self._pid(victim)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            if is_cut:
                self._wait_until_forgotten(victim)
            clients.wait_for_transactions(count, condition)
        finally:
            os.kill(pid, signal.SIGCONT)

    def _isolate(
        self, fault: str, victim: int, clients: Clients, count: int, condition: str
    ) -> None:
        others = [n for n in IDS if n != victim]
        try:
            if fault == "island":
                self.links.cut(victim, [*others, ZOOKEEPER])
                self._wait_until_forgotten(victim)
                clients.wait_for_transactions(count, condition)
            else:
                self.links.cut(victim, others[count % 2 :][:1])
                clients.have_transactions(count, SPLIT_S)
        finally:
            self.links.mend()

    def _wait_until_forgotten(self, victim: int) -> None:
        self._wait(lambda: victim not in self.tree.brokers(), f"broker {victim} is gone")

    def _wait(self, holds: Callable[[], bool], condition: str) -> None:
        wait_until(holds, condition, WAIT_S)

    def wait_until_in_sync(self) -> None:
        """Wait until every replica is in sync."""
        three_replicas.wait_until_in_sync(self.tree)

    def wait_until_equal(self) -> None:
        """Wait until the replicas of each partition have the same bytes."""
        three_replicas.wait_until_equal(self._directory_of)

    def _directory_of(self, broker_id: int) -> Path:
        broker = self.all[broker_id]
        return broker.data_dir if isinstance(broker, Minibroker) else broker.log_dir

    def errors(self) -> list[str]:
        """Return each error and traceback that a minibroker logged, with the lines behind it."""
        return [
            error
            for broker_id, broker in enumerate(self.all)
            if isinstance(broker, Minibroker)
            for error in three_replicas.errors_of(broker_id, broker.log_path)
        ]
