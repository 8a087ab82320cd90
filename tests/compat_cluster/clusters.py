"""Mixed clusters, one at a time, and the situations that each plays."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from tests.compat_cluster.known_differences import MIXED_NOT_YET
from tests.compat_cluster.mixed import KINDS
from tests.compat_cluster.playing import Stage, stage_of
from tests.compat_cluster.situations import load_all
from tests.compat_cluster.three_brokers import mixed_brokers
from tests.compat_cluster.tree import ClusterTree

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.peers import ZooKeeper

EPISODE_SECONDS: Final = 600
"""The first test of an episode plays all of it, on whatever machine."""

SITUATIONS: Final = load_all()


def played_by(kind: str) -> list[str]:
    """Return the names of the situations that a kind of cluster plays."""
    return [name for name in SITUATIONS if name not in MIXED_NOT_YET[kind]]


class Clusters:
    """Starts a cluster of one kind when a test asks for it, and ends the one before it."""

    def __init__(self, zookeeper: ZooKeeper, directory: Path) -> None:
        self._zookeeper = zookeeper
        self._directory = directory
        self._running = ExitStack()
        self._stage: tuple[str, Stage] | None = None

    def stage_of(self, kind: str, protocol: str = "3.9") -> Stage:
        """Return the stage of a kind of cluster, with an `inter.broker.protocol.version`."""
        name = f"{kind}-{protocol}"
        if self._stage is None or self._stage[0] != name:
            self.end()
            connect = f"{self._zookeeper.connect}/situations-{name}"
            tree = self._running.enter_context(ClusterTree(connect))
            settings = {"inter.broker.protocol.version": protocol}
            directory = self._directory / name
            brokers = mixed_brokers(KINDS[kind], directory, connect, tree, **settings)
            situations = [SITUATIONS[name] for name in played_by(kind)]
            started = contextmanager(stage_of)(situations, brokers)
            self._stage = (name, self._running.enter_context(started))
        return self._stage[1]

    def end(self) -> None:
        """Kill the cluster that runs."""
        self._stage = None
        self._running.close()
