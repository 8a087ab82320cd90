"""Exactly once on three brokers of which a random one fails, again and again.

Replication factor 3, `min.insync.replicas` 2. Clients in Java and on librdkafka write in
transactions, send with idempotence, and carry records to another topic. A seed decides which broker
is next (the controller, the leader of a random partition, or neither) and what happens to it
(`brokers.py` has the faults). All three are minibroker, or one is Apache Kafka 3.9.1; a third test
cuts the power of one of three minibrokers.

Meanwhile clients are killed too. In the end the checker (`history`) compares the clients' lines
with the topics; all replicas are in sync and have the same bytes; no broker logged an error.

`make fire` (MINIBROKER_FIRE_CLUSTER_KILLS=50) does it; MINIBROKER_FIRE_SEED is another seed.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import pytest

from tests.compat_cluster.tree import ClusterTree
from tests.fire.brokers import KILLS, POWER_CUTS, ROLES, Brokers
from tests.fire.clients import Clients
from tests.fire.plan import (
    CLIENT_KILL_EVERY,
    CLUSTER_KILLS,
    SEED,
    TRANSACTIONS_MAX,
    TRANSACTIONS_MIN,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.support.peers import ZooKeeper

LIBRARIES = {
    "writer-1": "java-3.9",
    "mover-1": "java-4.4",
    "sender-1": "java-4.4",
    "writer-2": "librdkafka",
    "mover-2": "librdkafka",
    "sender-2": "librdkafka",
}


@pytest.fixture
def kafkas() -> frozenset[int]:
    """Return the ids of the brokers that are Apache Kafka; a test may override it."""
    return frozenset()


@pytest.fixture
def brokers(
    zookeeper: ZooKeeper, tmp_path: Path, kafkas: frozenset[int], request: pytest.FixtureRequest
) -> Iterator[Brokers]:
    with ClusterTree(f"{zookeeper.connect}/{request.node.originalname}") as tree:
        cluster = Brokers(kafkas, tmp_path, zookeeper, tree)
        try:
            cluster.start_all()
            yield cluster
        finally:
            cluster.kill_all()


@pytest.fixture
def clients(brokers: Brokers, tmp_path: Path) -> Iterator[Clients]:
    programs = Clients(brokers.address, tmp_path, LIBRARIES)
    yield programs
    programs.kill_all()


def play(brokers: Brokers, clients: Clients, faults: Sequence[str]) -> None:
    """Let CLUSTER_KILLS of these faults happen to random brokers; check what is there then."""
    dice = random.Random(SEED)
    clients.start_all()
    for kill in range(1, CLUSTER_KILLS + 1):
        count = dice.randint(TRANSACTIONS_MIN, TRANSACTIONS_MAX)
        away = dice.randint(TRANSACTIONS_MIN, TRANSACTIONS_MAX)
        role, fault = dice.choice(ROLES), dice.choice(faults)
        clients.wait_for_transactions(count, f"transactions before fault {kill}")
        victim = brokers.victim(role, dice)
        sys.stdout.write(f"seed {SEED}, fault {kill}: {fault} of broker {victim}, {role}\n")
        if kill % CLIENT_KILL_EVERY == 0:
            clients.replace(dice.choice(sorted(clients.running)))
        brokers.play(fault, victim, clients, away)
    clients.wait_for_each("a transaction of each client behind the last fault")
    source, wrong = clients.end()
    assert not wrong, "\n".join(wrong[:20])
    assert sum(map(len, source)) > CLUSTER_KILLS * TRANSACTIONS_MIN
    sys.stdout.write(f"{sum(map(len, source))} records in the input, none lost, none twice\n")
    brokers.wait_until_in_sync()
    brokers.wait_until_equal()
    errors = brokers.errors()
    assert not errors, "\n".join(errors[:5])


@pytest.mark.java
@pytest.mark.timeout(600 + 240 * CLUSTER_KILLS)
def test_transactions_are_exactly_once_while_one_of_three_brokers_fails(
    brokers: Brokers, clients: Clients
) -> None:
    play(brokers, clients, KILLS)


@pytest.mark.java
@pytest.mark.timeout(600 + 240 * CLUSTER_KILLS)
@pytest.mark.parametrize("kafkas", [frozenset({1})], ids=["kafka_1"])
def test_transactions_are_exactly_once_with_one_kafka_among_three_brokers_that_fail(
    brokers: Brokers, clients: Clients
) -> None:
    play(brokers, clients, KILLS)


@pytest.mark.java
@pytest.mark.timeout(600 + 240 * CLUSTER_KILLS)
def test_power_cuts_of_one_of_three_brokers_lose_no_transaction(
    brokers: Brokers, clients: Clients
) -> None:
    play(brokers, clients, POWER_CUTS)
