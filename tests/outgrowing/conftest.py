"""A cluster for a test, which ends with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.outgrowing.sides import OneCluster
from tests.support.peers import ONE_NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SETTINGS = {
    **ONE_NODE,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "share.coordinator.state.topic.num.partitions": "2",
}


@pytest.fixture
def new_cluster(tmp_path: Path) -> Iterator[Callable[..., OneCluster]]:
    """Yield a function that makes clusters in the test's own directory."""
    clusters: list[OneCluster] = []

    def make(release: str, **options: object) -> OneCluster:
        root = tmp_path / f"cluster-{len(clusters)}"
        root.mkdir()
        clusters.append(OneCluster(root, release, **{"settings": SETTINGS, **options}))  # type: ignore[arg-type]
        return clusters[-1]

    yield make
    for cluster in clusters:
        cluster.kill()
