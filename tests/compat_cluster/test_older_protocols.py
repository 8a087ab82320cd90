"""The situations on mixed clusters with older values of `inter.broker.protocol.version`.

Kafka 3.9.1 and minibroker send each other no newer requests than that release did. The outcome is
the one that was recorded with 3.9. Only below 3.2 no state says that its leader is recovering.

`make move` plays them; other runs leave this module out (`conftest.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.compat.dialogue import flatten
from tests.compat.verdict import KAFKA_39, MINIBROKER, complaints_about
from tests.compat_cluster import recorded
from tests.compat_cluster.clusters import EPISODE_SECONDS, SITUATIONS, Clusters, played_by
from tests.compat_cluster.known_differences import MIXED_LINES
from tests.compat_cluster.mixed import (
    ONE_KAFKA_CONTROLS,
    ONE_KAFKA_UNDER_MINIBROKER,
    TWO_KAFKAS_ONE_CONTROLS,
    TWO_KAFKAS_UNDER_MINIBROKER,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.peers import ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(EPISODE_SECONDS)]

KIND_OF = {
    "2.8": (ONE_KAFKA_UNDER_MINIBROKER, ONE_KAFKA_CONTROLS),
    "3.0": (TWO_KAFKAS_UNDER_MINIBROKER,),
    "3.2": (ONE_KAFKA_CONTROLS,),
    "3.4": (ONE_KAFKA_UNDER_MINIBROKER,),
    "3.6": (TWO_KAFKAS_ONE_CONTROLS,),
    "3.8": (ONE_KAFKA_UNDER_MINIBROKER,),
}
"""Protocol → kinds of clusters that play with it."""
WITHOUT_RECOVERY = frozenset({"2.8", "3.0"})
RECOVERY = "leader_recovery_state:"
"""The end of a place in an outcome."""

PLAYED = [
    (protocol, kind, name)
    for protocol, kinds in KIND_OF.items()
    for kind in kinds
    for name in played_by(kind)
]


@pytest.fixture(scope="module")
def clusters(zookeeper: ZooKeeper, peers_directory: Path) -> Iterator[Clusters]:
    """Yield the clusters; one at a time runs."""
    new_clusters = Clusters(zookeeper, peers_directory)
    yield new_clusters
    new_clusters.end()


@pytest.mark.parametrize(("protocol", "kind", "name"), PLAYED)
def test_a_mixed_cluster_ends_as_kafka_does(
    clusters: Clusters, protocol: str, kind: str, name: str
) -> None:
    record = clusters.stage_of(kind, protocol).record_of(SITUATIONS[name])
    places = {
        MINIBROKER: flatten(list(record.items())),
        KAFKA_39: flatten(list(recorded.load()[name].items())),
    }
    if protocol in WITHOUT_RECOVERY:
        expected = places[KAFKA_39]
        places[KAFKA_39] = {at: expected[at] for at in expected if not at.endswith(RECOVERY)}
    lines = [line for line in MIXED_LINES[kind] if line.scenario == name]
    complaints = complaints_about(places, lines)
    assert not complaints, "\n".join(complaints)
