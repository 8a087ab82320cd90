"""Three broker processes on one ZooKeeper: Apache Kafka 3.9.1 or minibroker, with one interface.

Everything that happens to a broker here has happened when the method returns: a broker that was
killed has no session any more, and the others know; one that was started knows the cluster.
"""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import psutil

from tests.compat_cluster.tree import WAIT_S, ClusterTree
from tests.support.broker import Minibroker
from tests.support.peers import ONE_NODE, KafkaPeer
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

IDS: Final = (0, 1, 2)

SETTINGS: Final = {
    **ONE_NODE,
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "1",
    "auto.create.topics.enable": "false",
    # A leader changes when a situation wants it.
    "auto.leader.rebalance.enable": "false",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.wait.max.ms": "100",
    "replica.fetch.backoff.ms": "100",
    # A session ends when a situation wants it, not because the machine is busy.
    "zookeeper.session.timeout.ms": "60000",
    "num.network.threads": "2",
    "num.io.threads": "4",
}


class ThreeBrokers:
    """Brokers 0, 1 and 2. The methods are called by one thread at a time."""

    def __init__(
        self, name: str, tree: ClusterTree, brokers: Sequence[KafkaPeer | Minibroker]
    ) -> None:
        self.name = name
        self.tree = tree
        self._brokers = brokers
        self.running: set[int] = set()

    def start_all(self) -> None:
        """Start all of them at once; each knows the others and the controller."""
        with ThreadPoolExecutor(len(IDS)) as threads:
            list(threads.map(lambda n: self._brokers[n].start(), IDS))
        self.running = set(IDS)
        self.wait_until_ready()

    def address(self, n: int) -> tuple[str, int]:
        """Return host and port of a broker."""
        return self._brokers[n].host, self._brokers[n].port

    @property
    def bootstrap(self) -> str:
        """Return the addresses of all brokers, for a client."""
        return ",".join(broker.address for broker in self._brokers)

    def log_dir(self, n: int) -> Path:
        """Return the directory with the partitions of a broker."""
        broker = self._brokers[n]
        return broker.data_dir if isinstance(broker, Minibroker) else broker.log_dir

    # What may happen to a broker

    def start(self, n: int) -> None:
        """Start a broker; it is registered and knows the controller."""
        self._brokers[n].start()
        self.running.add(n)
        self.wait_until_ready()

    def stop(self, n: int) -> None:
        """Stop a broker with a controlled shutdown."""
        self.running.discard(n)
        self._brokers[n].stop()
        self.wait_until_ready()

    def kill(self, n: int) -> None:
        """Kill a broker at once, and end its session."""
        session_id = self.tree.session_of(n)
        assert session_id is not None
        self.running.discard(n)
        self._brokers[n].kill()
        self.tree.end_session(session_id)
        self.wait_until_ready()

    def pause(self, n: int) -> None:
        """Stop the process of a broker where it is; its connections and its session stay."""
        self.running.discard(n)
        process = psutil.Process(self._pid(n))
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: process.status() == psutil.STATUS_STOPPED, f"broker {n} stands", WAIT_S)

    def resume(self, n: int) -> None:
        """Let the process of a broker go on; it is registered."""
        os.kill(self._pid(n), signal.SIGCONT)
        self.running.add(n)
        wait_until(lambda: n in self.tree.brokers(), f"broker {n} is registered", WAIT_S)

    def expire(self, n: int) -> None:
        """End the session of a broker that runs or stands."""
        session_id = self.tree.session_of(n)
        assert session_id is not None
        self.tree.end_session(session_id)

    def bounce(self, n: int) -> None:
        """Kill a broker and start it again while the controller stands: it sees both as one."""
        controller = self.tree.controller
        assert controller not in {None, n}
        self.pause(controller)
        session_id = self.tree.session_of(n)
        assert session_id is not None
        broker = self._brokers[n]
        broker.kill()
        self.tree.end_session(session_id)
        with ThreadPoolExecutor(1) as thread:
            # A Kafka is ready when the controller has told it of the cluster.
            started = thread.submit(broker.start)
            wait_until(lambda: n in self.tree.brokers(), f"broker {n} is registered", WAIT_S)
            self.resume(controller)
            started.result()
        self.wait_until_ready()

    def make_controller(self, n: int) -> None:
        """Make a broker the controller: the others stand while the node is free."""
        if self.tree.controller == n:
            return
        others = [other for other in self.running if other != n]
        for other in others:
            self.pause(other)
        self.tree.delete("/controller")
        wait_until(lambda: self.tree.controller == n, f"broker {n} is the controller", WAIT_S)
        for other in others:
            self.resume(other)
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until each broker that runs tells clients of all of them, and of the controller."""

        def is_ready() -> bool:
            expected = (self.running, self.tree.controller)
            return all(self._cluster_at(n) == expected for n in self.running)

        wait_until(is_ready, "each broker knows the cluster", WAIT_S)

    def _cluster_at(self, n: int) -> tuple[set[int], int]:
        with WireClient(*self.address(n)) as client:
            answer = client.call("metadata", 8, topics=[])
        return {broker["node_id"] for broker in answer["brokers"]}, answer["controller_id"]

    def _pid(self, n: int) -> int:
        process = self._brokers[n].process
        assert process is not None
        return process.popen.pid

    def kill_all(self) -> None:
        """Kill every process that still runs, paused or not."""
        for broker in self._brokers:
            broker.kill()


def kafka(n: int, directory: Path, connect: str, **settings: str) -> KafkaPeer:
    """Return Apache Kafka 3.9.1 as broker n, not started."""
    return KafkaPeer(
        "3.9.1",
        directory / f"kafka-{n}",
        zookeeper=connect,
        settings={**SETTINGS, "broker.id": str(n), **settings},
    )


def minibroker(n: int, directory: Path, connect: str, **settings: str) -> Minibroker:
    """Return a process of minibroker as broker n, not started."""
    return Minibroker(
        directory / f"minibroker-{n}",
        directory / f"minibroker-{n}.log",
        zookeeper=connect,
        settings={**SETTINGS, "broker.id": str(n), **settings},
    )


def three_kafkas(directory: Path, connect: str, tree: ClusterTree) -> ThreeBrokers:
    """Return three Apache Kafka 3.9.1, not started."""
    return ThreeBrokers("3.9.1", tree, [kafka(n, directory, connect) for n in IDS])


def three_minibrokers(directory: Path, connect: str, tree: ClusterTree) -> ThreeBrokers:
    """Return three processes of minibroker, not started."""
    directory.mkdir(parents=True, exist_ok=True)
    return ThreeBrokers("minibroker", tree, [minibroker(n, directory, connect) for n in IDS])


def mixed_brokers(
    kafkas: frozenset[int], directory: Path, connect: str, tree: ClusterTree, **settings: str
) -> ThreeBrokers:
    """Return three brokers, not started: those with the ids in `kafkas` are Apache Kafka 3.9.1.

    `settings`: of all of them.
    """
    directory.mkdir(parents=True, exist_ok=True)
    brokers = [
        (kafka if broker_id in kafkas else minibroker)(broker_id, directory, connect, **settings)
        for broker_id in IDS
    ]
    return ThreeBrokers(f"Kafkas {sorted(kafkas)}", tree, brokers)
