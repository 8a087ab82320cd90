"""The brokers: how each is prepared, started and stopped as a child process on 127.0.0.1.

Apache Kafka and its ZooKeeper are those of the tests (tests/support/peers.py), with the heap and
collector flags of Kafka's own start script and, apart from replication factors of one, its default
settings. The command lines of minibroker and kfake are those of the tests' kit, too.
"""

import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

from benchmarks import wire
from benchmarks.children import Child
from tests.support import broker, java, peers
from tests.support.build_files import MissingError
from tests.support.kfake import kfake_command
from tests.support.processes import free_port

START_PATIENCE_S = 60.0
KAFKA_SCRIPT_FLAGS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
_SINGLE_NODE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class Peer:
    """A kind of broker. One object runs one broker at a time, in a directory of its own.

    `prepare` does what an operator does once and what is no part of starting (formatting,
    ZooKeeper); `launch` starts the process, and returns before it serves; `close` ends what
    `prepare` left running.
    """

    name: str

    def prepare(self, directory: Path, port: int) -> None:
        """Make `directory` ready for `launch`. Raises MissingError."""

    def launch(self, directory: Path, port: int) -> Child:
        """Start the broker on `port`."""
        raise NotImplementedError

    def close(self) -> None:
        """End what `prepare` started; harmless twice."""

    def start(self, directory: Path) -> tuple[Child, int]:
        """Prepare, launch and wait until the broker answers Metadata; returns it with its port."""
        port = free_port()
        self.prepare(directory, port)
        child = self.launch(directory, port)
        try:
            wire.wait_for_metadata(port, timeout_s=START_PATIENCE_S, check=child.check)
        except BaseException:
            child.kill()
            raise
        return child, port


class Minibroker(Peer):
    """This project's broker, as the command line starts it."""

    name = "minibroker"

    def launch(self, directory: Path, port: int) -> Child:
        return Child(self.command(directory, port), output=directory / "output.log")

    @staticmethod
    def command(directory: Path, port: int, *, python_flags: Sequence[str] = ()) -> list[str]:
        """Return the command line for a broker on `port` with its data below `directory`."""
        started = broker.Minibroker(
            directory / "data", directory / "output.log", listen=f"127.0.0.1:{port}"
        )
        _, *arguments = started.command()
        return [sys.executable, *python_flags, *arguments]


class Kafka(Peer):
    """Apache Kafka; `prepare` writes its settings."""

    version: str
    jars: Path

    def prepare(self, directory: Path, port: int) -> None:
        sentence = java.missing_java()
        if sentence is not None:
            raise MissingError(sentence)
        peers.KafkaPeer(
            self.version,
            directory,
            zookeeper=self._zookeeper_connect(directory),
            log_dir=directory / "data",
            port=port,
            common=_SINGLE_NODE,
        ).prepare()

    def launch(self, directory: Path, port: int) -> Child:
        command = peers.kafka_command(
            self.jars, directory, options=[java.log_option("tools")], jvm=KAFKA_SCRIPT_FLAGS
        )
        return Child(command, output=directory / "output.log", directory=directory)

    def _zookeeper_connect(self, directory: Path) -> str | None:
        """Return what zookeeper.connect takes, None without ZooKeeper."""
        return None


class KafkaWithZooKeeper(Kafka):
    """Apache Kafka 3.9.1 in ZooKeeper mode, on a fresh chroot of one ZooKeeper per `prepare`."""

    name, version, jars = "kafka-3.9.1", "3.9.1", java.KAFKA_39

    def __init__(self) -> None:
        self._zookeeper: peers.ZooKeeper | None = None

    def _zookeeper_connect(self, directory: Path) -> str:
        if self._zookeeper is None:
            self._zookeeper = peers.ZooKeeper(directory.parent / "zookeeper")
            self._zookeeper.start()
        return f"{self._zookeeper.connect}/{uuid.uuid4().hex}"

    def close(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.stop()
            self._zookeeper = None


class KafkaWithKRaft(Kafka):
    """Apache Kafka 4.4.0, broker and controller in one process. `prepare` formats its directory."""

    name, version, jars = "kafka-4.4.0", "4.4.0", java.KAFKA_44


class Kfake(Peer):
    """franz-go's kfake, all in memory."""

    name = "kfake"

    def prepare(self, directory: Path, port: int) -> None:
        """Build it. Raises MissingError."""
        self._command(directory, port)

    def launch(self, directory: Path, port: int) -> Child:
        return Child(self._command(directory, port), output=directory / "output.log")

    def _command(self, directory: Path, port: int) -> list[str]:
        return kfake_command(port)


class KfakeOnDisk(Kfake):
    """kfake that keeps its log in a directory."""

    name = "kfake-disk"

    def _command(self, directory: Path, port: int) -> list[str]:
        return kfake_command(port, directory / "data")


def all_peers() -> list[Peer]:
    """Return one of each, in the order of the table's columns."""
    return [Minibroker(), KafkaWithZooKeeper(), KafkaWithKRaft(), Kfake(), KfakeOnDisk()]
