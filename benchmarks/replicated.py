"""`python -m benchmarks.replicated`: three brokers in three processes beside Apache Kafka 3.9.1.

Both clusters use one ZooKeeper, one after the other. Rows:

    start      the processes are started → each answers Metadata that names three brokers
    produce    ProducerPerformance: 1 KB records, acks=all, three replicas, six partitions
    failover   a leader is killed with -9 → another broker acknowledges a Produce with acks=all
    takeover   the controller of 2,000 partitions is killed with -9 → each has a leader that lives

Before `failover` and `takeover` ZooKeeper must miss the session of the dead broker, for both
`SESSION_MS`. Takes about four minutes.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, wire
from benchmarks.children import Child
from benchmarks.peers import KAFKA_SCRIPT_FLAGS
from benchmarks.rows.load import parse_producer, tool_command
from tests.support import broker, java, peers
from tests.support.processes import free_port

BROKERS: Final = (0, 1, 2)
SESSION_MS: Final = 6_000
SETTINGS: Final = {
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "false",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "zookeeper.session.timeout.ms": str(SESSION_MS),
}
RECORD_BYTES: Final = 1_000
PARTITIONS: Final = 6
MANY_TOPICS, MANY_PARTITIONS = 20, 100
PATIENCE_S: Final = 120.0
_pause = time.sleep


class ClusterOf:
    """Brokers 0, 1 and 2 of one kind, each a process with a directory of its own."""

    def __init__(self, kind: str, directory: Path, zookeeper: str) -> None:
        self.kind = kind
        self.ports = {n: free_port() for n in BROKERS}
        self._children: dict[int, Child] = {}
        self._commands = {n: self._command(directory / str(n), zookeeper, n) for n in BROKERS}

    def _command(self, directory: Path, zookeeper: str, n: int) -> tuple[list[str], Path]:
        directory.mkdir(parents=True)
        settings = {**SETTINGS, "broker.id": str(n)}
        if self.kind == "minibroker":
            started = broker.Minibroker(
                directory / "data",
                directory / "output.log",
                zookeeper=zookeeper,
                settings=settings,
                listen=f"127.0.0.1:{self.ports[n]}",
            )
            return started.command(), directory
        peers.KafkaPeer(
            "3.9.1",
            directory,
            zookeeper=zookeeper,
            settings=settings,
            log_dir=directory / "data",
            port=self.ports[n],
            common={},
        ).prepare()
        options = [java.log_option("tools")]
        jvm = KAFKA_SCRIPT_FLAGS
        return peers.kafka_command(java.KAFKA_39, directory, options=options, jvm=jvm), directory

    def start(self) -> float:
        """Start all; return the seconds until each broker names all of them."""
        begun = time.perf_counter()
        for n, (command, directory) in self._commands.items():
            output = directory / "output.log"
            self._children[n] = Child(command, output=output, directory=directory)
        for n in BROKERS:
            wire.wait_for_metadata(
                self.ports[n], timeout_s=PATIENCE_S, check=self._children[n].check
            )
            _wait(lambda n=n: len(self.metadata(n)["brokers"]) == len(BROKERS), f"{n} knows all")
        return time.perf_counter() - begun

    def metadata(self, n: int, topics: list[str] | None = None) -> Any:
        """Return what broker `n` answers about these topics, None: all of them."""
        asked = None if topics is None else [{"name": name} for name in topics]
        connection = wire.Connection(self.ports[n])
        try:
            return wire.call(
                connection, "metadata", 4, topics=asked, allow_auto_topic_creation=False
            )
        finally:
            connection.close()

    def create(self, name: str, partitions: int) -> None:
        """Create a topic with three replicas at the controller, and wait until all are in sync."""
        controller = self.metadata(0, [])["controller_id"]
        connection = wire.Connection(self.ports[controller])
        wire.create_topic(connection, name, partitions, replicas=len(BROKERS))
        connection.close()
        for n in self.alive:
            _wait(lambda n=n: self._is_in_sync(n, name, partitions), f"{name} is in sync")

    def _is_in_sync(self, n: int, name: str, partitions: int) -> bool:
        (topic,) = self.metadata(n, [name])["topics"]
        found = topic["partitions"]
        return len(found) == partitions and all(
            len(partition["isr_nodes"]) == len(BROKERS) for partition in found
        )

    @property
    def alive(self) -> list[int]:
        """Ids of the brokers that run."""
        return list(self._children)

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers, for `bootstrap.servers`."""
        return ",".join(f"127.0.0.1:{self.ports[n]}" for n in BROKERS)

    def cpu_s(self) -> float:
        """Processor time of all brokers so far."""
        return sum(child.cpu_seconds() for child in self._children.values())

    def kill(self, n: int) -> None:
        """Send SIGKILL."""
        self._children.pop(n).kill()

    def stop(self) -> None:
        """Kill all that run."""
        for n in self.alive:
            self.kill(n)


