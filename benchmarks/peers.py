"""The brokers: how each is prepared, started and stopped as a child process on 127.0.0.1.

Apache Kafka runs from the jars that `make java` puts into build/jars (or MINIBROKER_JARS), with
the heap and collector flags of its own start script and, apart from replication factors of one,
its default settings. kfake is built on the first use with the Go tool chain.
"""

import os
import shutil
import subprocess
import sys
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import wire
from benchmarks.children import Child, free_port

ROOT = Path(__file__).resolve().parent.parent
START_PATIENCE_S = 60.0
_KAFKA_SCRIPT_FLAGS = (
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
_LOG4J = """log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.Target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d %p %m (%c)%n
"""


class PeerMissingError(Exception):
    """This machine cannot run a broker; the message says what to install or make."""


class Peer:
    """A kind of broker. One object runs one broker at a time, in a directory of its own.

    `prepare` does what an operator does once and what is no part of starting (formatting,
    ZooKeeper); `launch` starts the process, and returns before it serves; `close` ends what
    `prepare` left running.
    """

    name: str

    def prepare(self, directory: Path, port: int) -> None:
        """Make `directory` ready for `launch`. Raises PeerMissingError."""

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
        """The command line for a broker on `port` that keeps its data below `directory`."""
        serve = ["-m", "minibroker", "serve", "--listen", f"127.0.0.1:{port}"]
        return [sys.executable, *python_flags, *serve, "--data-dir", str(directory / "data")]


class ZooKeeper:
    """One ZooKeeper 3.8 on a free port, from Kafka 3.9.1's jars. `connect` is its host:port."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.connect = f"127.0.0.1:{port}"
        config = directory / "zoo.cfg"
        settings = {
            "dataDir": str(directory / "data"),
            "clientPort": str(port),
            "clientPortAddress": "127.0.0.1",
            "tickTime": "2000",
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
        }
        _write_properties(config, settings)
        self.child = Child(
            java_command(
                "kafka-3.9.1",
                directory,
                ("-Xmx256m",),
                ("org.apache.zookeeper.server.ZooKeeperServerMain", str(config)),
            ),
            output=directory / "output.log",
        )
        wire.wait_for_listener(port, timeout_s=START_PATIENCE_S, check=self.child.check)

    def stop(self) -> None:
        self.child.kill()


class KafkaWithZooKeeper(Peer):
    """Apache Kafka 3.9.1 in ZooKeeper mode, on a fresh chroot of one ZooKeeper per `prepare`."""

    name = "kafka-3.9.1"

    def __init__(self) -> None:
        self._zookeeper: ZooKeeper | None = None

    def prepare(self, directory: Path, port: int) -> None:
        jars(self.name)
        if self._zookeeper is None:
            self._zookeeper = ZooKeeper(directory.parent / "zookeeper")
        self._zookeeper.child.check()
        listener = f"PLAINTEXT://127.0.0.1:{port}"
        settings = {
            "broker.id": "0",
            "listeners": listener,
            "log.dirs": str(directory / "data"),
            "zookeeper.connect": f"{self._zookeeper.connect}/{uuid.uuid4().hex}",
            **_SINGLE_NODE,
        }
        _write_properties(directory / "server.properties", settings)

    def launch(self, directory: Path, port: int) -> Child:
        return _launch_kafka(self.name, directory)

    def close(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.stop()
            self._zookeeper = None


class KafkaWithKRaft(Peer):
    """Apache Kafka 4.4.0, broker and controller in one process. `prepare` formats its directory."""

    name = "kafka-4.4.0"

    def prepare(self, directory: Path, port: int) -> None:
        jars(self.name)
        controller = f"127.0.0.1:{free_port()}"
        properties = directory / "server.properties"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "0",
            "controller.quorum.voters": f"0@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(directory / "data"),
            **_SINGLE_NODE,
        }
        _write_properties(properties, settings)
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tool = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties))
        command = java_command(self.name, directory, ("-Xmx256m", "-XX:TieredStopAtLevel=1"), tool)
        subprocess.run(command, check=True, capture_output=True)

    def launch(self, directory: Path, port: int) -> Child:
        return _launch_kafka(self.name, directory)


class Kfake(Peer):
    """franz-go's kfake, all in memory."""

    name = "kfake"

    def prepare(self, directory: Path, port: int) -> None:
        build_kfake()

    def launch(self, directory: Path, port: int) -> Child:
        command = [str(build_kfake()), "-port", str(port), *self._more_flags(directory)]
        return Child(command, output=directory / "output.log")

    def _more_flags(self, directory: Path) -> list[str]:
        return []


class KfakeOnDisk(Kfake):
    """kfake that keeps its log in a directory."""

    name = "kfake-disk"

    def _more_flags(self, directory: Path) -> list[str]:
        return ["-data-dir", str(directory / "data")]


def all_peers() -> list[Peer]:
    """One of each, in the order of the table's columns."""
    return [Minibroker(), KafkaWithZooKeeper(), KafkaWithKRaft(), Kfake(), KfakeOnDisk()]


def jars(name: str) -> Path:
    """The directory of the jars called `name`. Raises PeerMissingError without them or Java."""
    if shutil.which("java") is None:
        raise PeerMissingError("no Java: install a Java 17 runtime")
    directory = Path(os.environ.get("MINIBROKER_JARS", ROOT / "build" / "jars")) / name
    for candidate in (directory, directory / "lib"):
        if any(candidate.glob("*.jar")):
            return candidate
    raise PeerMissingError(f"no jars of {name}: `make java` fetches them with Maven")


def build_kfake() -> Path:
    """Build benchmarks/kfake where it is missing or older than its sources; returns the program.

    Raises PeerMissingError without Go, or when the build fails.
    """
    source, program = ROOT / "benchmarks" / "kfake", ROOT / "build" / "kfake"
    newest = max(path.stat().st_mtime for path in source.iterdir())
    if program.exists() and program.stat().st_mtime >= newest:
        return program
    if shutil.which("go") is None:
        raise PeerMissingError("no Go: install the Go tool chain, 1.26 or newer")
    program.parent.mkdir(exist_ok=True)
    built = subprocess.run(
        ["go", "build", "-o", str(program), "."],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        raise PeerMissingError(f"go build failed: {built.stderr.strip().splitlines()[-1]}")
    return program


def java_command(
    jars_name: str, directory: Path, jvm_flags: Sequence[str], arguments: Sequence[str]
) -> list[str]:
    """`java` with the jars called `jars_name`, warnings and errors logged to stderr.

    `directory` must exist and gets the logging settings. Raises PeerMissingError.
    """
    log4j = directory / "log4j.properties"
    log4j.write_text(_LOG4J)
    classpath = f"{jars(jars_name)}/*"
    return ["java", *jvm_flags, f"-Dlog4j.configuration=file:{log4j}", "-cp", classpath, *arguments]


def _launch_kafka(name: str, directory: Path) -> Child:
    properties = directory / "server.properties"
    command = java_command(name, directory, _KAFKA_SCRIPT_FLAGS, ("kafka.Kafka", str(properties)))
    return Child(command, output=directory / "output.log", directory=directory)


def _write_properties(path: Path, settings: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
