"""`python -m benchmarks.replicated`: three brokers in three processes beside Apache Kafka 3.9.1.

Both clusters use one ZooKeeper, one after the other. Rows:

    start      the processes are started → each answers Metadata that names three brokers
    produce    ProducerPerformance: 1 KB records, acks=all, three replicas, six partitions
    failover   a leader is killed with -9 → another broker acknowledges a Produce with acks=all
    takeover   the controller of 2,000 partitions is killed with -9 → each has a leader that lives

Before `failover` and `takeover` ZooKeeper must miss the session of the dead broker. That takes from
4 to 7 s, by the last ping of the broker and by ZooKeeper's ticks of a second. So both rows also say
the time behind the end of the session, which a client of ZooKeeper watches; `failover` is done
`FAILOVERS` times. Takes about six minutes.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient

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
FAILOVERS: Final = 5
MANY_TOPICS, MANY_PARTITIONS = 20, 100
PATIENCE_S: Final = 120.0
_pause = time.sleep


class Recovery(NamedTuple):
    """How long it took until the cluster was well again, in seconds."""

    behind_kill: float
    behind_session: float
    """Behind the end of the dead broker's session."""


class SessionEnd:
    """The moment at which a broker's registration leaves the tree."""

    def __init__(self, connect: str, n: int) -> None:
        self._client = KazooClient(connect)
        self._client.start()
        self._is_over = threading.Event()
        self._at_s = 0.0
        assert self._client.exists(f"/brokers/ids/{n}", watch=self._saw)

    def _saw(self, _: object) -> None:
        self._at_s = time.perf_counter()
        self._is_over.set()

    def wait(self) -> float:
        """Return the moment, by `time.perf_counter`."""
        assert self._is_over.wait(PATIENCE_S), "the session did not end"
        self._client.stop()
        self._client.close()
        return self._at_s