def _wait(holds: Callable[[], bool], what: str) -> None:
    deadline = time.perf_counter() + PATIENCE_S
    while not holds():
        if time.perf_counter() > deadline:
            raise wire.WireError(f"not so after {PATIENCE_S:g} s: {what}")
        _pause(0.01)


def produce(cluster: ClusterOf, count: int) -> None:
    """Print records per second, MB/s and the CPU of all brokers for each GB of records."""
    cluster.create("replicated", PARTITIONS)
    arguments = (
        f"--topic replicated --num-records {count} --record-size {RECORD_BYTES} --throughput -1"
        f" --bootstrap-server {cluster.bootstrap} --command-property acks=all"
    )
    command = tool_command("ProducerPerformance", arguments)
    for run in ("first", "second"):
        before = cluster.cpu_s()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        cpu_s = cluster.cpu_s() - before
        rate = parse_producer(done.stdout)
        gigabytes = RECORD_BYTES * count / 1e9
        latency = re.findall(r"[\d.]+ ms 99th", done.stdout)
        print(
            f"{cluster.kind}: {run} produce {rate:,.0f} records/s, "
            f"{rate * RECORD_BYTES / 1e6:.1f} MB/s, brokers {cpu_s / gigabytes:.1f} CPU s/GB, "
            f"{latency[-1] if latency else ''}",
            flush=True,
        )


def failover(cluster: ClusterOf) -> None:
    """Print the time from the kill of a leader to the next acknowledged record."""
    cluster.create("failing", 1)
    (topic,) = cluster.metadata(0, ["failing"])["topics"]
    leader = topic["partitions"][0]["leader_id"]
    request = wire.produce_frame("failing", wire.one_record_batch(b"x"), acks=-1)
    cluster.kill(leader)
    begun = time.perf_counter()
    survivors = {n: wire.Connection(cluster.ports[n]) for n in cluster.alive}

    def is_acknowledged() -> bool:
        bodies = (connection.ask(request) for connection in survivors.values())
        return any(wire.produce_answer(body, "failing")[0] == 0 for body in bodies)

    _wait(is_acknowledged, "a survivor acknowledges a record")
    took = time.perf_counter() - begun
    for connection in survivors.values():
        connection.close()
    _say_behind_session(cluster, "failover", took)


def takeover(cluster: ClusterOf) -> None:
    """Print the time from the kill of the controller to a living leader of each partition."""
    names = [f"many-{number}" for number in range(MANY_TOPICS)]
    for name in names:
        cluster.create(name, MANY_PARTITIONS)
    controller = cluster.metadata(0, [])["controller_id"]
    cluster.kill(controller)
    begun = time.perf_counter()
    asked = cluster.alive[0]

    def have_leaders() -> bool:
        answer = cluster.metadata(asked, names)
        leaders = [
            partition["leader_id"]
            for topic in answer["topics"]
            for partition in topic["partitions"]
        ]
        return len(leaders) == MANY_TOPICS * MANY_PARTITIONS and controller not in leaders

    _wait(have_leaders, "each partition has a leader that lives")
    _say_behind_session(cluster, "takeover of 2,000 partitions", time.perf_counter() - begun)


def _say_behind_session(cluster: ClusterOf, row: str, took: float) -> None:
    beyond = took - SESSION_MS / 1000
    print(f"{cluster.kind}: {row} {took:.2f} s, {beyond:+.2f} s beside the session", flush=True)


def main() -> None:
    """Measure each cluster."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replicated")
    parser.add_argument("--only", choices=["minibroker", "kafka-3.9.1"])
    parser.add_argument("--records", type=int, default=300_000)
    given = parser.parse_args()
    busy = machine.busy_share()
    print(f"others use {busy:.0%} of the machine", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="replicated-") as scratch:
        directory = Path(scratch)
        zookeeper = peers.ZooKeeper(directory / "zookeeper")
        zookeeper.start()
        try:
            for kind in [given.only] if given.only else ["minibroker", "kafka-3.9.1"]:
                for rows in ((produce, failover), (takeover,)):
                    place = directory / f"{kind}-{len(rows)}"
                    cluster = ClusterOf(kind, place, f"{zookeeper.connect}/{place.name}")
                    try:
                        print(f"{kind}: start {cluster.start():.2f} s", flush=True)
                        for row in rows:
                            row(cluster, given.records) if row is produce else row(cluster)
                    finally:
                        cluster.stop()
        finally:
            zookeeper.stop()


if __name__ == "__main__":
    main()
