"""Exactly once under fire: Java clients read, process and write while everything is killed.

Two writers fill a topic of 8 partitions in transactions, two movers carry what is committed to
another topic, offsets in the same transactions; one of each is Kafka's client 3.9.1, the other is
4.4.0. Meanwhile the broker is killed (-9) and started again after some random number of
transactions, and every now and then a client is. Then all clients stop, and the checker (`history`)
compares their lines with the topics.

`make fire` (MINIBROKER_FIRE_KILLS=50) does it at length.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.fire.clients import Clients
from tests.fire.plan import (
    CLIENT_KILL_EVERY,
    KILLS,
    PARTITIONS,
    SEED,
    SETTINGS,
    TRANSACTIONS_MAX,
    TRANSACTIONS_MIN,
    WAIT_S,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.broker import Minibroker

LIBRARIES = {
    "writer-1": "java-3.9",
    "mover-1": "java-3.9",
    "writer-2": "java-4.4",
    "mover-2": "java-4.4",
}


@pytest.fixture
def broker(new_broker: Callable[..., Minibroker]) -> Minibroker:
    node = new_broker(settings=SETTINGS)
    admin = AdminClient({"bootstrap.servers": node.address})
    topics = [NewTopic(name, PARTITIONS, 1) for name in ("input", "output")]
    for future in admin.create_topics(topics).values():
        future.result(WAIT_S)
    return node


@pytest.fixture
def clients(broker: Minibroker, tmp_path: Path) -> Iterator[Clients]:
    programs = Clients(broker.address, tmp_path, LIBRARIES)
    yield programs
    programs.kill_all()


@pytest.mark.java
@pytest.mark.timeout(600 + 120 * KILLS)
def test_transactions_are_exactly_once_under_kills(broker: Minibroker, clients: Clients) -> None:
    dice = random.Random(SEED)
    clients.start_all()
    for kill in range(1, KILLS + 1):
        count = dice.randint(TRANSACTIONS_MIN, TRANSACTIONS_MAX)
        clients.wait_for_transactions(count, f"transactions before kill {kill}")
        broker.kill()
        if kill % CLIENT_KILL_EVERY == 0:
            clients.replace(dice.choice(sorted(clients.running)))
        broker.start()
    clients.wait_for_transactions(TRANSACTIONS_MAX, "transactions behind the last kill")
    source, wrong = clients.end()
    assert not wrong, "\n".join(wrong[:20])
    assert sum(map(len, source)) > KILLS * TRANSACTIONS_MIN
