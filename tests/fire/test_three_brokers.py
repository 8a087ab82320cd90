"""Exactly once on three brokers of which a random one is killed or cut off, again and again.

Replication factor 3, `min.insync.replicas` 2. Clients in Java and on librdkafka write in
transactions, send with idempotence, and carry records to another topic. A seed decides which broker
is next (the controller, the leader of a random partition, or neither) and what happens to it:

| fault | meaning                                                                  |
|-------|--------------------------------------------------------------------------|
| crash | killed with -9 and started at once, within its session                   |
| death | killed with -9 and started when its session is over and the others work  |
| cut   | stands still until its session is over and the others work, then goes on |
| pause | stands still for some transactions of the others, maybe within a session |

Meanwhile clients are killed too. In the end the checker (`history`) compares the clients' lines
with the topics; all replicas are in sync and have the same bytes; no broker logged an error.

`make fire` (MINIBROKER_FIRE_CLUSTER_KILLS=50) does it; MINIBROKER_FIRE_SEED is another seed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat_cluster.tree import ClusterTree
from tests.fire.clients import Clients
from tests.fire.plan import (
    CLIENT_KILL_EVERY,
    CLUSTER_KILLS,
    CLUSTER_SETTINGS,
    PARTITIONS,
    SEED,
    TRANSACTIONS_MAX,
    TRANSACTIONS_MIN,
    WAIT_S,
)
from tests.support.broker import wait_until_acquainted
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.broker import Minibroker
    from tests.support.peers import ZooKeeper

IDS = (0, 1, 2)
ROLES = ("leader", "controller", "follower")
FAULTS = ("crash", "death", "cut", "pause")
TOPICS = {
    "input": PARTITIONS,
    "output": PARTITIONS,
    "__consumer_offsets": int(CLUSTER_SETTINGS["offsets.topic.num.partitions"]),
    "__transaction_state": int(CLUSTER_SETTINGS["transaction.state.log.num.partitions"]),
}
LINES_OF_ERROR = 30
LIBRARIES = {
    "writer-1": "java-3.9",
    "mover-1": "java-4.4",
    "sender-1": "java-4.4",
    "writer-2": "librdkafka",
    "mover-2": "librdkafka",
    "sender-2": "librdkafka",
}


class Brokers:
    """Three brokers and what may happen to one of them; called by one thread."""

    def __init__(self, new_broker: Callable[..., Minibroker], connect: str, tree: ClusterTree):
        self.tree = tree
        self.all = [
            new_broker(
                f"data-{n}",
                zookeeper=connect,
                settings={**CLUSTER_SETTINGS, "broker.id": str(n)},
            )
            for n in IDS
        ]
        self.address = ",".join(broker.address for broker in self.all)
        wait_until_acquainted(self.all)
        admin = AdminClient({"bootstrap.servers": self.address})
        topics = [NewTopic(name, PARTITIONS, 3) for name in ("input", "output")]
        for future in admin.create_topics(topics).values():
            future.result(WAIT_S)

    def victim(self, role: str, dice: random.Random) -> int:
        """Return the broker that has a role now; another one where none has it."""
        topic, partition = dice.choice(("input", "output")), dice.randrange(PARTITIONS)
        drawn = dice.choice(IDS)
        if role == "controller":
            controller = self.tree.controller
            return drawn if controller is None else controller
        state = self.tree.state(topic, partition)
        assert state is not None
        leader: int = state["leader"]
        if role == "leader":
            return leader if leader in IDS else drawn
        others = [n for n in IDS if n not in {leader, self.tree.controller}]
        return others[0] if others else drawn

    def play(self, fault: str, victim: int, clients: Clients, count: int) -> None:
        """Let a fault happen; `count` transactions are committed while the victim is away."""
        broker = self.all[victim]
        what = f"{count} transactions while broker {victim} is away ({fault})"
        if fault in {"crash", "death"}:
            broker.kill()
            if fault == "death":
                self._wait_until_forgotten(victim)
                clients.wait_for_transactions(count, what)
            broker.start()
        else:
            os.kill(broker.pid, signal.SIGSTOP)
            try:
                if fault == "cut":
                    self._wait_until_forgotten(victim)
                clients.wait_for_transactions(count, what)
            finally:
                os.kill(broker.pid, signal.SIGCONT)
        self._wait(lambda: victim in self.tree.brokers(), f"broker {victim} is registered")

    def _wait_until_forgotten(self, victim: int) -> None:
        self._wait(lambda: victim not in self.tree.brokers(), f"broker {victim} is gone")

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        wait_until(holds, what, WAIT_S)

    def wait_until_in_sync(self) -> None:
        """Wait until every replica is in sync."""

        def isr(topic: str, partition: int) -> set[int]:
            state = self.tree.state(topic, partition)
            return set() if state is None else set(state["isr"])

        for topic, partitions in TOPICS.items():
            for partition in range(partitions):
                self._wait(
                    lambda at=(topic, partition): isr(*at) == set(IDS),  # type: ignore[misc]
                    f"all replicas of {topic}-{partition} are in sync",
                )

    def wait_until_equal(self) -> None:
        """Wait until the replicas of each partition have the same bytes.

        Internal topics are compacted, by each broker when it likes, so they are not compared.
        """
        for name in [f"{topic}-{n}" for topic in ("input", "output") for n in range(PARTITIONS)]:
            self._wait(
                lambda name=name: len({self._log(n, name) for n in IDS}) == 1,  # type: ignore[misc]
                f"the replicas of {name} are equal",
            )

    def _log(self, broker: int, name: str) -> bytes:
        segments = sorted((self.all[broker].data_dir / name).glob("*.log"))
        return b"".join(segment.read_bytes() for segment in segments)

    def errors(self) -> list[str]:
        """Return each error and traceback that a broker logged, with the lines behind it."""
        found = []
        for n, broker in enumerate(self.all):
            lines = broker.log_path.read_text(errors="replace").splitlines()
            for number, line in enumerate(lines):
                if " ERROR " in line or line.startswith("Traceback"):
                    text = "\n".join(lines[number : number + LINES_OF_ERROR])
                    found.append(f"broker {n}: {text}")
        return found


@pytest.fixture
def brokers(zookeeper: ZooKeeper, new_broker: Callable[..., Minibroker]) -> Iterator[Brokers]:
    connect = f"{zookeeper.connect}/fire"
    with ClusterTree(connect) as tree:
        yield Brokers(new_broker, connect, tree)


@pytest.fixture
def clients(brokers: Brokers, tmp_path: Path) -> Iterator[Clients]:
    made = Clients(brokers.address, tmp_path, LIBRARIES)
    yield made
    made.kill_all()


@pytest.mark.java
@pytest.mark.timeout(600 + 240 * CLUSTER_KILLS)
def test_transactions_are_exactly_once_while_one_of_three_brokers_fails(
    brokers: Brokers, clients: Clients
) -> None:
    dice = random.Random(SEED)
    clients.start_all()
    for kill in range(1, CLUSTER_KILLS + 1):
        count = dice.randint(TRANSACTIONS_MIN, TRANSACTIONS_MAX)
        away = dice.randint(TRANSACTIONS_MIN, TRANSACTIONS_MAX)
        role, fault = dice.choice(ROLES), dice.choice(FAULTS)
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
    brokers.wait_until_in_sync()
    brokers.wait_until_equal()
    errors = brokers.errors()
    assert not errors, "\n".join(errors[:5])
