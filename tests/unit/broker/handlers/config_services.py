"""The services that the config handlers use, with a tree that is a dict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from minibroker.broker.cluster.configs import with_changes
from minibroker.broker.config.alterations import as_changes
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.handlers.common.context import RequestContext

if TYPE_CHECKING:
    from minibroker.broker.cluster.configs import Edit


class TreeOfConfigs:
    """Stands for `Cluster`: keeps configs, feeds them back, counts what was written."""

    def __init__(self, dynamic: DynamicConfig) -> None:
        self.dynamic = dynamic
        self.image = SimpleNamespace(topics={"t": None, "u": None}, brokers={0: None}, configs={})
        self.written: list[tuple[str, str, dict[str, str | None]]] = []
        self.failure: Exception | None = None

    def config_of(self, entity_type: str, entity_name: str) -> dict[str, str]:
        stored: dict[str, str] = self.image.configs.get(entity_type, {}).get(entity_name, {})
        return stored

    async def alter_config(
        self, entity_type: str, entity_name: str, changes: dict[str, str | None]
    ) -> dict[str, str]:
        return await self.edit_config(
            entity_type, entity_name, lambda config: with_changes(config, changes)
        )

    async def edit_config(
        self, entity_type: str, entity_name: str, edit: Edit, *, validate_only: bool = False
    ) -> dict[str, str]:
        if self.failure is not None:
            raise self.failure
        current = self.config_of(entity_type, entity_name)
        values = edit(dict(current))
        if validate_only or values == current:
            return values
        self.written.append((entity_type, entity_name, as_changes(current, values)))
        self.image.configs.setdefault(entity_type, {})[entity_name] = values
        if entity_type == "topics":
            self.dynamic.set_topic(entity_name, values)
        elif entity_type == "brokers" and entity_name == "<default>":
            self.dynamic.set_cluster_default(values)
        elif entity_type == "brokers":
            self.dynamic.set_broker(values)
        return values


def make_context(version: int = 0, settings: dict[str, str] | None = None) -> Any:
    """A request context of one version over a fresh tree; broker 0, topics `t` and `u`."""
    config = BrokerConfig(settings)
    dynamic = DynamicConfig(config)
    services = SimpleNamespace(
        config=config, dynamic=dynamic, cluster=TreeOfConfigs(dynamic), authorizer=None
    )
    context = RequestContext(
        services=services,  # type: ignore[arg-type]
        listener=config.listeners[0],
        client_address="127.0.0.1",
        close_connection=lambda why: None,
    )
    context.version = version
    return context
