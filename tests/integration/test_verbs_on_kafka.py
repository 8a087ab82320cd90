"""The small verbs on Apache Kafka 3.9.1 and 4.4.0: what they show there is what they show here.

Kafka's own tools read and write beside them: the console consumer is in the same group.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support import java
from tests.unit.verbs.conftest import Program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.peers import KafkaPeer

BROKERS = ("kafka_39", "kafka_44", "minibroker")

pytestmark = pytest.mark.java


@pytest.fixture(params=BROKERS)
def program(request: pytest.FixtureRequest) -> Program:
    """Return the program with the address of each kind of broker."""
    return Program(request.getfixturevalue(request.param).address)


def test_the_way_of_a_record_and_of_a_group(program: Program) -> None:
    topic = "verbs"
    words = ("--create", f"{topic}:3:retention.ms=600000:cleanup.policy=compact")
    assert program.run("topics", *words).lines == [f"{topic} is made"]
    assert program.run("wait", "--topic", f"{topic}:3").code == 0
    lines = b"".join(b"k%d\tv%d\n" % (number, number) for number in range(300))
    production = program.feed(
        lines, "produce", topic, "--keys", "-H", "h=1", "--compression", "zstd"
    )
    assert (production.code, production.errors) == (0, "")
    (view,) = json.loads(program.run("topics", topic, "--json").out)
    assert view["settings"] == {"retention.ms": "600000", "cleanup.policy": "compact"}
    assert sum(part["end_offset"] for part in view["partitions"]) == 300
    assert sum(part["size_bytes"] for part in view["partitions"]) > 1000
    assert all(part["in_sync"] for part in view["partitions"])

    assert len(program.run("consume", topic, "--group", "g", "-n", "100").lines) == 100
    (group,) = [
        row for row in json.loads(program.run("groups", "--json").out) if row["name"] == "g"
    ]
    assert (group["state"], group["members"], group["lag"]) == ("Empty", 0, 200)
    assert len(program.run("consume", topic, "--group", "g").lines) == 200
    assert program.run("wait", "--group", "g", "--lag", "0").code == 0
    moves = json.loads(program.run("groups", "g", "--reset-to", "-1", "--json").out)
    assert sum(move["before"] - move["after"] for move in moves) == 3
    records = [json.loads(line) for line in program.run("consume", topic, "--json").lines]
    assert sorted(record["value"] for record in records) == sorted(f"v{n}" for n in range(300))
    assert records[0]["headers"] == [["h", "1"]]
    assert program.run("topics", topic, "--partitions", "4").code == 0
    assert program.run("topics", topic, "--set", "retention.ms=").code == 0
    assert program.run("groups", "g", "--delete").code == 0
    assert program.run("topics", topic, "--delete").code == 0


def test_java_and_the_verb_share_a_group(kafka_44: KafkaPeer, tmp_path: Path) -> None:
    """Kafka's console consumer and `consume --group` have a partition each; both commit."""
    program = Program(kafka_44.address)
    program.run("topics", "--create", "shared:2")
    with (tmp_path / "java").open("wb") as java_out, (tmp_path / "own").open("wb") as own_out:
        console = subprocess.Popen(
            java.java_command(
                java.TOOLS_43,
                "org.apache.kafka.tools.consumer.ConsoleConsumer",
                *("--bootstrap-server", program.bootstrap, "--topic", "shared"),
                *("--group", "both", "--from-beginning"),
            ),
            stdout=java_out,
            stderr=subprocess.DEVNULL,
        )
        own = program.start("consume", "shared", "--group", "both", "--follow", stdout=own_out)
        ready = program.run("wait", "--group", "both", "--members", "2", "--timeout", "2m")
        assert ready.code == 0, ready.errors
        lines = b"".join(b"k%d\t%d\n" % (number, number) for number in range(100))
        program.feed(lines, "produce", "shared", "--keys")
        outcome = program.run("wait", "--group", "both", "--lag", "0", "--timeout", "2m")
        assert outcome.code == 0, outcome.errors
        for process in (own, console):
            process.terminate()
            process.communicate(timeout=60)
    shares = [(tmp_path / name).read_text().split() for name in ("java", "own")]
    assert all(shares), "each has a partition"
    assert sorted(map(int, shares[0] + shares[1])) == list(range(100))
