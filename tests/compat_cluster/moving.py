"""Three brokers of which each is Apache Kafka 3.9.1 or minibroker, one after the other.

Both kinds have the same `server.properties`, so the same id, address, data directory and ZooKeeper.
One of them runs.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from tests.fire import three_replicas
from tests.fire.plan import CLUSTER_SETTINGS, WAIT_S
from tests.fire.three_replicas import IDS, TOPICS
from tests.support.broker import Minibroker
from tests.support.configured import ConfiguredMinibroker
from tests.support.peers import KafkaPeer
from tests.support.processes import free_port
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.compat_cluster.tree import ClusterTree

KAFKA: Final = "kafka"
MINIBROKER: Final = "minibroker"
SETTINGS: Final = {
    **CLUSTER_SETTINGS,
    "zookeeper.session.timeout.ms": "18000",
    # A leader moves when the test moves it.
    "auto.leader.rebalance.enable": "false",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.retention.ms": "-1",
    "num.network.threads": "2",
    "num.io.threads": "4",
}


class Moving:
    """The methods are called by one thread."""

    def __init__(
        self,
        directory: Path,
        connect: str,
        tree: ClusterTree,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.tree = tree
        self._kinds: list[dict[str, KafkaPeer | Minibroker]] = []
        self.log_dirs = [directory / f"data-{n}" for n in IDS]
        for broker_id, log_dir in enumerate(self.log_dirs):
            peer = KafkaPeer(
                "3.9.1",
                directory / f"kafka-{broker_id}",
                zookeeper=connect,
                settings={**SETTINGS, **(settings or {}), "broker.id": str(broker_id)},
                log_dir=log_dir,
                port=free_port(),
                common={},
            )
            own = ConfiguredMinibroker(peer, directory / f"minibroker-{broker_id}.log")
            self._kinds.append({KAFKA: peer, MINIBROKER: own})
        self.address = ",".join(kinds[KAFKA].address for kinds in self._kinds)
        self.kind_of: dict[int, str] = {}

    def start_all(self, kinds: dict[int, str]) -> None:
        """Start all brokers; `kinds`: id → kind."""
        with ThreadPoolExecutor(len(IDS)) as threads:
            list(threads.map(lambda n: self._kinds[n][kinds[n]].start(), IDS))
        self.kind_of = dict(kinds)
        self._wait(lambda: self.tree.brokers() == set(IDS), "all brokers are registered")

    def kill_all(self) -> None:
        """Kill what runs."""
        for kinds in self._kinds:
            for broker in kinds.values():
                broker.kill()

    def stop_all(self) -> None:
        """Stop what runs, one after the other."""
        for broker_id in IDS:
            self._kinds[broker_id][self.kind_of[broker_id]].stop()

    def replace(self, n: int, kind: str) -> None:
        """Stop a broker and start one of the other kind in its place; its replicas are in sync."""
        self._kinds[n][self.kind_of[n]].stop()
        self._wait(lambda: n not in self.tree.brokers(), f"broker {n} is gone")
        self._kinds[n][kind].start()
        self.kind_of[n] = kind
        self.wait_until_in_sync()

    def elect_preferred(self) -> None:
        """Let each partition be led by the first of its replicas."""
        controller = self.tree.controller
        assert controller is not None
        broker = self._kinds[controller][self.kind_of[controller]]
        with WireClient(broker.host, broker.port) as client:
            client.call(
                "elect_leaders", 2, election_type=0, topic_partitions=None, timeout_ms=60_000
            )
        for topic, partitions in TOPICS.items():
            node = self.tree.topic(topic)
            assert node is not None
            for partition in range(partitions):
                leader = node["partitions"][str(partition)][0]
                self._wait(
                    lambda at=(topic, partition), leader=leader: self._leader(*at) == leader,  # type: ignore[misc]
                    f"{topic}-{partition} is led by broker {leader}",
                )

    def _leader(self, topic: str, partition: int) -> int:
        state = self.tree.state(topic, partition)
        return -1 if state is None else int(state["leader"])

    def wait_until_in_sync(self) -> None:
        """Wait until every replica is in sync."""
        three_replicas.wait_until_in_sync(self.tree)

    def wait_until_equal(self) -> None:
        """Wait until the replicas of each partition have the same bytes."""
        three_replicas.wait_until_equal(self.log_dirs.__getitem__)

    def errors(self) -> list[str]:
        """Return each error and traceback that a minibroker logged, with the lines behind it."""
        errors: list[str] = []
        for broker_id in IDS:
            broker = self._kinds[broker_id][MINIBROKER]
            assert isinstance(broker, Minibroker)
            if broker.log_path.exists():
                errors += three_replicas.errors_of(broker_id, broker.log_path)
        return errors

    def _wait(self, holds: Callable[[], bool], event: str) -> None:
        wait_until(holds, event, WAIT_S)
