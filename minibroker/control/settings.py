"""Settings of topics and brokers over HTTP: they are read and changed as by an admin client."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.slices import collect
from minibroker.control.messages import HttpError
from minibroker.control.topic_shapes import SettingLayer, SettingView
from minibroker.kafka.protocol.api_keys import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from minibroker.kafka.protocol.messages.describe_configs import DescribeConfigsResource
from minibroker.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
)
from minibroker.rig.inner_client import check_code

if TYPE_CHECKING:
    from minibroker.control.topic_shapes import SettingChange
    from minibroker.rig.inner_client import InnerClient

TOPIC: Final = 2
BROKER: Final = 4
_SET: Final = 0
_DELETE: Final = 1
_SOURCES: Final = (
    "UNKNOWN",
    "DYNAMIC_TOPIC_CONFIG",
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG",
    "DEFAULT_CONFIG",
    "DYNAMIC_BROKER_LOGGER_CONFIG",
    "DYNAMIC_CLIENT_METRICS_CONFIG",
    "DYNAMIC_GROUP_CONFIG",
)
_TYPES: Final = (
    "UNKNOWN",
    "BOOLEAN",
    "STRING",
    "INT",
    "SHORT",
    "LONG",
    "DOUBLE",
    "LIST",
    "CLASS",
    "PASSWORD",
)


async def settings_of(client: InnerClient, kind: int, name: str) -> list[SettingView]:
    """Return the settings of a topic or broker. Raises KafkaError."""
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    response = await client.ask(
        DESCRIBE_CONFIGS,
        resources=[resource],
        include_synonyms=True,
        include_documentation=True,
    )
    (result,) = response.results
    check_code(result.error_code, result.error_message)
    return await collect(_view(setting) for setting in result.configs)


def _view(setting: Any) -> SettingView:
    source = setting.config_source
    return SettingView(
        name=setting.name,
        value=setting.value,
        source=_SOURCES[source],
        is_default=_SOURCES[source] in ("DEFAULT_CONFIG", "STATIC_BROKER_CONFIG"),
        read_only=setting.read_only,
        sensitive=setting.is_sensitive,
        type=_TYPES[setting.config_type],
        documentation=setting.documentation,
        synonyms=[
            SettingLayer(name=layer.name, value=layer.value, source=_SOURCES[layer.source])
            for layer in setting.synonyms
        ],
    )


async def change_settings(
    client: InnerClient, kind: int, name: str, change: SettingChange
) -> list[SettingView]:
    """Change settings of a topic or broker; return all of them. Raises HttpError, KafkaError."""
    twice = change.set.keys() & set(change.reset)
    if twice or not (change.set or change.reset):
        names = ", ".join(sorted(twice)) or "nothing"
        raise HttpError(
            HTTPStatus.BAD_REQUEST, f"{names:.200}: expected settings, each in set or in reset"
        )
    configs = [
        AlterableConfig(name=key, config_operation=_SET, value=value)
        for key, value in change.set.items()
    ]
    configs += [
        AlterableConfig(name=key, config_operation=_DELETE, value=None)
        for key in dict.fromkeys(change.reset)
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    response = await client.ask(INCREMENTAL_ALTER_CONFIGS, resources=[resource])
    (result,) = response.responses
    check_code(result.error_code, result.error_message)
    return await settings_of(client, kind, name)
