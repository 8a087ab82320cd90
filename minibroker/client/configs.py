"""Settings of topics, brokers and groups in a cluster: read, and changed one by one.

    a resource ─DescribeConfigs─► any broker (a broker's own: that broker) ─► its settings
    changes ─IncrementalAlterConfigs─► the same broker
            └─ before Kafka 2.3 AlterConfigs: with every other setting that the resource has

Source: Kafka KafkaAdminClient; KIP-133, KIP-226, KIP-339.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.client.answer_parts import part_of
from minibroker.client.dialogue import BrokerRefusedError, VersionedRequest
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages import alter_configs, incremental_alter_configs
from minibroker.kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.client.client import Client

DESCRIBE_VERSIONS: Final = (0, 4)
_SYNONYMS_FROM: Final = 1
"""Version of DescribeConfigs from which on an answer has synonyms (KIP-226)."""
ALTER_VERSIONS: Final = (0, 1)
OLD_ALTER_VERSIONS: Final = (0, 2)

TOPIC: Final = 2
BROKER: Final = 4
CLIENT_METRICS: Final = 16
GROUP: Final = 32

OF_TOPIC: Final = 1
"""The source of a value: the topic's own setting. Others are defaults of the cluster or Kafka."""
DEFAULT: Final = 5
"""The source of a value that nobody has set."""
_UNKNOWN_SOURCE: Final = 0
OWN_SOURCES: Final[Mapping[int, frozenset[int]]] = {
    TOPIC: frozenset({OF_TOPIC}),
    BROKER: frozenset({2, 3}),
    CLIENT_METRICS: frozenset({7}),
    GROUP: frozenset({8}),
}
"""Kind of a resource → sources of the values that are set on resources of this kind."""
_SET: Final = 0
_DELETE: Final = 1


class Resource(NamedTuple):
    """A thing with settings."""

    kind: int
    """`TOPIC`, `BROKER`, `CLIENT_METRICS` or `GROUP`."""
    name: str
    """A broker has its id as text here; empty: the defaults of all brokers."""


class Synonym(NamedTuple):
    """A setting that counts where those before it are not set; the first is the one that holds."""

    name: str
    value: str | None
    source: int


class OwnSetting(NamedTuple):
    """A setting of a resource."""

    name: str
    value: str | None
    """None for one that is secret or has no value."""
    source: int
    """`OF_TOPIC`, or another number of Kafka's ConfigSource."""
    is_secret: bool = False
    is_read_only: bool = False
    synonyms: tuple[Synonym, ...] = ()
    """Empty unless they are asked for, and before Kafka 1.1."""


def settings_of(
    client: Client, resource: Resource, *, with_synonyms: bool = False
) -> list[OwnSetting]:
    """Return the settings of a resource, with their defaults.

    Raises:
        KafkaError: there is no such resource, or it may not be read.
        OSError, ProtocolError, ConfigError: as `Client.ask_any`. BrokerRefusedError: a broker
            before Kafka 0.11 tells no settings.
    """
    request_resource = DescribeConfigsResource(
        resource_type=resource.kind, resource_name=resource.name, configuration_keys=None
    )

    def of_version(version: int) -> DescribeConfigsRequest:
        wants = with_synonyms and version >= _SYNONYMS_FROM
        return DescribeConfigsRequest(resources=[request_resource], include_synonyms=wants)

    request = VersionedRequest(DescribeConfigsRequest, of_version)
    answer = _ask(client, resource, request, DescribeConfigsResponse, DESCRIBE_VERSIONS)
    described = part_of({result.resource_name: result for result in answer.results}, resource.name)
    if described.error_code:
        raise KafkaError(ErrorCode(described.error_code), described.error_message)
    return [
        OwnSetting(
            setting.name,
            setting.value,
            _source(setting, resource.kind),
            setting.is_sensitive,
            setting.read_only,
            tuple(Synonym(each.name, each.value, each.source) for each in setting.synonyms),
        )
        for setting in described.configs
    ]


def topic_settings(client: Client, name: str) -> list[OwnSetting]:
    """Return the settings of a topic, with their defaults. Raises KafkaError, OSError,
    ProtocolError, ConfigError, BrokerRefusedError.
    """
    return settings_of(client, Resource(TOPIC, name))


def alter_settings(
    client: Client, resource: Resource, changes: Mapping[str, str | None], *, only_checks: bool
) -> None:
    """Set settings of a resource; None takes one away, so that the default holds.

    `only_checks`: the changes are checked and not made. Raises KafkaError, OSError, ProtocolError,
    ConfigError, BrokerRefusedError.
    """
    try:
        request, response = _incremental(resource, changes, only_checks=only_checks)
        answer = _ask(client, resource, request, response, ALTER_VERSIONS)
    except BrokerRefusedError:  # if it is the login, the next call raises it, too
        request, response = _whole(client, resource, changes, only_checks=only_checks)
        answer = _ask(client, resource, request, response, OLD_ALTER_VERSIONS)
    result = part_of({result.resource_name: result for result in answer.responses}, resource.name)
    if result.error_code:
        raise KafkaError(ErrorCode(result.error_code), result.error_message)


def _incremental(
    resource: Resource, changes: Mapping[str, str | None], *, only_checks: bool
) -> tuple[Any, Any]:
    configs = [
        incremental_alter_configs.AlterableConfig(
            name=name, config_operation=_DELETE if value is None else _SET, value=value
        )
        for name, value in changes.items()
    ]
    altered = incremental_alter_configs.AlterConfigsResource(
        resource_type=resource.kind, resource_name=resource.name, configs=configs
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[altered], validate_only=only_checks
    )
    return request, incremental_alter_configs.IncrementalAlterConfigsResponse


def _whole(
    client: Client, resource: Resource, changes: Mapping[str, str | None], *, only_checks: bool
) -> tuple[Any, Any]:
    """Return the request of a broker before Kafka 2.3, which takes all settings of a resource."""
    own: dict[str, str | None] = {
        setting.name: setting.value
        for setting in settings_of(client, resource)
        if setting.source in OWN_SOURCES[resource.kind]
    }
    configs = [
        alter_configs.AlterableConfig(name=name, value=value)
        for name, value in (own | dict(changes)).items()
        if value is not None
    ]
    altered = alter_configs.AlterConfigsResource(
        resource_type=resource.kind, resource_name=resource.name, configs=configs
    )
    request = alter_configs.AlterConfigsRequest(resources=[altered], validate_only=only_checks)
    return request, alter_configs.AlterConfigsResponse


def _ask(
    client: Client,
    resource: Resource,
    request: Any | VersionedRequest,
    response: Any,
    versions: tuple[int, int],
) -> Any:
    """Return the answer of a broker that knows the resource: the settings of one broker are asked
    of that broker.
    """
    if resource.kind == BROKER and resource.name:
        address = client.broker_addresses().get(int(resource.name))
        if address is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {resource.name}")
        return client.ask(address, request, response, versions)
    return client.ask_any(request, response, versions)


def _source(setting: Any, kind: int) -> int:
    """Return the source of a value; before Kafka 1.1 an answer tells only whether it is set."""
    if setting.config_source > _UNKNOWN_SOURCE:
        return int(setting.config_source)
    return DEFAULT if setting.is_default else min(OWN_SOURCES[kind])
