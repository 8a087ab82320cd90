"""Consumers of Kafka 0.7 go on at the right record, on minibroker and on Apache Kafka.

The logs and positions are those of a real broker of 0.7 and its consumer (`tests/golden/kafka_07`).
They stand in a real ZooKeeper, one group for each message that the consumer had read.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from kazoo.client import KazooClient

from minibroker.tools.import_07.consumers import StoredPosition
from minibroker.tools.import_07.errors import ImportRefusedError
from minibroker.tools.import_07.zookeeper import positions_in_zookeeper
from tests.support import readme
from tests.support.logs_07 import BROKER
from tests.support.shell import run_command, serving
from tests.unit.verbs.conftest import Program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.peers import ZooKeeper

LOGS: Final = Path(__file__).parents[1] / "golden" / "kafka_07"
RECORDED: Final = json.loads((LOGS / "consumer.json").read_text())
TOPICS: Final = ("plain", "packed", "nested", "old")
BROKERS: Final = ("minibroker", "kafka_39", "kafka_44")
WAIT_S: Final = 60

pytestmark = pytest.mark.java


def group_of(topic: str, count: int) -> str:
    return f"has-read-{count}-of-{topic}"


@contextmanager
def client_of(connect: str) -> Iterator[Any]:
    client = KazooClient(connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def write_positions(client: Any) -> None:
    """Write what the consumer committed behind each message, as a group of its own."""
    for topic in TOPICS:
        for count, (_, positions) in enumerate(RECORDED[topic]["read"], 1):
            for stored in positions:
                partition, position = stored.split(":")
                path = f"/consumers/{group_of(topic, count)}/offsets/{topic}/{partition}"
                client.create(path, position.encode(), makepath=True)


@pytest.fixture(scope="module")
def tree(zookeeper: ZooKeeper) -> str:
    """Return the address of the tree of a Kafka 0.7, with a chroot."""
    connect = f"{zookeeper.connect}/kafka-07"
    with client_of(zookeeper.connect) as root:
        root.ensure_path("/kafka-07")
    with client_of(connect) as client:
        write_positions(client)
    return connect


def next_value(address: str, group: str, topic: str, partition: int) -> str | None:
    """Return the value with which a group goes on, None if it is at the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition)])
        record = consumer.poll(WAIT_S)
        assert record is not None
        error = record.error()
        if error is None:
            return bytes(record.value() or b"").decode()
        assert error.code() == KafkaError._PARTITION_EOF, error
        return None
    finally:
        consumer.close()


@pytest.mark.parametrize("kind", BROKERS)
def test_each_group_goes_on_at_the_next_record(
    request: pytest.FixtureRequest, kind: str, tree: str, tmp_path: Path
) -> None:
    address = request.getfixturevalue(kind).address
    program = Program(address)
    for topic in TOPICS:
        new_topic = f"of-07-{topic}"
        ran = program.run(
            *("import-07", f"{BROKER}={LOGS}", "--topic", topic, "--to-topic", new_topic),
            *("--zookeeper", tree, "--table", str(tmp_path / topic)),
        )
        assert (ran.code, ran.errors) == (0, "")
        recorded = RECORDED[topic]["read"]
        assert sum(line.startswith("group has-read-") for line in ran.lines) == len(recorded)
        for count, (_, positions) in enumerate(recorded, 1):
            for stored in positions:
                number = int(stored[len(f"{BROKER}-")])
                if (LOGS / f"{topic}-{number}").exists():
                    value = next_value(address, group_of(topic, count), new_topic, number)
                    assert value == RECORDED[topic]["next"][stored], (topic, count, stored)


def test_a_group_reads_on_to_the_end(minibroker: Any, tree: str, tmp_path: Path) -> None:
    """A member of the group gets all that was left, from the set that it had read in part."""
    program = Program(minibroker.address)
    words = ("--topic", "packed", "--to-topic", "rest-of-07", "--table", str(tmp_path / "table"))
    ran = program.run("import-07", f"{BROKER}={LOGS}", *words, "--zookeeper", tree)
    assert ran.code == 0, ran.errors
    rest = program.run("consume", "rest-of-07", "--group", group_of("packed", 4)).lines
    assert rest == [value for value, _ in RECORDED["packed"]["read"]][2:]


def test_positions_are_read_of_the_topics_that_are_imported(tree: str) -> None:
    positions = positions_in_zookeeper(tree, ["old"])
    assert len(positions) == 2 * len(RECORDED["old"]["read"])
    assert StoredPosition(group_of("old", 3), "old", BROKER, 0, 28) in positions


def test_another_tree_and_another_text_are_refused(zookeeper: ZooKeeper) -> None:
    with pytest.raises(ImportRefusedError, match="has no /nothing/consumers"):
        positions_in_zookeeper(f"{zookeeper.connect}/nothing", ["orders"])
    path = "/strange-07/consumers/g/offsets/orders"
    with client_of(zookeeper.connect) as client:
        client.create(f"{path}/0-0", b"12x", makepath=True)
        with pytest.raises(ImportRefusedError, match="orders/0-0 has '12x': expected a position"):
            positions_in_zookeeper(f"{zookeeper.connect}/strange-07", ["orders"])
        client.delete(f"{path}/0-0")
        client.create(f"{path}/0", b"12")
        with pytest.raises(ImportRefusedError, match="expected BROKER-PARTITION"):
            positions_in_zookeeper(f"{zookeeper.connect}/strange-07", ["orders"])
        client.delete("/strange-07", recursive=True)


def run_section(section: str, directory: Path, address: str, tree: str) -> list[str]:
    """Run the commands of a section of the page; return the output of each."""
    blocks = [block for block in readme.blocks() if block.section == section]
    return [
        run_command(
            command.replace("import-07", f"import-07 --bootstrap {address}").replace(
                "127.0.0.1:2181/kafka-07", tree
            ),
            directory,
        )
        for command in readme.commands(blocks)
    ]


def test_the_commands_of_the_page(tree: str, tmp_path: Path) -> None:
    (tmp_path / "kafka-logs").symlink_to(LOGS)
    (tmp_path / "offsets.txt").write_text("/consumers/billing/offsets/packed/3-0:103\n")
    with serving("minibroker serve --listen 127.0.0.1:0 --memory", tmp_path) as address:
        plain, packed = run_section("Bring 0.7 logs in", tmp_path, address, tree)
        assert plain.splitlines() == [
            "plain/3-0 is plain-0: 12 records, 577 B",
            "plain/3-1 is plain-1: 2 records, 101 B",
        ]
        assert packed == "packed/3-0 is orders-0: 12 records, 336 B\n"
        nested, again, billing = run_section("Bring 0.7 consumers along", tmp_path, address, tree)
        line, *groups = nested.splitlines(keepends=True)
        assert line == "nested/3-0 is nested-0: 9 records, 261 B\n"
        assert "".join(groups) == again
        assert len(groups) == len(RECORDED["nested"]["read"])
        assert billing == "group billing: 1 partition committed\n"
        looked, as_json = run_section("Look a position up", tmp_path, address, tree)
        assert looked.splitlines() == [
            "packed/3-0:36 is offset 2 of orders-0, a compressed message of 3 records",
            "packed/3-0:317 is offset 11 of orders-0",
        ]
        assert json.loads(as_json)["offset"] == 2
