"""A broker that serves the requests of a controller, though it has no ZooKeeper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from minibroker.broker.handlers.registry import ONLY_WITH_ZOOKEEPER, supported_versions

if TYPE_CHECKING:
    from minibroker.broker.cluster.image import TopicImage
    from tests.support.in_process import InProcessBroker

EPOCH = 7
"""A controller epoch, newer than the broker's own."""


class Controlled:
    """The broker, and what a controller knows of it."""

    def __init__(self, running: InProcessBroker) -> None:
        self.cluster = running.broker.cluster
        self.partitions = running.partitions
        self._data = Path(running.broker.config.log_dirs[0])
        on_zookeeper = supported_versions(with_zookeeper=True)
        running.broker.services.supported_apis.update(
            {key: on_zookeeper[key] for key in ONLY_WITH_ZOOKEEPER}
        )

    @property
    def broker_epoch(self) -> int:
        return self.cluster.this_broker.epoch

    @property
    def topic(self) -> TopicImage:
        return self.cluster.image.topics["t"]

    def logs(self) -> list[str]:
        """Return the names of the directories of `t`'s logs."""
        return sorted(path.name for path in self._data.glob("t-?"))
