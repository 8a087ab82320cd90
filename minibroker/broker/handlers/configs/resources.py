"""Parts of the four config APIs: the kinds of resources, where each is kept, which values it takes.

    type  resource         kept in the tree under          its own values are described as
    2     topic            /config/topics/NAME             1
    4     broker           /config/brokers/ID, <default>   2 and 3
    8     broker logger    nowhere (this process only)     6
    16    client metrics   /config/client-metrics/NAME     7
    32    group            /config/groups/NAME             8

Source: Kafka ConfigAdminManager, ZkAdminManager, ControllerConfigurationValidator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.cluster import MIN_INSYNC_REPLICAS
from minibroker.broker.cluster.features import ELIGIBLE_LEADER_REPLICAS
from minibroker.broker.cluster.paths import DEFAULT_ENTITY, sanitize
from minibroker.broker.config.alterations import check_broker_values
from minibroker.broker.config.keys import CLIENT_METRICS_KEYS
from minibroker.broker.config.topic import validate_topic_config
from minibroker.broker.handlers.common.permissions import REFUSALS
from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError, as_answer
from minibroker.kafka.java_numbers import parse_integer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from minibroker.broker.handlers.common.context import RequestContext, Services

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32

_KNOWN_SINCE: Final = {BROKER_LOGGER: (2, 4), CLIENT_METRICS: (4, 0), GROUP: (4, 0)}
"""Kind → first release whose brokers have it. Kafka 3.7 to 3.9 have client metrics and groups with
KRaft only; here these releases stand for Kafka with ZooKeeper."""

_ENTITY_TYPES: Final = {
    TOPIC: "topics",
    BROKER: "brokers",
    CLIENT_METRICS: "client-metrics",
    GROUP: "groups",
}


def invalid_request(detail: str) -> KafkaError:
    """Return the INVALID_REQUEST error with this reason."""
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)


_AUTHORIZED_AS: Final = {
    TOPIC: ResourceType.TOPIC,
    GROUP: ResourceType.GROUP,
    BROKER: ResourceType.CLUSTER,
    BROKER_LOGGER: ResourceType.CLUSTER,
    CLIENT_METRICS: ResourceType.CLUSTER,
}
"""Kind of resource → the type of resource that permissions are about."""


def check_permission(
    context: RequestContext, operation: Operation, resource_type: int, resource_name: str
) -> None:
    """Raise KafkaError if the client may not do this to the configuration of the resource. A kind
    that is not known is refused later.
    """
    kind = _AUTHORIZED_AS.get(resource_type)
    if kind is None:
        return
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else resource_name
    if not context.authorize(operation, kind, name):
        code = REFUSALS[kind]
        is_untold = kind is ResourceType.CLUSTER and operation is Operation.ALTER_CONFIGS
        raise KafkaError(code, None if is_untold else code.meaning)


def is_known_kind(services: Services, resource_type: int) -> bool:
    """Return whether the advertised Kafka release has this kind of resource.

    Without `minibroker.advertised.kafka.version` every kind is known.
    """
    release = services.config.advertised_kafka_version
    if release is None:
        return True
    return tuple(map(int, release.split("."))) >= _KNOWN_SINCE.get(resource_type, (0,))


def entity_of(resource_type: int, resource_name: str) -> tuple[str, str]:
    """Return entity type and entity name in the tree of a resource that is kept there."""
    if resource_type == BROKER and not resource_name:
        return "brokers", DEFAULT_ENTITY
    return _ENTITY_TYPES[resource_type], sanitize(resource_name)


def current_values(services: Services, resource_type: int, resource_name: str) -> dict[str, str]:
    """Return a copy of the resource's own values in the tree."""
    return dict(services.cluster.config_of(*entity_of(resource_type, resource_name)))


def check_names(names: Iterable[str], without_value: Iterable[str]) -> None:
    """Raise INVALID_REQUEST if a key is named twice, or if one of `without_value` needs a value."""
    names_in_order = list(names)
    if len(set(names_in_order)) != len(names_in_order):
        raise invalid_request("Error due to duplicate config keys")
    missing = list(without_value)
    if missing:
        raise invalid_request(f"Null value not supported for : {', '.join(missing)}")


