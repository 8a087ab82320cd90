"""A cluster for a test, which ends with it. What takes minutes is left to `make outgrow`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.outgrowing.settings import SETTINGS
from tests.outgrowing.sides import OneCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


IS_LONG = "MINIBROKER_OUTGROW_ROUNDS" in os.environ

collect_ignore = [] if IS_LONG else ["test_large.py"]


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