class ClusterOf:
    """Brokers 0, 1 and 2 of one kind, each a process with a directory of its own."""

    def __init__(
        self,
        kind: str,
        directory: Path,
        zookeeper: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.zookeeper = zookeeper
        self._environment = environment
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
        start_s = time.perf_counter()
        for n in self._commands:
            self._begin(n)
        for n in BROKERS:
            self._wait_until_ready(n)
        return time.perf_counter() - start_s

    def start_again(self, n: int) -> None:
        """Start broker `n`, which was killed."""
        self._begin(n)
        self._wait_until_ready(n)

    def _begin(self, n: int) -> None:
        command, directory = self._commands[n]
        self._children[n] = Child(
            command,
            output=directory / "output.log",
            directory=directory,
            environment=self._environment,
        )

    def _wait_until_ready(self, n: int) -> None:
        wire.wait_for_metadata(self.ports[n], timeout_s=PATIENCE_S, check=self._children[n].check)
        _wait(lambda: len(self.metadata(n)["brokers"]) == len(BROKERS), f"{n} knows all")

    def metadata(self, n: int, topics: list[str] | None = None) -> Any:
        """Return what broker `n` answers about these topics, None: all of them."""
        topic_names = None if topics is None else [{"name": name} for name in topics]
        connection = wire.Connection(self.ports[n])
        try:
            return wire.call(
                connection, "metadata", 4, topics=topic_names, allow_auto_topic_creation=False
            )
        finally:
            connection.close()

    def create(self, name: str, partitions: int) -> None:
        """Create a topic with three replicas at the controller, and wait until all are in sync."""
        controller = self.metadata(0, [])["controller_id"]
        connection = wire.Connection(self.ports[controller])
        wire.create_topic(connection, name, partitions, replicas=len(BROKERS))
        connection.close()
        self.wait_until_in_sync(name, partitions)

    def wait_until_in_sync(self, name: str, partitions: int) -> None:
        """Wait until each broker knows that all replicas of the topic are in sync."""
        for n in self.alive:
            _wait(lambda n=n: self._is_in_sync(n, name, partitions), f"{name} is in sync")

    def _is_in_sync(self, n: int, name: str, partitions: int) -> bool:
        (topic,) = self.metadata(n, [name])["topics"]
        replicas = topic["partitions"]
        return len(replicas) == partitions and all(
            len(partition["isr_nodes"]) == len(BROKERS) for partition in replicas
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


def _wait(holds: Callable[[], bool], condition: str) -> None:
    deadline = time.perf_counter() + PATIENCE_S
    while not holds():
        if time.perf_counter() > deadline:
            raise wire.WireError(f"not so after {PATIENCE_S:g} s: {condition}")
        _pause(0.01)


def produce(cluster: ClusterOf, count: int) -> None:
    """Print records per second, MB/s and the CPU of all brokers for each GB of records."""
    cluster.create("replicated", PARTITIONS)
    for run in ("first", "second"):
        output, cpu_s = write_records(cluster, "replicated", count)
        rate = parse_producer(output)
        gigabytes = RECORD_BYTES * count / 1e9
        latency = re.findall(r"[\d.]+ ms 99th", output)
        print(
            f"{cluster.kind}: {run} produce {rate:,.0f} records/s, "
            f"{rate * RECORD_BYTES / 1e6:.1f} MB/s, brokers {cpu_s / gigabytes:.1f} CPU s/GB, "
            f"{latency[-1] if latency else ''}",
            flush=True,
        )


def write_records(cluster: ClusterOf, topic: str, count: int) -> tuple[str, float]:
    """Write records with ProducerPerformance; return its output and the CPU seconds of all brokers.

    Raises CalledProcessError.
    """
    arguments = (
        f"--topic {topic} --num-records {count} --record-size {RECORD_BYTES} --throughput -1"
        f" --bootstrap-server {cluster.bootstrap} --command-property acks=all"
    )
    command = tool_command("ProducerPerformance", arguments)
    before_s = cluster.cpu_s()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout, cluster.cpu_s() - before_s


def failover(cluster: ClusterOf) -> None:
    """Print the times from the kill of a leader to the next acknowledged record."""
    cluster.create("failing", 1)
    recoveries = []
    for _ in range(FAILOVERS):
        cluster.wait_until_in_sync("failing", 1)
        (topic,) = cluster.metadata(0, ["failing"])["topics"]
        leader = topic["partitions"][0]["leader_id"]
        recoveries.append(_kill_leader(cluster, leader))
        cluster.start_again(leader)
    _say(cluster, "failover", recoveries)


def _kill_leader(cluster: ClusterOf, leader: int) -> Recovery:
    """Kill the leader of "failing"; return the times until another one acknowledges a record."""
    request = wire.produce_frame("failing", wire.one_record_batch(b"x"), acks=-1)

    def is_acknowledged() -> bool:
        bodies = (connection.ask(request) for connection in survivors)
        return any(wire.produce_answer(body, "failing")[0] == 0 for body in bodies)

    def wait() -> None:
        _wait(is_acknowledged, "a survivor acknowledges a record")

    survivors = [wire.Connection(cluster.ports[n]) for n in cluster.alive if n != leader]
    try:
        return _recovery(cluster, leader, wait)
    finally:
        for connection in survivors:
            connection.close()


def _recovery(cluster: ClusterOf, n: int, wait: Callable[[], None]) -> Recovery:
    """Kill broker `n`; return the times until `wait` returns."""
    session_end = SessionEnd(cluster.zookeeper, n)
    cluster.kill(n)
    start_s = time.perf_counter()
    wait()
    done = time.perf_counter()
    return Recovery(done - start_s, done - session_end.wait())


def takeover(cluster: ClusterOf) -> None:
    """Print the time from the kill of the controller to a living leader of each partition."""
    names = [f"many-{number}" for number in range(MANY_TOPICS)]
    for name in names:
        cluster.create(name, MANY_PARTITIONS)
    controller = cluster.metadata(0, [])["controller_id"]
    node = next(n for n in cluster.alive if n != controller)

    def have_leaders() -> bool:
        answer = cluster.metadata(node, names)
        leaders = [
            partition["leader_id"]
            for topic in answer["topics"]
            for partition in topic["partitions"]
        ]
        return len(leaders) == MANY_TOPICS * MANY_PARTITIONS and controller not in leaders

    recovery = _recovery(
        cluster, controller, lambda: _wait(have_leaders, "each partition has a leader that lives")
    )
    _say(cluster, "takeover of 2,000 partitions", [recovery])


def _say(cluster: ClusterOf, row: str, recoveries: list[Recovery]) -> None:
    kill = statistics.median(times.behind_kill for times in recoveries)
    session = statistics.median(times.behind_session for times in recoveries)
    each = ", ".join(f"{times.behind_session:+.2f}" for times in recoveries)
    print(
        f"{cluster.kind}: {row} {kill:.2f} s behind the kill, {session:+.2f} s behind the end of"
        f" the session ({each})",
        flush=True,
    )


def main() -> None:
    """Measure each cluster."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replicated")
    parser.add_argument("--only", choices=["minibroker", "kafka-3.9.1"])
    parser.add_argument("--records", type=int, default=300_000)
    arguments = parser.parse_args()
    busy = machine.busy_share()
    print(f"others use {busy:.0%} of the machine", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="replicated-") as scratch:
        directory = Path(scratch)
        zookeeper = peers.ZooKeeper(directory / "zookeeper")
        zookeeper.start()
        try:
            for kind in [arguments.only] if arguments.only else ["minibroker", "kafka-3.9.1"]:
                for rows in ((produce, failover), (takeover,)):
                    place = directory / f"{kind}-{len(rows)}"
                    cluster = ClusterOf(kind, place, f"{zookeeper.connect}/{place.name}")
                    try:
                        print(f"{kind}: start {cluster.start():.2f} s", flush=True)
                        for row in rows:
                            row(cluster, arguments.records) if row is produce else row(cluster)
                    finally:
                        cluster.stop()
        finally:
            zookeeper.stop()


if __name__ == "__main__":
    main()
