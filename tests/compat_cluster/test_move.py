"""A cluster of three minibrokers becomes one of three Apache Kafka 3.9.1, and minibroker again.

One broker after the other is stopped, and the other kind starts on its data directory, with its
id and on its ZooKeeper. Meanwhile clients write in transactions, send with idempotence, carry
records to another topic, and read in a group that commits. Nothing is lost, nothing comes twice.

`make move` runs it; other runs leave it out (`conftest.py`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat_cluster.committing import CommittingReader
from tests.compat_cluster.moving import IDS, KAFKA, MINIBROKER, Moving
from tests.compat_cluster.tree import ClusterTree
from tests.compat_cluster.verification import verify_replicas
from tests.fire.clients import Clients
from tests.fire.plan import PARTITIONS, WAIT_S
from tests.support.taking_over import assert_dump_is_clean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.peers import ZooKeeper

LIBRARIES = {
    "writer-1": "librdkafka",
    "sender-1": "librdkafka",
    "sender-2": "java-4.4",
    "mover-1": "java-3.9",
    "mover-2": "librdkafka",
}
BETWEEN = 20
"""Transactions between two steps."""


@pytest.fixture
def brokers(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Moving]:
    connect = f"{zookeeper.connect}/move"
    with ClusterTree(connect) as tree:
        moving = Moving(tmp_path, connect, tree)
        try:
            moving.start_all(dict.fromkeys(IDS, MINIBROKER))
            admin = AdminClient({"bootstrap.servers": moving.address})
            topics = [NewTopic(name, PARTITIONS, 3) for name in ("input", "output")]
            for future in admin.create_topics(topics).values():
                future.result(WAIT_S)
            yield moving
        finally:
            moving.kill_all()


@pytest.fixture
def clients(brokers: Moving, tmp_path: Path) -> Iterator[Clients]:
    new_clients = Clients(brokers.address, tmp_path, LIBRARIES)
    yield new_clients
    new_clients.kill_all()


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_cluster_moves_to_kafka_and_back_under_load(
    brokers: Moving, clients: Clients, tmp_path: Path
) -> None:
    with CommittingReader(brokers.address, "input", PARTITIONS) as reader:
        clients.start_all()
        clients.wait_for_transactions(BETWEEN, "transactions on three minibrokers")
        for kind in (KAFKA, MINIBROKER):
            for broker_id in IDS:
                sys.stdout.write(f"broker {broker_id} becomes {kind}\n")
                sys.stdout.flush()
                brokers.replace(broker_id, kind)
                clients.wait_for_transactions(BETWEEN, f"broker {broker_id} is {kind} and follows")
                brokers.elect_preferred()
                clients.wait_for_transactions(BETWEEN, f"broker {broker_id} is {kind} and leads")
                clients.wait_for_each(
                    f"a transaction of each client with broker {broker_id} as {kind}"
                )
        source, wrong = clients.end()
    wrong += reader.missing(source)
    assert not wrong, "\n".join(wrong[:20])
    brokers.wait_until_in_sync()
    brokers.wait_until_equal()
    verify_replicas(brokers.address, "input|output", 2 * PARTITIONS, tmp_path / "verification.log")
    brokers.stop_all()
    for log_dir in brokers.log_dirs:
        assert_dump_is_clean(log_dir)
    errors = brokers.errors()
    assert not errors, "\n".join(errors[:5])
