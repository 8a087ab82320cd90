"""DescribeConfigs: key 32, versions 0-4.

Behaviour: returns every setting of a topic, of this broker, of its loggers, of a client metrics
subscription or of a group. An empty broker name asks for the dynamic values of the whole cluster.
Each setting has its value, its source, and whether it may change. On request it has the values of
lower precedence and a documentation. Secrets have no value.

Versions:
- 1: source and synonyms instead of a default flag (KIP-226)
- 3: type and documentation (KIP-569)
- 4: flexible

The default flag of version 0 is never set, as in Kafka 3.9.

Differs from Kafka: groups and client metrics are described as in Kafka 4. The listeners of a broker
and the security settings that are not served (`config/unserved.py`) are read-only, because this
broker refuses to alter them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.topics import check_topic_name
from minibroker.broker.config.describe import (
    BROKER_LOGGER_SOURCE,
    broker_entries,
    client_metrics_entries,
    cluster_default_entries,
    documentation_of,
    group_entries,
    topic_entries,
)
from minibroker.broker.handlers.common.encoded_struct import EncodedStruct
from minibroker.broker.handlers.configs.resources import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    check_broker_id,
    check_permission,
    current_values,
    invalid_request,
    is_known_kind,
)
from minibroker.broker.security.acls import Operation
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, as_answer
from minibroker.kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from minibroker.broker.config.entries import ConfigEntry
    from minibroker.broker.handlers.common.context import RequestContext, Services
    from minibroker.broker.slices import Steps

TYPE_CODES: Final = {
    "": 0,
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}
FEW: Final = 4
"""Most results that are not encoded one by one; each takes 0.1 to 0.3 ms, a broker more."""
_SCOPES: Final = {
    TOPIC: "topic",
    BROKER: "broker",
    CLIENT_METRICS: "client-metrics",
    GROUP: "group",
}


def handle(
    context: RequestContext, request: DescribeConfigsRequest
) -> Steps[DescribeConfigsResponse]:
    """Return one result per resource, in the order of the request. A resource that is named twice
    is described twice, as in Kafka, from the same result; of many, each result is bytes already.
    """
    is_encoded = len(request.resources) > FEW
    results: list[Any] = []
    described: dict[tuple[object, ...], Any] = {}
    for resource in request.resources:
        keys = resource.configuration_keys
        wish = resource.resource_type, resource.resource_name, None if keys is None else tuple(keys)
        if wish not in described:
            result = _describe(context, resource, request)
            described[wish] = (
                EncodedStruct(result, context.version, result.error_code) if is_encoded else result
            )
        results.append(described[wish])
        yield
    return DescribeConfigsResponse(results=results)


def _describe(
    context: RequestContext, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    """Return the result of one resource."""
    services = context.services
    # Kafka sends an empty message, not null.
    code, message = 0, ""
    configs: list[DescribeConfigsResourceResult] = []
    try:
        check_permission(
            context, Operation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name
        )
        if resource.resource_type == BROKER_LOGGER and is_known_kind(services, BROKER_LOGGER):
            configs = _describe_loggers(services, resource)
        else:
            entries = _entries(services, resource)
            configs = [_result(entry, resource, request) for entry in entries]
    except Exception as error:
        code, detail = as_answer(error, f"configuration of {resource.resource_name}")
        message = detail or ""
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def _entries(services: Services, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    """Return the settings of any resource but a logger. Raises KafkaError."""
    kind, name = resource.resource_type, resource.resource_name
    names = resource.configuration_keys or None  # an empty list asks for all settings, like null
    dynamic = services.dynamic
    if kind == TOPIC:
        check_topic_name(name)
        if name not in services.cluster.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic_entries(dynamic, current_values(services, kind, name), names)
    if kind == BROKER:
        if not name:
            return cluster_default_entries(dynamic, names)
        check_broker_id(services, name, "Broker id must be an integer, but it is: ")
        return broker_entries(dynamic, names)
    if kind == CLIENT_METRICS:
        if not name:
            raise invalid_request("Client metrics subscription name must not be empty")
        if not is_known_kind(services, CLIENT_METRICS):
            raise invalid_request("Config type client-metrics is only supported on KRaft clusters")
        return client_metrics_entries(current_values(services, kind, name), names)
    if kind == GROUP and is_known_kind(services, GROUP):
        if not name:
            raise invalid_request("Group name must not be empty")
        return group_entries(dynamic, current_values(services, kind, name), names)
    raise invalid_request(f"Unsupported resource type: {kind}")


def _result(
    entry: ConfigEntry,
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        config_type=TYPE_CODES[entry.type],
        documentation=None,
    )
    if request.include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(name=layer.name, value=layer.value, source=layer.source)
            for layer in entry.layers
        ]
    if request.include_documentation:
        result.documentation = documentation_of(_SCOPES[resource.resource_type], entry.name)
    return result


def _describe_loggers(
    services: Services, resource: DescribeConfigsResource
) -> list[DescribeConfigsResourceResult]:
    """Return the levels of this process's loggers. Raises KafkaError."""
    from minibroker.broker.handlers.configs.loggers import levels  # noqa: PLC0415  rare

    name, names = resource.resource_name, resource.configuration_keys
    if not name:
        raise invalid_request("Broker id must not be empty")
    check_broker_id(services, name, "Broker id must be an integer, but it is: ")
    return [
        DescribeConfigsResourceResult(name=logger, value=level, config_source=BROKER_LOGGER_SOURCE)
        for logger, level in levels().items()
        if not names or logger in names
    ]
