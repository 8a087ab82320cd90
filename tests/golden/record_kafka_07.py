"""Records `tests/golden/kafka_07/`: the logs of a broker of Kafka 0.7, what its consumer did, and
where the broker cuts a log after a power cut.

    unshare -n sh -c 'ip link set lo up; exec python -m tests.golden.record_kafka_07 JARS'

`JARS` is a directory with the jars, which `make java` does not bring, because no registry has all
of them:

- `kafka-0.7.0.jar` and `zkclient-0.1.jar`, from `system_test/migration_tool_testsuite/0.7/lib` of
  Apache Kafka's repository at the tag 0.8.0
- of Maven: `org.scala-lang:scala-library:2.8.0`, `net.sf.jopt-simple:jopt-simple:3.2`,
  `org.apache.zookeeper:zookeeper:3.3.6`, `log4j:log4j:1.2.17`,
  `org.xerial.snappy:snappy-java:1.0.4.1`

A broker of 0.7 listens on every address, so it gets a network of its own: `unshare -n`. Java 17
runs it. `Kafka07.java` says what is sent and asked.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.java import SOURCES
from tests.support.logs_07 import message, write_log
from tests.support.peers import write_properties
from tests.support.processes import ManagedProcess, free_port

TARGET = Path(__file__).parent / "kafka_07"
COUNTS = {"plain": 14, "packed": 12, "nested": 9, "old": 5}
"""Topic → messages that are sent."""
START_S = 30.0
RUN_S = 120.0
RECOVERY_S = 60.0
A, B, C = (message(text) for text in (b"a", b"bb", b"ccc"))
TAILS = {
    "torn-message": B[:-1],
    "torn-length": B[:2],
    "zeros": bytes(100),
    "wrong-crc": message(b"bb", crc=1) + C,
    "length-of-nothing": b"\x00\x00\x00\x04" + bytes(4) + C,
    "huge-length": b"\x7f\xff\xff\xff" + bytes(20),
    "negative-length": b"\xff\xff\xff\xff" + C,
}
"""Topic → bytes behind a whole message, at the end of a log."""


def main(jars: Path) -> None:
    """Record everything."""
    if [name for _, name in socket.if_nameindex() if name != "lo"]:
        sys.exit("Kafka 0.7 listens on every address: see the docstring for unshare -n")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        class_path = f"{directory}:{jars}/*"
        compiler = ["javac", "-cp", class_path, "-d", name, str(SOURCES / "Kafka07.java")]
        subprocess.run(compiler, check=True)
        zookeeper = _started_zookeeper(directory, class_path)
        try:
            recorded = _recorded(directory, class_path, zookeeper.port)
        finally:
            zookeeper.process.kill()
        recovered = _recovered(directory / "torn", class_path)
        counts = {topic: len(answers["read"]) for topic, answers in recorded.items()}
        if counts != COUNTS:
            sys.exit(f"the consumer has read {counts}, expected {COUNTS}")
        shutil.rmtree(TARGET, ignore_errors=True)
        TARGET.mkdir()
        for log in sorted((directory / "logs").glob("*-*")):
            shutil.copytree(log, TARGET / log.name)
    (TARGET / "consumer.json").write_text(json.dumps(recorded, indent=1) + "\n")
    (TARGET / "recovery.json").write_text(json.dumps(recovered, indent=1) + "\n")


class _ZooKeeper:
    """A ZooKeeper that runs."""

    def __init__(self, process: ManagedProcess, port: int) -> None:
        self.process = process
        self.port = port


def _started_zookeeper(directory: Path, class_path: str) -> _ZooKeeper:
    port = free_port()
    config = directory / "zoo.cfg"
    settings = {"dataDir": str(directory / "tree"), "clientPort": str(port), "tickTime": "1000"}
    write_properties(config, settings | {"clientPortAddress": "127.0.0.1"})
    main_class = "org.apache.zookeeper.server.ZooKeeperServerMain"
    process = ManagedProcess(
        ["java", "-cp", class_path, main_class, str(config)], directory / "zookeeper.log"
    )
    process.wait_until(lambda: _listens(port), START_S, "ZooKeeper 3.3")
    return _ZooKeeper(process, port)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def _recorded(directory: Path, class_path: str, zookeeper_port: int) -> dict[str, dict[str, Any]]:
    """Return the answers of `Kafka07`. Raises CalledProcessError."""
    options = ("--add-opens", "java.base/java.lang=ALL-UNNAMED")  # for snappy-java of that time
    arguments = (f"127.0.0.1:{zookeeper_port}", str(free_port()), str(directory / "logs"))
    done = subprocess.run(
        ["java", *options, "-cp", class_path, "Kafka07", *arguments],
        stdout=subprocess.PIPE,
        timeout=RUN_S,
        check=True,
    )
    answers: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return answers


def _recovered(directory: Path, class_path: str) -> dict[str, dict[str, Any]]:
    """Return each log with a damaged end, and its size when the broker has started on it."""
    logs = directory / "logs"
    segments = {topic: write_log(logs, f"{topic}-0", [A, tail]) for topic, tail in TAILS.items()}
    files = {topic: path / f"{0:020d}.kafka" for topic, path in segments.items()}
    contents = {topic: path.read_bytes() for topic, path in files.items()}
    port = free_port()
    config = directory / "server.properties"
    settings = {"brokerid": "0", "hostname": "127.0.0.1", "port": str(port), "log.dir": str(logs)}
    write_properties(config, settings | {"enable.zookeeper": "false"})
    command = ["java", "-cp", class_path, "kafka.Kafka", str(config)]
    process = ManagedProcess(command, directory / "kafka.log")
    try:
        process.wait_until(lambda: _listens(port), RECOVERY_S, "Kafka 0.7")
        return {
            topic: {"log": content.hex(), "size_after": files[topic].stat().st_size}
            for topic, content in contents.items()
        }
    finally:
        process.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
