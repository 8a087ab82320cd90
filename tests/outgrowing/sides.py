"""One cluster whose data minibroker and Apache Kafka serve in turns.

    serve ─stop or kill─► hand_over ─► kafka ─stop or kill─► take_back ─► serve …

Kafka starts with the file that `hand-over --properties` writes; only the ports between nodes are
others.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support import java
from tests.support.broker import START_SECONDS, Minibroker
from tests.support.kraft_kafka import JARS
from tests.support.processes import ManagedProcess, StartError, free_port

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.outgrowing.nodes import Login

VERB_SECONDS = 120.0
KAFKA_STOP_SECONDS = 330.0
"""Longest time for a node of KRaft to stop. Of nodes that stop together the last may have no
quorum: it waits five minutes for the answer of a controller (`BrokerServer.shutdown`).
"""
PROBE_SECONDS = 2.0
OWN_PORT = re.compile(r"(?:CONTROLLER|NODES)://127\.0\.0\.1:(\d+)")
HOST_AND_PORT = re.compile(r"127\.0\.0\.1:(\d+)")
RECOVERY = {"metadata.recovery.rebootstrap.trigger.ms": "30000"}
"""Nodes of KRaft that stop together answer Metadata with no broker at all. librdkafka 2.16 forgets
all brokers then, and may never ask the bootstrap servers again (its issue 5301) before this time
is over: 5 minutes where it is not set.
"""
HEAP = ("-Xmx400m", *java.JVM_OPTIONS[1:])


class ServedBroker(Minibroker):
    """`minibroker serve` with options of any kind."""

    options: tuple[str, ...] = ()

    def command(self) -> list[str]:
        """Return the command line of the next start."""
        return [*super().command(), *self.options]

    def start(self) -> ServedBroker:
        """Start; several brokers tell all of their addresses, and the first one is kept."""
        listen = self.listen
        super().start()
        self.listen = listen
        return self


class Outcome:
    """The end of a verb: exit code, output, seconds."""

    def __init__(self, done: subprocess.CompletedProcess[str], seconds: float) -> None:
        self.code = done.returncode
        self.output = done.stdout
        self.errors = done.stderr
        self.seconds = seconds


class OneCluster:
    """Directories, and the side that serves them now."""

    def __init__(
        self,
        root: Path,
        release: str,
        *,
        settings: Mapping[str, str],
        directories: Sequence[str] = ("data",),
        options: Sequence[str] = (),
        brokers: int = 1,
        login: Login | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            root: for directories, settings and outputs of processes.
            release: of Apache Kafka, a key of `JARS`.
            settings: of `serve`; hand-over gets the same ones.
            directories: names of `log.dirs` below `root`.
            options: of `serve` and of hand-over besides.
            brokers: how many `serve` runs.
            login: that clients need.
        """
        self.root = root
        self.release = release
        self.login = login
        self._settings = dict(settings)
        self._options = tuple(options)
        self._paths = [str(root / name) for name in directories]
        self._brokers = brokers
        self._kafkas: list[ManagedProcess] = []
        self.minibroker = ServedBroker(
            root / directories[0],
            root / "minibroker.log",
            settings={**self._settings, "log.dirs": ",".join(self._paths)},
            environment={},
        )
        if brokers > 1:
            del self.minibroker.settings["log.dirs"]
            self._free_ports()
        self.minibroker.options = (
            *self._options,
            *(("--brokers", str(brokers)) if brokers > 1 else ()),
        )
        self.address = self.minibroker.listen

    def _free_ports(self) -> None:
        """Choose a port whose next ones are free, too."""
        while True:
            first = free_port()
            self.minibroker.listen = f"127.0.0.1:{first}"
            if all(_is_free(first + number) for number in range(1, self._brokers)):
                return

    @property
    def properties_files(self) -> list[Path]:
        """Return the files that hand-over writes, one for each node."""
        if self._brokers == 1:
            return [self.root / "server.properties"]
        return [self.root / f"server.properties.{number}" for number in range(self._brokers)]

    def clients(self) -> dict[str, str]:
        """Return settings for librdkafka."""
        login = {} if self.login is None else self.login.librdkafka()
        # Each refused connection of a switch would be a line.
        return {"bootstrap.servers": self.address, "log_level": "0", **RECOVERY, **login}

    def serve(self) -> None:
        """Start minibroker; ready when it says so."""
        self.minibroker.start()

    def run_verb(self, *words: str, environment: Mapping[str, str] | None = None) -> Outcome:
        """Run a verb of minibroker on the directories, to its end."""
        started_s = time.monotonic()
        done = subprocess.run(
            self.verb_command(*words),
            capture_output=True,
            text=True,
            timeout=VERB_SECONDS,
            check=False,
            env={**os.environ, **(environment or {})},
        )
        return Outcome(done, time.monotonic() - started_s)

    def verb_command(self, verb: str, *words: str) -> list[str]:
        """Return the command line of hand-over or take-back, with the settings of `serve`."""
        settings = [f"--set={key}={value}" for key, value in self._settings.items()]
        listen = ("--listen", self.minibroker.listen)
        return [
            *(sys.executable, "-m", "minibroker", verb, *self._paths),
            *(*listen, *settings, *self._options, *words),
        ]

    def hand_over(self) -> Outcome:
        """Make the directories Kafka's. Raises AssertionError where the verb fails."""
        file = self.root / "server.properties"
        outcome = self.run_verb("hand-over", "--to", self.release, "--properties", str(file))
        assert outcome.code == 0, outcome.errors
        self._reserve_ports()
        return outcome

    def _reserve_ports(self) -> None:
        """Replace the ports between nodes: until Kafka starts another test may take those that were
        free.
        """
        texts = {file: file.read_text() for file in self.properties_files}
        chosen = {port for text in texts.values() for port in OWN_PORT.findall(text)}
        ports = {port: str(free_port()) for port in chosen}
        for file, text in texts.items():
            file.write_text(HOST_AND_PORT.sub(lambda match: _at(ports, match[1]), text))

    def take_back(self) -> Outcome:
        """Make the directories minibroker's. Raises AssertionError where the verb fails."""
        outcome = self.run_verb("take-back")
        assert outcome.code == 0, outcome.errors
        return outcome

    def kafka(self) -> None:
        """Start Apache Kafka with the files of the last hand-over; ready when a client sees each
        node.
        """
        for file in self.properties_files:
            command = java.java_command(
                JARS[self.release],
                "kafka.Kafka",
                str(file),
                options=[java.log_option("broker")],
                jvm=HEAP,
            )
            self._kafkas.append(ManagedProcess(command, self.root / f"kafka-{file.name}.log"))
        self._kafkas[0].wait_until(
            self._sees_each_node, START_SECONDS, f"Apache Kafka {self.release}"
        )

    def _sees_each_node(self) -> bool:
        ended = [kafka for kafka in self._kafkas if not kafka.is_running]
        if ended:
            raise StartError(ended[0].log_tail())
        try:
            metadata = AdminClient({**self.clients()}).list_topics(timeout=PROBE_SECONDS)
        except KafkaException:
            return False
        return len(metadata.brokers) == self._brokers and metadata.controller_id >= 0

    def stop(self) -> None:
        """Stop the side that serves: SIGTERM to each of its processes."""
        self.minibroker.stop()
        for kafka in self._kafkas:
            kafka.popen.terminate()
        for kafka in self._kafkas:
            kafka.stop(KAFKA_STOP_SECONDS)
        self._kafkas.clear()

    def kill(self) -> None:
        """Kill the side that serves: SIGKILL to each of its processes."""
        self.minibroker.kill()
        for kafka in self._kafkas:
            kafka.kill()
        self._kafkas.clear()

    def kafka_log(self) -> str:
        """Return what all Kafkas of this cluster logged."""
        files = [self.root / f"kafka-{file.name}.log" for file in self.properties_files]
        return "".join(file.read_text(errors="replace") for file in files if file.exists())


def _at(ports: Mapping[str, str], port: str) -> str:
    return f"127.0.0.1:{ports.get(port, port)}"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
