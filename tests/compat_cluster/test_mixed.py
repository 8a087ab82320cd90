"""The same situations on clusters of Apache Kafka 3.9.1 and minibroker: the recorded outcome.

`make situations` plays them; other runs leave this module out (`conftest.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.compat.dialogue import flatten
from tests.compat.verdict import KAFKA_39, MINIBROKER, complaints_about
from tests.compat_cluster import recorded
from tests.compat_cluster.clusters import EPISODE_SECONDS, SITUATIONS, Clusters, played_by
from tests.compat_cluster.known_differences import MIXED_LINES
from tests.compat_cluster.mixed import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.peers import ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(EPISODE_SECONDS)]

PLAYED = [(kind, name) for kind in KINDS for name in played_by(kind)]


@pytest.fixture(scope="module")
def clusters(zookeeper: ZooKeeper, peers_directory: Path) -> Iterator[Clusters]:
    """Yield the clusters; one at a time runs."""
    new_clusters = Clusters(zookeeper, peers_directory)
    yield new_clusters
    new_clusters.end()


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
