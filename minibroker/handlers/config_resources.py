"""What the four config APIs share: kinds of resources, where each is kept, what may be set on it.

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

from minibroker.cluster.cluster import MIN_INSYNC_REPLICAS
from minibroker.cluster.features import ELIGIBLE_LEADER_REPLICAS
from minibroker.cluster.paths import DEFAULT_ENTITY, sanitize
from minibroker.config.alterations import check_broker_values
from minibroker.config.topic import validate_topic_config
from minibroker.error_codes import ErrorCode
from minibroker.errors import ConfigError, KafkaError, as_answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from minibroker.handlers.context import Services

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32

_KNOWN_SINCE: Final = {BROKER_LOGGER: (2, 4), CLIENT_METRICS: (4, 0), GROUP: (4, 0)}
"""Kind → the release whose brokers have it. Kafka 3.7 to 3.9 have client metrics and groups too,
but not with ZooKeeper, which these releases stand for here."""

_INT32_DIGITS_MAX: Final = 10
_ENTITY_TYPES: Final = {
    TOPIC: "topics",
    BROKER: "brokers",
    CLIENT_METRICS: "client-metrics",
    GROUP: "groups",
}


def invalid_request(detail: str) -> KafkaError:
    """The error to raise for a request that makes no sense, with the reason."""
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)


def is_known_kind(services: Services, resource_type: int) -> bool:
    """Return whether the release that this broker passes for has such resources.

    That is `minibroker.advertised.kafka.version`; without it every kind is known.
    """
    release = services.config.advertised_kafka_version
    if release is None:
        return True
    return tuple(map(int, release.split("."))) >= _KNOWN_SINCE.get(resource_type, (0,))


def entity_of(resource_type: int, resource_name: str) -> tuple[str, str]:
    """A kept resource → entity type and name in the tree."""
    if resource_type == BROKER and not resource_name:
        return "brokers", DEFAULT_ENTITY
    return _ENTITY_TYPES[resource_type], sanitize(resource_name)


def current_values(services: Services, resource_type: int, resource_name: str) -> dict[str, str]:
    """A kept resource's own values, as the tree has them."""
    return dict(services.cluster.config_of(*entity_of(resource_type, resource_name)))


def check_names(names: Iterable[str], without_value: Iterable[str]) -> None:
    """A key stands once, and has a value where it needs one. Raises INVALID_REQUEST."""
    listed = list(names)
    if len(set(listed)) != len(listed):
        raise invalid_request("Error due to duplicate config keys")
    missing = list(without_value)
    if missing:
        raise invalid_request(f"Null value not supported for : {', '.join(missing)}")


def check_resource(services: Services, resource_type: int, resource_name: str) -> None:
    """May this resource be altered here at all? Raises KafkaError."""
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
    """A broker resource of this API is this broker. Raises INVALID_REQUEST."""
    broker_id = services.config.broker_id
    asked = int32_of(text)
    if asked is None:
        raise invalid_request(f"{complaint}{text}")
    if asked != broker_id:
        raise invalid_request(f"Unexpected broker id, expected {broker_id}, but received {text}")


def int32_of(text: str) -> int | None:
    """The number that Java's Integer.valueOf reads; None for what is none, or does not fit."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isdecimal() or len(digits.lstrip("0")) > _INT32_DIGITS_MAX:
        return None
    number = int(digits.lstrip("0") or "0") * (-1 if text[0] == "-" else 1)
    return number if -(2**31) <= number < 2**31 else None


def check_values(
    services: Services, resource_type: int, resource_name: str, values: Mapping[str, str]
) -> None:
    """Would these be good as all the resource's own values? Raises KafkaError.

    Kafka refuses a broker's bad value as INVALID_REQUEST (KAFKA-13609), a topic's as
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
            from minibroker.config.entity_keys import validate_group_config  # noqa: PLC0415  rare

            validate_group_config(values, broker)
        else:
            _check_client_metrics(values)
    except ConfigError as error:
        raise KafkaError(code, str(error)) from None


def check_min_insync_replicas(
    services: Services, resource_type: int, resource_name: str, changes: Mapping[str, str | None]
) -> None:
    """Check changes (None takes a value away) while eligible leader replicas are in force.

    Then `min.insync.replicas` is the cluster's, never a broker's. Raises INVALID_CONFIG.
    Source: Kafka ConfigurationControlManager.
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
    from minibroker.config.entity_keys import (  # noqa: PLC0415  rare
        CLIENT_METRICS_KEYS,
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
    """(type, name) of the resources that one request names more than once."""
    seen: set[tuple[int, str]] = set()
    twice: set[tuple[int, str]] = set()
    for resource in resources:
        (twice if resource in seen else seen).add(resource)
    return twice


REPEATED_DETAIL: Final = "Each resource must appear at most once."


async def answer_each(
    resources: Iterable[Any], answer_class: Any, alter: Callable[[Any], Awaitable[None]]
) -> list[Any]:
    """Alter one resource after the other; one answer each, in the order of the request.

    `resources` and `answer_class` are an API's own AlterConfigsResource and its answer, which have
    the same fields in AlterConfigs and IncrementalAlterConfigs. A resource named twice is refused.
    """
    resources = list(resources)
    twice = repeated((one.resource_type, one.resource_name) for one in resources)
    answers = []
    for resource in resources:
        code, message = 0, None
        try:
            if (resource.resource_type, resource.resource_name) in twice:
                raise invalid_request(REPEATED_DETAIL)
            await alter(resource)
        except Exception as error:
            code, message = as_answer(error, f"configuration of {resource.resource_name}")
        answers.append(_answer(answer_class, resource, code, message))
    return answers


def refuse_each(
    resources: Iterable[Any], answer_class: Any, code: ErrorCode, detail: str | None
) -> list[Any]:
    """The same error for every resource of a request; classes as for `answer_each`."""
    return [_answer(answer_class, resource, int(code), detail) for resource in resources]


def _answer(answer_class: Any, resource: Any, code: int, message: str | None) -> Any:
    return answer_class(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
