"""Quota entities as the two APIs name them, and the nodes and texts that they are stored as.

An entity is a user, a client id, both, or an IP; a null name is the default one. No I/O.

Source: Kafka ZkAdminManager (alterClientQuotas, describeClientQuotas), DynamicConfig;
ClientQuotaControlManager for values that are not above 0, which Kafka 3.9 stores and 4 refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster.paths import DEFAULT_ENTITY, desanitize, sanitize
from minibroker.broker.quotas.limits import (
    CLIENT_KEYS,
    CONNECTION_RATE,
    FETCH,
    MUTATION,
    PRODUCE,
    REQUEST,
    split_entity,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.java_numbers import double_to_text, parse_double

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_TYPES: Final = (CLIENT_ID, USER, IP)
"""In the order in which Kafka's answers name them."""

EXACT, DEFAULT, ANY = 0, 1, 2
"""Match types of DescribeClientQuotas."""

_CLIENT_TYPES: Final = {PRODUCE: "LONG", FETCH: "LONG", REQUEST: "DOUBLE", MUTATION: "DOUBLE"}
_IP_TYPES: Final = {CONNECTION_RATE: "INT"}
_HIGHEST: Final = {"INT": 2**31 - 1, "LONG": 2**63 - 1}
_EPSILON: Final = 1e-6

Entity = dict[str, str | None]
"""Entity type → name; None: the default entity."""


class EntityNode(NamedTuple):
    """Place of an entity's quotas in the tree: /config/<entity_type>/<entity_name>."""

    entity_type: str
    entity_name: str
    key_types: Mapping[str, str]
    """The keys that the entity may have, and their types."""


class Component(NamedTuple):
    """One condition of a DescribeClientQuotas filter."""

    entity_type: str
    match_type: int
    name: str | None


def node_of(entity: Entity) -> EntityNode:
    """Return the node of an entity; whether an IP exists is not looked at. Raises KafkaError."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for entity_type, name in entity.items():
        if entity_type not in _TYPES:
            raise _invalid(f"Unhandled client quota entity type: {entity_type}")
        if name == "":
            raise _invalid(f"Empty {entity_type} not supported")
    if IP in entity:
        if len(entity) > 1:
            raise _invalid(
                "Invalid quota entity combination, IP entity should not be used with"
                " user/client ID entity."
            )
        return EntityNode("ips", _entity_name(entity[IP]), _IP_TYPES)
    if USER not in entity:
        return EntityNode("clients", _entity_name(entity[CLIENT_ID]), _CLIENT_TYPES)
    user = _entity_name(entity[USER])
    if CLIENT_ID not in entity:
        return EntityNode("users", user, _CLIENT_TYPES)
    return EntityNode("users", f"{user}/clients/{_entity_name(entity[CLIENT_ID])}", _CLIENT_TYPES)


def parts(entity: Entity) -> list[tuple[str, str | None]]:
    """Return type and name of each part, in the order of Kafka's answers."""
    own_parts = [(kind, entity[kind]) for kind in _TYPES if kind in entity]
    return own_parts + [(kind, name) for kind, name in entity.items() if kind not in _TYPES]


def changes_of(
    operations: Iterable[tuple[str, float | None]], key_types: Mapping[str, str]
) -> dict[str, str | None]:
    """Return key → text to store, None to remove it. Raises KafkaError for a wrong value."""
    changes: dict[str, str | None] = {}
    for key, value in operations:
        if value is None:
            changes[key] = None
            continue
        if key in key_types and not value > 0:  # nor NaN
            raise _invalid(f"Quota {key} must be greater than 0")
        changes[key] = text_of(key, value, key_types)
    return changes


def text_of(key: str, value: float, key_types: Mapping[str, str]) -> str:
    """Return the text to store for a quota, which may be 0 or less. Raises KafkaError."""
    key_type = key_types.get(key)
    if key_type is None:
        raise _invalid(f"Invalid configuration key {key}")
    if key_type == "DOUBLE":
        return double_to_text(value)
    if not abs(value) <= float(_HIGHEST[key_type]):  # nor NaN; as Kafka, which compares doubles
        raise _invalid(f"Proposed value for {key} is too large for a {key_type}.")
    whole = round(value)
    if abs(whole - value) > _EPSILON:
        raise _invalid(f"Configuration {key} must be a {key_type} value")
    return str(min(whole, _HIGHEST[key_type]))


def matching_entities(
    configs: Mapping[str, Mapping[str, Mapping[str, str]]],
    components: Sequence[Component],
    *,
    strict: bool,
) -> Iterator[tuple[Entity, dict[str, float]]]:
    """Yield the entities of the tree that match the filter, each with its quotas.

    `configs` is entity type → name → key → value. With `strict`, an entity has no type that the
    filter does not name. Raises KafkaError(INVALID_REQUEST or UNSUPPORTED_VERSION) for a filter
    that is not valid.
    """
    conditions = _components_by_type(components)
    if IP not in conditions:
        for entity_type in ("clients", "users"):
            for name, config in configs.get(entity_type, {}).items():
                user, client = split_entity(entity_type, name)
                entity: Entity = {}
                if user is not None:
                    entity[USER] = _client_name(user)
                if client is not None:
                    entity[CLIENT_ID] = _client_name(client)
                quotas = _quotas(config, CLIENT_KEYS)
                if quotas and _matches(entity, conditions, strict=strict):
                    yield entity, quotas
    if not conditions.keys() & {USER, CLIENT_ID}:
        for name, config in configs.get("ips", {}).items():
            entity = {IP: _client_name(name)}
            quotas = _quotas(config, (CONNECTION_RATE,))
            if quotas and _matches(entity, conditions, strict=strict):
                yield entity, quotas


def _components_by_type(components: Sequence[Component]) -> dict[str, Component]:
    conditions: dict[str, Component] = {}
    for component in components:
        entity_type = component.entity_type
        if not entity_type:
            raise _invalid("Unexpected empty filter component entity type")
        if entity_type not in _TYPES:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{entity_type}' not supported"
            )
        if entity_type in conditions:
            name = "client" if entity_type == CLIENT_ID else entity_type
            raise _invalid(f"Duplicate {name} filter component entity type")
        if not EXACT <= component.match_type <= ANY:
            raise _invalid(f"Unexpected match type: {component.match_type}")
        conditions[entity_type] = component
    if IP in conditions and len(conditions) > 1:
        raise _invalid(
            "Invalid entity filter component combination, IP filter component should not be used"
            " with user or clientId filter component."
        )
    return conditions


def _matches(entity: Entity, conditions: Mapping[str, Component], *, strict: bool) -> bool:
    if strict and entity.keys() - conditions.keys():
        return False
    for entity_type, component in conditions.items():
        if entity_type not in entity:
            return False
        if component.match_type == ANY:
            continue
        expected_name = component.name if component.match_type == EXACT else None
        if entity[entity_type] != expected_name:
            return False
    return True


def _quotas(config: Mapping[str, str], keys: Iterable[str]) -> dict[str, float]:
    """Return the quotas among the values of a node. A user's node keeps SCRAM credentials too."""
    quotas = {}
    for key in keys:
        text = config.get(key)
        if text is not None:
            try:
                quotas[key] = parse_double(text)
            except ValueError:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"Unexpected client quota configuration value: {key} -> {text}",
                ) from None
    return quotas


def _entity_name(name: str | None) -> str:
    return DEFAULT_ENTITY if name is None else sanitize(name)


def _client_name(entity_name: str) -> str | None:
    return None if entity_name == DEFAULT_ENTITY else desanitize(entity_name)


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)
