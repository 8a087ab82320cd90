"""The services of a broker that has stale metadata: their image does not change any more.

A fault of tests (`stale_metadata`). Handlers of Metadata and its like get these services in place
of the broker's. All but the image are the broker's own: it leads and follows as usual. In Kafka,
that is a broker that gets LeaderAndIsr and no UpdateMetadata.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from minibroker.broker.cluster.image import MetadataImage

if TYPE_CHECKING:
    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.handlers.common.context import RequestContext, Services


class StaleServices:
    """The services of one broker, with the metadata of the moment of construction."""

    def __init__(self, services: Services) -> None:
        self._services = copy(services)
        stale: Any = _StaleCluster(services.cluster)
        self._services.cluster = stale

    def context_of(self, context: RequestContext) -> RequestContext:
        """Return a context of the same request that has these services."""
        stale = copy(context)
        stale.services = self._services
        return stale


class _StaleCluster:
    """A cluster whose image is a copy. All else is the cluster's."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.image = _copied(cluster.image)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


def _copied(image: MetadataImage) -> MetadataImage:
    """Return a copy that no change of the image changes; the values in it never change."""
    copied = MetadataImage()
    for name in MetadataImage.__slots__:
        value = getattr(image, name)
        setattr(copied, name, dict(value) if isinstance(value, dict) else value)
    return copied
