"""Apache Kafka and ZooKeeper as partners of tests and benchmarks, from the jars of `make java`.

Each listens on free ports of 127.0.0.1 and keeps everything below the directory it is given. Ready
means: Metadata was answered with a broker and a controller.
"""

from __future__ import annotations

import base64
import socket
import uuid
from typing import TYPE_CHECKING

from tests.support import java
from tests.support.late_metadata import LateMetadata, delay_of_run_ms
from tests.support.probe import answers_metadata
from tests.support.processes import ManagedProcess, free_port

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

START_SECONDS = 240.0
SETTINGS_FILE = "server.properties"

# What one node needs, and minibroker is given too: everything else stays at Kafka's default.
ONE_NODE = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "auto.create.topics.enable": "true",
    "log.cleaner.dedupe.buffer.size": "4194304",
    # Records of the tests are years old: half a minute after a start they would go, in the middle
    # of a dialogue.
    "log.retention.ms": "-1",
}


def write_properties(path: Path, settings: Mapping[str, str]) -> None:
    """Write a Java properties file, one key=value a line."""
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


class ZooKeeper:
    """A ZooKeeper 3.8 of its own: `connect` is what zookeeper.connect takes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.process: ManagedProcess | None = None

    @property
    def connect(self) -> str:
        """Return HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, or start again on the same port and data; ready when it answers `srvr`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "zoo.cfg"
        write_properties(
            config,
            {
                "dataDir": str(self.directory / "data"),
                "clientPort": str(self.port),
                "clientPortAddress": "127.0.0.1",
                "tickTime": "1000",
                "maxSessionTimeout": "120000",
                "maxClientCnxns": "0",
                "admin.enableServer": "false",
                "4lw.commands.whitelist": "srvr",
            },
        )
        self.process = ManagedProcess(
            java.java_command(
                java.KAFKA_39,
                "org.apache.zookeeper.server.ZooKeeperServerMain",
                str(config),
                options=[java.log_option("broker")],
            ),
            self.directory / "zookeeper.log",
        )
        self.process.wait_until(self._answers, START_SECONDS, "ZooKeeper")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall(b"srvr")
                return b"Mode:" in connection.recv(4096)
        except OSError:
            return False

    def stop(self) -> None:
        """Stop at once: ZooKeeper's log is synced before it answers, so a kill loses nothing."""
        if self.process is not None:
            self.process.kill()
            self.process = None


class KafkaPeer:
    """One Apache Kafka broker; `start` and `stop` may alternate on the same directory and port."""

    def __init__(
        self,
        version: str,
        directory: Path,
        *,
        zookeeper: str | None = None,
        settings: Mapping[str, str] | None = None,
        log_dir: Path | None = None,
        port: int | None = None,
        common: Mapping[str, str] = ONE_NODE,
    ) -> None:
        self.version = version
        self.directory = directory
        self.zookeeper = zookeeper
        self.settings = {**common, **(settings or {})}
        self.host = "127.0.0.1"
        self.port = port or free_port()
        self.controller_port = free_port()
        self.log_dir = log_dir or directory / "logs"
        self.jars = java.KAFKA_39 if zookeeper else java.KAFKA_44
        self.options: list[str] = []
        """Options of Java, besides the usual ones."""
        self.late_ms = delay_of_run_ms()
        """Each change of the cluster's metadata waits so long; from the next start on."""
        self._late: LateMetadata | None = None
        self.process: ManagedProcess | None = None

    @property
    def address(self) -> str:
        """Return HOST:PORT for a client's bootstrap.servers."""
        return f"{self.host}:{self.port}"

    def start(self) -> None:
        """Start and wait for the first Metadata answer that names a broker and a controller."""
        self.prepare()
        options = [java.log_option("broker"), *self.options]
        if self.late_ms:
            self._late = LateMetadata(self.late_ms)
            options.append(self._late.option)
        self.process = ManagedProcess(
            kafka_command(self.jars, self.directory, options=options), self.directory / "kafka.log"
        )
        if self._late is not None:
            self._late.begin(self.directory / "late.log")
        self.process.wait_until(
            lambda: answers_metadata(self.host, self.port),
            START_SECONDS,
            f"Apache Kafka {self.version}",
        )

    def prepare(self) -> None:
        """Write the settings, and format a new directory of KRaft: the work before a start.

        Raises:
            MissingError: no Java or no jars; names what to do.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / SETTINGS_FILE
        write_properties(config, self._properties())
        if self.zookeeper is None and not (self.log_dir / "meta.properties").exists():
            cluster_id = (
                base64.urlsafe_b64encode(uuid.uuid4().bytes)
                .decode()
                .rstrip("=")
                .replace("-", "A", 1)
            )
            java.run_java(
                self.jars, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(config)
            )

    def _properties(self) -> dict[str, str]:
        common = {"log.dirs": str(self.log_dir), **self.settings}
        if self.zookeeper is not None:
            return {
                "broker.id": "0",
                "listeners": f"PLAINTEXT://{self.address}",
                "zookeeper.connect": self.zookeeper,
                **common,
            }
        return {
            "process.roles": "broker,controller",
            "node.id": "0",
            "controller.quorum.voters": f"0@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            **common,
        }

    def stop(self) -> None:
        """Stop with a controlled shutdown: logs are flushed, the clean marker is written."""
        if self.process is not None:
            self._end_delay()
            self.process.stop()
            self.process = None

    def kill(self) -> None:
        """Send SIGKILL: no log is flushed, no node removed."""
        if self.process is not None:
            self.process.kill()
            self.process = None
        self._end_delay()

    def _end_delay(self) -> None:
        if self._late is not None:
            self._late.end()
            self._late = None


def kafka_command(
    jars: Path, directory: Path, *, options: Sequence[str], jvm: Sequence[str] = java.JVM_OPTIONS
) -> list[str]:
    """Return the command line of the Kafka whose settings `KafkaPeer.prepare` wrote there."""
    config = str(directory / SETTINGS_FILE)
    return java.java_command(jars, "kafka.Kafka", config, options=options, jvm=jvm)