def check_resource(services: Services, resource_type: int, resource_name: str) -> None:
    """Raise KafkaError if this broker cannot alter the resource."""
    if resource_type == BROKER:
        if resource_name:
            check_broker_id(services, resource_name, "Node id must be an integer, but it is: ")
    elif resource_type == TOPIC:
        if not resource_name:
            raise invalid_request("Default topic resources are not allowed.")
        if resource_name not in services.cluster.image.topics:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource_name}' does not exist."
            )
    elif resource_type == CLIENT_METRICS:
        if not is_known_kind(services, CLIENT_METRICS):
            raise invalid_request(
                "AlterConfigs is only supported for topics and brokers, but resource type is"
                " CLIENT_METRICS"
            )
        if not resource_name:
            raise invalid_request("Subscription name can't be empty")
    elif resource_type == GROUP and is_known_kind(services, GROUP):
        if not resource_name:
            raise invalid_request("Default group resources are not allowed.")
    else:
        raise invalid_request(f"Unknown resource type {resource_type}")


def check_broker_id(services: Services, text: str, complaint: str) -> None:
    """Raise INVALID_REQUEST if `text` is not the id of this broker."""
    broker_id = services.config.broker_id
    asked_id = parse_integer(text, 32)
    if asked_id is None:
        raise invalid_request(f"{complaint}{text}")
    if asked_id != broker_id:
        raise invalid_request(f"Unexpected broker id, expected {broker_id}, but received {text}")


def check_values(
    services: Services, resource_type: int, resource_name: str, values: Mapping[str, str]
) -> None:
    """Raise KafkaError if these may not be all the resource's own values.

    Kafka refuses a bad value of a broker with INVALID_REQUEST (KAFKA-13609), one of a topic with
    INVALID_CONFIG.
    """
    broker = services.dynamic.broker
    code = ErrorCode.INVALID_REQUEST if resource_type == BROKER else ErrorCode.INVALID_CONFIG
    try:
        if resource_type == TOPIC:
            validate_topic_config(values, broker)
        elif resource_type == BROKER:
            check_broker_values(services.dynamic, values, per_broker=bool(resource_name))
        elif resource_type == GROUP:
            from minibroker.broker.config.entities import validate_group_config  # noqa: PLC0415  rare

            validate_group_config(values, broker)
        else:
            _check_client_metrics(values)
    except ConfigError as error:
        raise KafkaError(code, str(error)) from None


def check_min_insync_replicas(
    services: Services, resource_type: int, resource_name: str, changes: Mapping[str, str | None]
) -> None:
    """Raise INVALID_CONFIG for a change of `min.insync.replicas` that eligible leader replicas
    forbid.

    While that feature is in force, only the whole cluster has the setting, and keeps it. A change
    to None removes the value. Source: Kafka ConfigurationControlManager.
    """
    if resource_type != BROKER or MIN_INSYNC_REPLICAS not in changes:
        return
    if not services.features.level(ELIGIBLE_LEADER_REPLICAS):
        return
    if resource_name:
        reason = f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled."
    elif changes[MIN_INSYNC_REPLICAS] is None:
        reason = f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled."
    else:
        return
    raise KafkaError(ErrorCode.INVALID_CONFIG, reason)


def _check_client_metrics(values: Mapping[str, str]) -> None:
    from minibroker.broker.config.entities import (  # noqa: PLC0415  rare
        check_push_interval,
        parse_match,
    )

    for name in values:
        if name not in CLIENT_METRICS_KEYS:
            raise invalid_request(f"Unknown client metrics configuration: {name}")
    complaint = check_push_interval(values)
    if complaint is not None:
        raise invalid_request(complaint)
    patterns = values.get("match", "")
    parse_match([item.strip() for item in patterns.split(",")] if patterns.strip() else [])


def repeated(resources: Iterable[tuple[int, str]]) -> set[tuple[int, str]]:
    """Return the (type, name) of each resource that occurs more than once."""
    first: set[tuple[int, str]] = set()
    twice: set[tuple[int, str]] = set()
    for resource in resources:
        (twice if resource in first else first).add(resource)
    return twice


REPEATED_DETAIL: Final = "Each resource must appear at most once."


async def answer_each(
    resources: Iterable[Any], answer_class: Any, alter: Callable[[Any], Awaitable[None]]
) -> list[Any]:
    """Alter the resources one after the other; return one result each, in the order of the request.

    `resources` and `answer_class` are the classes AlterConfigsResource and its response of
    AlterConfigs or of IncrementalAlterConfigs; both have the same fields. A resource that is named
    twice is refused.
    """
    resources = list(resources)
    twice = repeated((resource.resource_type, resource.resource_name) for resource in resources)
    answers = []
    turn = TimeSlice()
    for resource in resources:
        if turn.is_over:
            await turn.pause()
        code, message = 0, None
        try:
            if (resource.resource_type, resource.resource_name) in twice:
                raise invalid_request(REPEATED_DETAIL)
            await alter(resource)
        except Exception as error:
            code, message = as_answer(error, f"configuration of {resource.resource_name}")
        answers.append(
            answer_class(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return answers
