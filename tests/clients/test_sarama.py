"""sarama's own functional suite on five minibrokers in five racks, behind its toxiproxy.

It stops and starts a broker with `docker compose`: here a program of that name asks this process.
Three tests are left out, which run Kafka's Java clients in containers. `make client-suites` runs
the others, 5 minutes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from typing import TYPE_CHECKING, Final, Self

import pytest

from tests.clients.brokers import brokers_of, start_all
from tests.support.build_files import BUILD, required
from tests.support.processes import ManagedProcess, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.configured import ConfiguredMinibroker
    from tests.support.peers import ZooKeeper

SOURCE: Final = BUILD / "suites" / "sarama"
TOXIPROXY: Final = BUILD / "suites" / "server"
IDS: Final = range(1, 6)
FIRST_PROXY_PORT: Final = 29090
"""The suite reaches broker N at this port plus N."""
SUITE_SECONDS: Final = 1800
START_SECONDS: Final = 60.0
TESTS: Final = "^Test(Func|Consumer|Version|ReadOnly|Interceptors|AsyncProducerRemote)"
FAILED: Final = re.compile(r"^--- FAIL: (\w+)", re.MULTILINE)
PASSED: Final = re.compile(r"^--- PASS: (\w+)", re.MULTILINE)
SETTINGS: Final = {
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "zookeeper.session.timeout.ms": "6000",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,LOCAL:PLAINTEXT",
}
DOCKER: Final = """#!{python}
import socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({path!r})
    asked.sendall(" ".join(sys.argv[1:]).encode() + b"\\n")
    sys.exit(int(asked.makefile().readline()))
"""


class Compose:
    """Answers `docker compose stop kafka-3` and `start kafka-3`, in a thread of its own.

    A context manager: its exit ends the thread.
    """

    def __init__(self, brokers: dict[int, ConfiguredMinibroker], directory: Path) -> None:
        self._brokers = brokers
        self._socket = socket.socket(socket.AF_UNIX)
        path = directory / "compose"
        self._socket.bind(str(path))
        self._socket.listen()
        self.programs = directory / "bin"
        self.programs.mkdir()
        docker = self.programs / "docker"
        docker.write_text(DOCKER.format(python=sys.executable, path=str(path)))
        docker.chmod(0o755)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # no more is accepted
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rw") as lines:
                lines.write(f"{self._do(lines.readline().split())}\n")

    def _do(self, words: list[str]) -> int:
        """Do what the words say; return the exit code of the program.

        `docker compose logs` prints nothing: a test looks for Kafka's errors there.
        """
        if words[:2] == ["compose", "logs"]:
            return 0
        if len(words) != 3 or words[0] != "compose" or words[1] not in {"start", "stop"}:
            return 1
        broker = self._brokers[int(words[2].removeprefix("kafka-"))]
        if words[1] == "stop":
            broker.stop()
        elif broker.process is None:
            broker.start()
        return 0


@pytest.fixture
def ports() -> dict[int, int]:
    """Return the port of each broker."""
    return {n: free_port() for n in IDS}


@pytest.fixture
def proxies(ports: dict[int, int], tmp_path: Path) -> Iterator[str]:
    """Start toxiproxy with a proxy for each broker; yield its address."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    process = ManagedProcess(
        [str(required(TOXIPROXY)), "-host", "127.0.0.1", "-port", str(port)], tmp_path / "proxy.log"
    )

    def answers() -> bool:
        try:
            urllib.request.urlopen(f"{address}/version").close()
        except OSError:
            return False
        return True

    try:
        process.wait_until(answers, START_SECONDS, "toxiproxy")
        for broker_id, upstream in ports.items():
            proxy = {
                "name": f"kafka{broker_id}",
                "listen": f"127.0.0.1:{FIRST_PROXY_PORT + broker_id}",
                "upstream": f"127.0.0.1:{upstream}",
                "enabled": True,
            }
            urllib.request.urlopen(f"{address}/proxies", json.dumps(proxy).encode()).close()
        yield address
    finally:
        process.kill()


@pytest.fixture
def brokers(
    zookeeper: ZooKeeper, ports: dict[int, int], proxies: str, tmp_path: Path
) -> Iterator[dict[int, ConfiguredMinibroker]]:
    """Start five brokers: others reach them directly, clients through their proxies."""
    assert proxies
    settings = {}
    for broker_id, port in ports.items():
        internal = f"INTERNAL://127.0.0.1:{free_port()}"
        settings[broker_id] = {
            **SETTINGS,
            "broker.rack": str(broker_id),
            "listeners": f"LOCAL://127.0.0.1:{port},{internal}",
            "advertised.listeners": f"LOCAL://localhost:{FIRST_PROXY_PORT + broker_id},{internal}",
        }
    nodes = brokers_of(tmp_path, f"{zookeeper.connect}/sarama", ports, settings)
    try:
        start_all(nodes)
        yield nodes
    finally:
        for broker in nodes.values():
            broker.kill()


def run(tests: str, proxies: str, programs: Path) -> str:
    """Run the tests that the expression names; return what they print."""
    go = shutil.which("go")
    assert go is not None, "Go is missing: install it"
    done = subprocess.run(
        [
            go,
            "test",
            "-tags",
            "functional",
            "-count=1",
            "-run",
            tests,
            "-v",
            "-timeout",
            "25m",
            ".",
        ],
        cwd=required(SOURCE / ".done").parent,
        env={
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "KAFKA_VERSION": "3.9.1",
            "TOXIPROXY_ADDR": proxies,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SUITE_SECONDS,
        check=False,  # the names of the tests that failed say more
    )
    return done.stdout


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(2 * SUITE_SECONDS)
def test_the_functional_suite_passes_on_five_minibrokers(
    brokers: dict[int, ConfiguredMinibroker], proxies: str, tmp_path: Path
) -> None:
    with Compose(brokers, tmp_path) as compose:
        printed = run(TESTS, proxies, compose.programs)
        (tmp_path / "sarama.log").write_text(printed)
        assert len(PASSED.findall(printed)) > 55, printed[-4000:]
        failed = FAILED.findall(printed)
        if failed:
            # Some wait for a time of their own, which a busy machine does not keep.
            printed = run(f"^({'|'.join(failed)})$", proxies, compose.programs)
            failed = FAILED.findall(printed)
    assert not failed, printed[-4000:]
