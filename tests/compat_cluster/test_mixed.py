"""The same situations on clusters of Apache Kafka 3.9.1 and minibroker: the recorded outcome.

`make situations` plays them; other runs leave this module out (`conftest.py`).
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.compat.dialogue import flatten
from tests.compat.verdict import KAFKA_39, MINIBROKER, complaints_about
from tests.compat_cluster import recorded
from tests.compat_cluster.known_differences import MIXED_LINES, MIXED_NOT_YET
from tests.compat_cluster.mixed import KINDS
from tests.compat_cluster.playing import Stage, stage_of
from tests.compat_cluster.situations import load_all
from tests.compat_cluster.three_brokers import mixed_brokers
from tests.compat_cluster.tree import ClusterTree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.peers import ZooKeeper

EPISODE_SECONDS = 600
"""The first test of an episode plays all of it, on whatever machine."""

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(EPISODE_SECONDS)]

SITUATIONS = load_all()


def played_by(kind: str) -> list[str]:
    """Return the names of the situations that a kind of cluster plays."""
    return [name for name in SITUATIONS if name not in MIXED_NOT_YET[kind]]


PLAYED = [(kind, name) for kind in KINDS for name in played_by(kind)]


class Clusters:
    """Starts a cluster of one kind when a test asks for it, and ends the one before it."""

    def __init__(self, zookeeper: ZooKeeper, directory: Path) -> None:
        self._zookeeper = zookeeper
        self._directory = directory
        self._running = ExitStack()
        self._stage: tuple[str, Stage] | None = None

    def stage_of(self, kind: str) -> Stage:
        """Return the stage of a kind of cluster."""
        if self._stage is None or self._stage[0] != kind:
            self.end()
            connect = f"{self._zookeeper.connect}/situations-{kind}"
            tree = self._running.enter_context(ClusterTree(connect))
            brokers = mixed_brokers(KINDS[kind], self._directory / kind, connect, tree)
            situations = [SITUATIONS[name] for name in played_by(kind)]
            started = contextmanager(stage_of)(situations, brokers)
            self._stage = (kind, self._running.enter_context(started))
        return self._stage[1]

    def end(self) -> None:
        """Kill the cluster that runs."""
        self._stage = None
        self._running.close()


@pytest.fixture(scope="module")
def clusters(zookeeper: ZooKeeper, peers_directory: Path) -> Iterator[Clusters]:
    """Yield the clusters; one at a time runs."""
    made = Clusters(zookeeper, peers_directory)
    yield made
    made.end()


@pytest.mark.parametrize(("kind", "name"), PLAYED)
def test_a_mixed_cluster_ends_as_kafka_does(clusters: Clusters, kind: str, name: str) -> None:
    outcomes = {
        MINIBROKER: clusters.stage_of(kind).record_of(SITUATIONS[name]),
        KAFKA_39: recorded.load()[name],
    }
    places = {broker: flatten(list(record.items())) for broker, record in outcomes.items()}
    lines = [line for line in MIXED_LINES[kind] if line.scenario == name]
    complaints = complaints_about(places, lines)
    assert not complaints, "\n".join(complaints)
