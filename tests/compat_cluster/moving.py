"""Three brokers of which each is Apache Kafka 3.9.1 or minibroker, one after the other.

Both kinds have the same `server.properties`, so the same id, address, data directory and ZooKeeper.
One of them runs.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from tests.fire.plan import CLUSTER_SETTINGS, PARTITIONS, WAIT_S
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

IDS: Final = (0, 1, 2)
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
TOPICS: Final = {
    "input": PARTITIONS,
    "output": PARTITIONS,
    "__consumer_offsets": int(CLUSTER_SETTINGS["offsets.topic.num.partitions"]),
    "__transaction_state": int(CLUSTER_SETTINGS["transaction.state.log.num.partitions"]),
}
LINES_OF_ERROR: Final = 30


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
        for n, log_dir in enumerate(self.log_dirs):
            peer = KafkaPeer(
                "3.9.1",
                directory / f"kafka-{n}",
                zookeeper=connect,
                settings={**SETTINGS, **(settings or {}), "broker.id": str(n)},
                log_dir=log_dir,
                port=free_port(),
                common={},
            )
            own = ConfiguredMinibroker(peer, directory / f"minibroker-{n}.log")
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
        for n in IDS:
            self._kinds[n][self.kind_of[n]].stop()

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

        def isr(topic: str, partition: int) -> set[int]:
            state = self.tree.state(topic, partition)
            return set() if state is None else set(state["isr"])

        for topic, partitions in TOPICS.items():
            for partition in range(partitions):
                self._wait(
                    lambda at=(topic, partition): isr(*at) == set(IDS),  # type: ignore[misc]
                    f"all replicas of {topic}-{partition} are in sync",
                )

    def wait_until_equal(self) -> None:
        """Wait until the replicas of each partition have the same bytes.

        Internal topics are compacted, by each broker when it likes, so they are not compared.
        """
        for name in [f"{topic}-{n}" for topic in ("input", "output") for n in range(PARTITIONS)]:
            self._wait(
                lambda name=name: len({self._log(n, name) for n in IDS}) == 1,  # type: ignore[misc]
                f"the replicas of {name} are equal",
            )

    def _log(self, n: int, name: str) -> bytes:
        segments = sorted((self.log_dirs[n] / name).glob("*.log"))
        return b"".join(segment.read_bytes() for segment in segments)

    def errors(self) -> list[str]:
        """Return each error and traceback that a minibroker logged, with the lines behind it."""
        errors = []
        for n in IDS:
            broker = self._kinds[n][MINIBROKER]
            assert isinstance(broker, Minibroker)
            if not broker.log_path.exists():
                continue
            lines = broker.log_path.read_text(errors="replace").splitlines()
            for number, line in enumerate(lines):
                if " ERROR " in line or line.startswith("Traceback"):
                    text = "\n".join(lines[number : number + LINES_OF_ERROR])
                    errors.append(f"broker {n}: {text}")
        return errors

    def _wait(self, holds: Callable[[], bool], event: str) -> None:
        wait_until(holds, event, WAIT_S)
