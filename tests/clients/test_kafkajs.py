"""kafkajs's own suite on three minibrokers: what passes on three Apache Kafka 3.9.1 passes here.

`kafkajs-fails-on-3.9.1.json` has the tests that fail on Kafka with the same settings: they want
TLS, SASL or an authorizer, or a broker that is older. `make client-suites` runs it, 6 minutes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.clients.brokers import brokers_of, start_all
from tests.support.build_files import BUILD, required
from tests.support.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.peers import ZooKeeper

SOURCE: Final = BUILD / "suites" / "kafkajs"
FAILS_ON_KAFKA: Final = Path(__file__).parent / "kafkajs-fails-on-3.9.1.json"
NEEDS_BROKER: Final = re.compile(
    "connectionOpts|createCluster|plainTextBrokers|createConnectionPool|createConnectionBuilder"
    "|newBroker"
)
SUITE_SECONDS: Final = 1800
SETTINGS: Final = {
    "auto.create.topics.enable": "true",
    "default.replication.factor": "2",
    "num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
JEST_OPTIONS: Final = ("--ci", "--maxWorkers=2", "--no-watchman", "--forceExit", "--json")
Names = dict[str, set[str]]
"""File → names of tests."""


@pytest.fixture
def ports(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[list[int]]:
    """Start three brokers; yield their ports."""
    port_of_broker = {n: free_port() for n in range(3)}
    settings = {
        broker_id: {**SETTINGS, "advertised.listeners": f"PLAINTEXT://localhost:{port}"}
        for broker_id, port in port_of_broker.items()
    }
    brokers = brokers_of(tmp_path, f"{zookeeper.connect}/kafkajs", port_of_broker, settings)
    try:
        start_all(brokers)
        yield list(port_of_broker.values())
    finally:
        for broker in brokers.values():
            broker.kill()


def run(ports: list[int], files: list[str], directory: Path) -> tuple[int, Names]:
    """Run these files; return how many tests passed, and those that failed."""
    result = directory / "result.json"
    jest = SOURCE / "node_modules" / ".bin" / "jest"
    with (directory / "jest.log").open("ab") as log:
        subprocess.run(
            [jest, *JEST_OPTIONS, f"--outputFile={result}", *files],
            cwd=SOURCE,
            env={
                **os.environ,
                **{f"MINIBROKER_PORT_{n}": str(port) for n, port in enumerate(ports)},
                "KAFKA_VERSION": "2.4",
                "NODE_ENV": "test",
                "NODE_OPTIONS": "--dns-result-order=ipv4first",
            },
            stdout=log,
            stderr=log,
            timeout=SUITE_SECONDS,
            check=False,  # it fails where a test does
        )
    report = json.loads(result.read_text())
    failed: Names = {}
    for file in report["testResults"]:
        name = Path(file["name"]).relative_to(SOURCE).as_posix()
        for test in file["assertionResults"]:
            if test["status"] == "failed":
                failed.setdefault(name, set()).add(test["fullName"])
    return report["numPassedTests"], failed


def new_of(failed: Names) -> Names:
    """Return the tests among them that pass on Kafka."""
    expected = json.loads(FAILS_ON_KAFKA.read_text())
    new = {file: names - set(expected.get(file, ())) for file, names in failed.items()}
    return {file: names for file, names in new.items() if names}


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(2 * SUITE_SECONDS)
def test_the_suite_passes_on_three_minibrokers_as_on_kafka(
    ports: list[int], tmp_path: Path
) -> None:
    required(SOURCE / ".done")
    files = [
        path.relative_to(SOURCE).as_posix()
        for path in sorted((SOURCE / "src").rglob("*.spec.js"))
        if NEEDS_BROKER.search(path.read_text())
    ]
    passed, failed = run(ports, files, tmp_path)
    assert passed > 400
    new = new_of(failed)
    if new:
        # Some wait for a time of their own, which a busy machine does not keep.
        _, failed = run(ports, sorted(new), tmp_path)
        new = new_of(failed)
    assert not new
