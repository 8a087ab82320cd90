"""A real ZooKeeper and a real Kafka 3.9.1 for tests: started from jars, on free loopback ports.

The jars stand in `build/jars/kafka-3.9.1` (the Makefile fetches them); the environment variable
`MINIBROKER_JARS` names another directory that holds `kafka-3.9.1/`.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Self

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 20

_LOG4J = """log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def kafka_jars() -> Path:
    """Directory with the jars of Kafka 3.9.1; one sentence when they or Java are missing."""
    root = Path(os.environ.get("MINIBROKER_JARS", Path(__file__).parents[2] / "build" / "jars"))
    jars = root / "kafka-3.9.1"
    if not any(jars.glob("zookeeper-3*.jar")):
        raise RuntimeError(f"no Kafka 3.9.1 jars in {jars}: run `make java`")
    if shutil.which("java") is None:
        raise RuntimeError("no `java` on the PATH: install Java 17")
    return jars


def free_port() -> int:
    """A TCP port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class JavaProcess:
    """One JVM from Kafka's jars; a thread keeps its output and looks for the ready line."""

    def __init__(self, main_class: str, arguments: list[str], directory: Path, ready: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.log_path = directory / "output.txt"
        log4j = directory / "log4j.properties"
        log4j.write_text(_LOG4J)
        self._ready = threading.Event()
        self._text = ready
        self._process = subprocess.Popen(
            [
                "java",
                "-Xmx256m",
                "-XX:TieredStopAtLevel=1",
                f"-Dlog4j.configuration=file:{log4j}",
                "-cp",
                f"{kafka_jars()}/*",
                main_class,
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=directory,
        )
        self._reader = threading.Thread(target=self._keep_output, daemon=True)
        self._reader.start()

    def _keep_output(self) -> None:
        assert self._process.stdout is not None
        with self.log_path.open("a") as log, self._process.stdout as output:
            for line in output:
                log.write(line)
                log.flush()
                if self._text in line:
                    self._ready.set()
        self._ready.set()

    def wait_ready(self) -> None:
        """Block until the ready line; raises with the output's end when the JVM died instead."""
        if not self._ready.wait(START_TIMEOUT_S) or self._process.poll() is not None:
            tail = self.log_path.read_text()[-3000:]
            self.kill()
            raise RuntimeError(f"did not start:\n{tail}")

    def kill(self) -> None:
        """SIGKILL: as a crash."""
        self._process.send_signal(signal.SIGKILL)
        self._finish()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL when that takes too long."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._finish()

    def suspend(self) -> None:
        """SIGSTOP: the port stays open, nothing answers."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def _finish(self) -> None:
        self._process.wait()
        self._reader.join(STOP_TIMEOUT_S)


class ZooKeeperServer:
    """ZooKeeper 3.8.4 from Kafka's jars, standalone; keeps port and data over a restart."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self._process: JavaProcess | None = None

    @property
    def address(self) -> str:
        """`host:port`, as `zookeeper.connect` takes it."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Start, and return when it accepts sessions."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "zoo.cfg"
        config.write_text(
            f"dataDir={self.directory / 'data'}\n"
            f"clientPortAddress=127.0.0.1\nclientPort={self.port}\n"
            "tickTime=250\nminSessionTimeout=500\nmaxSessionTimeout=60000\n"
            "maxClientCnxns=0\nadmin.enableServer=false\nadmin.serverPort=0\n"
        )
        self._process = JavaProcess(
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            [str(config)],
            self.directory,
            "PrepRequestProcessor (sid:0) started",
        )
        self._process.wait_ready()
        return self

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def suspend(self) -> None:
        """Stop answering without closing anything."""
        assert self._process is not None
        self._process.suspend()

    def resume(self) -> None:
        """Answer again."""
        assert self._process is not None
        self._process.resume()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()


class KafkaServer:
    """Apache Kafka 3.9.1 in ZooKeeper mode, one broker."""

    def __init__(self, directory: Path, zookeeper: str, broker_id: int, **settings: str) -> None:
        self.directory = directory
        self.port = free_port()
        self.settings = {
            "broker.id": str(broker_id),
            "zookeeper.connect": zookeeper,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(directory / "logs"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.dedupe.buffer.size": "2097152",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        self._process: JavaProcess | None = None

    @property
    def address(self) -> str:
        """`host:port` for clients."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Start, and return when Kafka says that it did."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))
        self._process = JavaProcess(
            "kafka.Kafka", [str(config)], self.directory, "] started (kafka"
        )
        self._process.wait_ready()
        return self

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def stop(self) -> None:
        """SIGTERM."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()


def run_kafka_tool(main_class: str, *arguments: str, timeout_s: float = 60) -> str:
    """Run one of Kafka 3.9.1's command line classes; its output. Raises when it fails."""
    done = subprocess.run(
        [
            "java",
            "-Xmx128m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            f"{kafka_jars()}/*",
            main_class,
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{main_class} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout
