"""Carries configurations from the cluster's image to the parts that use them.

The tree holds the configurations of topics, brokers, groups and clients. `app` subscribes this
follower first, so that a new topic has its configuration before its partitions are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.paths import DEFAULT_ENTITY
from minibroker.broker.cluster.updates import ClusterListener
from minibroker.broker.config.dynamic import is_password
from minibroker.broker.server.host_names import HostNames

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.broker.quotas.manager import QuotaManager
    from minibroker.broker.resolver import Resolver
    from minibroker.broker.security.stored_passwords import StoredPasswords


class ConfigFollower(ClusterListener):
    """Carries configurations from the cluster's image into `DynamicConfig` and the quotas. The loop
    owns it.
    """

    def __init__(
        self,
        cluster: Cluster,
        dynamic: DynamicConfig,
        quotas: QuotaManager,
        resolver: Resolver,
        passwords: Callable[[], StoredPasswords],
    ) -> None:
        """`passwords`: returns what decodes this broker's settings."""
        self._cluster = cluster
        self._dynamic = dynamic
        self._quotas = quotas
        self._passwords = passwords
        self._host_names = HostNames(quotas.on_config_changed, resolver)

    def on_topic_created(self, topic: TopicImage) -> None:
        self._dynamic.set_topic(topic.name, self._cluster.config_of("topics", topic.name))

    def on_topic_deleted(self, topic: TopicImage, _evidence: DeletionEvidence) -> None:
        self._dynamic.set_topic(topic.name, {})

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        config = self._cluster.config_of(entity_type, entity_name)
        if entity_type == "topics":
            self._dynamic.set_topic(entity_name, config)
        elif entity_type == "brokers" and entity_name == DEFAULT_ENTITY:
            self._dynamic.set_cluster_default(config)
        elif entity_type == "brokers" and entity_name == str(self._cluster.broker_id):
            self._set_broker(config)
        elif entity_type == "ips":
            self._host_names.on_config_changed(entity_name, config)
        else:
            self._quotas.on_config_changed(entity_type, entity_name, config)

    def _set_broker(self, config: dict[str, str]) -> None:
        """Apply this broker's settings: at once, or when their passwords are decoded."""
        values: dict[str, str] | None = config
        if any(map(is_password, config)):
            values = self._passwords().decoded_values(config)
        if values is not None:
            self._dynamic.set_broker(values)
            return
        broker_id = str(self._cluster.broker_id)
        self._passwords().decode_then(
            config, lambda: self._set_broker(self._cluster.config_of("brokers", broker_id))
        )
