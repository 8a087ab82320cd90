"""Record the dialogues of `release_dialogues` with Apache Kafka of each release:

python -m tests.golden.record_releases [RELEASE…]     (`make release-dialogues`)

Each broker runs with a ZooKeeper of its own, on Java 17.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.golden.release_dialogues import DIALOGUES, RELEASES, SETTINGS, Peer
from tests.support.java import JARS, JVM_OPTIONS, java_command, log_option
from tests.support.peers import START_SECONDS, ZooKeeper, write_properties
from tests.support.probe import answers_metadata
from tests.support.processes import ManagedProcess, free_port

STORED = Path(__file__).parent / "releases"
OPTIONS = (
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
)
"""Rooms of Java that Kafka of 2017 reaches into."""


def record(release: str, version: str) -> None:
    """Start Kafka, have the dialogues, and store the answers."""
    with tempfile.TemporaryDirectory() as text:
        directory = Path(text)
        zookeeper, port = ZooKeeper(directory / "zookeeper"), free_port()
        zookeeper.start()
        settings = {
            **SETTINGS,
            "broker.id": "0",
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "zookeeper.connect": zookeeper.connect,
            "log.dirs": str(directory / "logs"),
            "log.cleaner.dedupe.buffer.size": "4194304",
        }
        write_properties(directory / "server.properties", settings)
        command = java_command(
            JARS / f"kafka-{version}",
            "kafka.Kafka",
            str(directory / "server.properties"),
            options=[*OPTIONS, log_option("broker")],
            jvm=JVM_OPTIONS,
        )
        kafka = ManagedProcess(command, directory / "kafka.log")
        try:
            kafka.wait_until(
                lambda: answers_metadata("127.0.0.1", port), START_SECONDS, f"Kafka {version}"
            )
            peer = Peer("127.0.0.1", port)
            answers = {dialogue.__name__: dialogue(peer) for dialogue in DIALOGUES}
        finally:
            kafka.kill()
            zookeeper.stop()
    STORED.mkdir(exist_ok=True)
    file = STORED / f"{release}.json"
    file.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
    sys.stdout.write(f"{file}: {len(answers)} dialogues with Kafka {version}\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or RELEASES:
        record(name, RELEASES[name])
