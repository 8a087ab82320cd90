"""The same situations on three Apache Kafka 3.9.1 and on three minibrokers: the same outcome.

Compared are the states in the tree, the answers to clients, and the logs of all replicas, byte for
byte. What Kafka does is recorded (`recorded.py`); a few situations are played on Kafka each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.compat.dialogue import flatten
from tests.compat.verdict import KAFKA_39, MINIBROKER, complaints_about
from tests.compat_cluster import recorded
from tests.compat_cluster.known_differences import LINES, MIXED_NOT_YET, NOT_YET, differences_of
from tests.compat_cluster.playing import Stage, stage_of
from tests.compat_cluster.situations import load_all
from tests.compat_cluster.three_brokers import three_kafkas, three_minibrokers
from tests.compat_cluster.tree import ClusterTree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.peers import ZooKeeper

EPISODE_SECONDS = 600
"""The first test of an episode plays all of it, on whatever machine."""

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(EPISODE_SECONDS)]

SITUATIONS = load_all()
PLAYED_BY_MINIBROKER = [name for name in SITUATIONS if name not in NOT_YET]
PLAYED_BY_KAFKA = [
    name for name in SITUATIONS if recorded.PLAYS_ALL_ON_KAFKA or name in recorded.BESIDE_KAFKA
]


@pytest.fixture(scope="module")
def minibrokers(zookeeper: ZooKeeper, peers_directory: Path) -> Iterator[Stage]:
    """Yield the stage of three minibrokers."""
    connect = f"{zookeeper.connect}/situations-minibroker"
    with ClusterTree(connect) as tree:
        brokers = three_minibrokers(peers_directory / "situations", connect, tree)
        yield from stage_of([SITUATIONS[name] for name in PLAYED_BY_MINIBROKER], brokers)


@pytest.fixture(scope="module")
def kafkas(zookeeper: ZooKeeper, peers_directory: Path) -> Iterator[Stage]:
    """Yield the stage of three Apache Kafka 3.9.1."""
    connect = f"{zookeeper.connect}/situations-kafka"
    with ClusterTree(connect) as tree:
        brokers = three_kafkas(peers_directory / "situations", connect, tree)
        yield from stage_of([SITUATIONS[name] for name in PLAYED_BY_KAFKA], brokers)


@pytest.mark.parametrize("name", PLAYED_BY_KAFKA)
def test_kafka_ends_as_it_is_recorded(kafkas: Stage, name: str) -> None:
    record = kafkas.record_of(SITUATIONS[name])
    if recorded.IS_RECORDING:
        recorded.write(name, record)
    assert record == recorded.load()[name]


@pytest.mark.parametrize("name", PLAYED_BY_MINIBROKER)
def test_minibroker_ends_as_kafka_does(minibrokers: Stage, name: str) -> None:
    outcomes = {
        MINIBROKER: minibrokers.record_of(SITUATIONS[name]),
        KAFKA_39: recorded.load()[name],
    }
    places = {broker: flatten(list(record.items())) for broker, record in outcomes.items()}
    complaints = complaints_about(places, differences_of(name))
    assert not complaints, "\n".join(complaints)


def test_every_situation_is_recorded_and_nothing_else() -> None:
    assert set(recorded.load()) == set(SITUATIONS)


def test_lists_name_situations() -> None:
    listed_names = {*recorded.BESIDE_KAFKA, *NOT_YET, *(line.scenario for line in LINES)}
    listed_names |= {name for names in MIXED_NOT_YET.values() for name in names}
    assert listed_names <= set(SITUATIONS)
