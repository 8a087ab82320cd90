"""The JSON of the tree's nodes, in Kafka 3.9's versions and key order; bytes ↔ plain values.

Readers take what any Kafka since 0.8 wrote: unknown keys are ignored, absent ones have defaults.
They raise CoordinationError, naming the path, for bytes that are not such JSON.

Source: Kafka's ZkData (encode and decode of each znode); layouts compared with a tree that
Kafka 3.9.1 wrote (`tests/integration/test_zookeeper_kafka.py`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.cluster.image import BrokerInfo, Endpoint
from minibroker.broker.slices import collect
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.ids import TopicPartition, topic_id_from_text, topic_id_to_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from minibroker.kafka.ids import TopicId

_MARK: Final = "minibroker"
"""Key of our own in a broker's registration: other brokers see who is not Kafka."""
PRODUCER_ID_MAX: Final = 2**63 - 1
_KNOWN_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_REPLICAS_OF_TOPIC: Final = ("partitions", "adding_replicas", "removing_replicas")
_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_NO_CONFIG: Final = b'{"version":1,"config":{}}'
FEATURE_NODE: Final = b'{"features":{},"version":2,"status":1}'
_OUR_FEATURES: Final = "minibroker_features"


class TopicAssignment:
    """Value of /brokers/topics/<topic>: partition index → broker ids. Constant."""

    __slots__ = ("adding", "removing", "replicas", "topic_id")

    def __init__(
        self,
        topic_id: TopicId | None,
        replicas: dict[int, list[int]],
        adding: dict[int, list[int]],
        removing: dict[int, list[int]],
    ) -> None:
        self.topic_id = topic_id
        """None in a node that Kafka before 2.8 wrote."""
        self.replicas = replicas
        self.adding = adding
        self.removing = removing


class PartitionState(NamedTuple):
    """Value of …/partitions/<n>/state."""

    leader: int
    """Broker id, -1 when no replica can lead."""
    leader_epoch: int
    isr: list[int]
    controller_epoch: int
    recovery: int = 0
    """RECOVERING after an unclean election, until the leader changes the ISR (KIP-704)."""


RECOVERING: Final = 1


class ProducerIdBlock:
    """Value of /latest_producer_id_block; both ends inclusive. Constant."""

    __slots__ = ("broker_id", "first", "last")

    def __init__(self, broker_id: int, first: int, last: int) -> None:
        self.broker_id = broker_id
        self.first = first
        self.last = last


def _dump(value: Any) -> bytes:
    return _encode(value).encode("utf-8")


def load_json(data: bytes) -> Any:
    """Return the value that a node holds as JSON. Raises ValueError."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("values are nested too deep") from None


def _load(path: str, data: bytes) -> dict[str, Any]:
    try:
        value = load_json(data)
    except ValueError as error:
        raise CoordinationError(f"{path} of the metadata tree is not JSON: {data!r}") from error
    if not isinstance(value, dict):
        raise CoordinationError(f"{path} of the metadata tree holds {data!r}, expected an object")
    return value


def _error_of(path: str, data: bytes, error: Exception) -> CoordinationError:
    return CoordinationError(f"{path} of the metadata tree cannot be read: {data!r} ({error!r})")


# Brokers


def encode_broker(info: BrokerInfo, timestamp_ms: int) -> bytes:
    """Encode a registration, version 5. Host and port repeat the first PLAINTEXT endpoint, if any.

    Kafka passes over our mark: its reader takes the keys that it knows.
    """
    plain = next(
        (endpoint for endpoint in info.endpoints if endpoint.security_protocol == "PLAINTEXT"), None
    )
    value: dict[str, Any] = {
        "features": {},
        "listener_security_protocol_map": {
            endpoint.listener: endpoint.security_protocol for endpoint in info.endpoints
        },
        "endpoints": [_endpoint_to_text(endpoint) for endpoint in info.endpoints],
    }
    if info.rack is not None:
        value["rack"] = info.rack
    value |= {
        "jmx_port": -1,
        "port": plain.port if plain else -1,
        "host": plain.host if plain else None,
        "version": 5,
        "timestamp": str(timestamp_ms),
    }
    if info.is_minibroker:
        value[_MARK] = True
    return _dump(value)


def decode_broker(path: str, broker_id: int, data: bytes, epoch: int) -> BrokerInfo:
    """Return the registration in a node of any version ≥ 1. Kafka 0.8 wrote host and port only."""
    value = _load(path, data)
    try:
        texts = value.get("endpoints") or [f"PLAINTEXT://{value['host']}:{value['port']}"]
        protocols = value.get("listener_security_protocol_map") or {}
        endpoints = tuple(_endpoint_from_text(text, protocols) for text in texts)
        is_minibroker = value.get(_MARK) is True
        return BrokerInfo(broker_id, endpoints, value.get("rack"), epoch, is_minibroker)
    except (KeyError, TypeError, ValueError) as error:
        raise _error_of(path, data, error) from error


def _endpoint_to_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _endpoint_from_text(text: str, protocols: Mapping[str, str]) -> Endpoint:
    listener, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not separator or not colon:
        raise ValueError(f"not an endpoint: {text!r}")
    listener = listener.upper()
    fallback = listener if listener in _KNOWN_PROTOCOLS else "PLAINTEXT"
    return Endpoint(listener, host.strip("[]"), int(port), protocols.get(listener, fallback))


# Topics


def encode_topic(
    topic_id: TopicId | None,
    replicas: Sequence[Sequence[int]],
    adding: Mapping[int, Sequence[int]] | None = None,
    removing: Mapping[int, Sequence[int]] | None = None,
) -> bytes:
    """Return the assignment in version 3; `replicas` has one entry per partition, from 0."""
    return "".join(topic_pieces(topic_id, replicas, adding or {}, removing or {})).encode("ascii")


async def encode_large_topic(topic_id: TopicId | None, replicas: Sequence[Sequence[int]]) -> bytes:
    """Like `encode_topic`, but in slices of the loop's time: for thousands of partitions."""
    return "".join(await collect(topic_pieces(topic_id, replicas, {}, {}))).encode("ascii")


def topic_pieces(
    topic_id: TopicId | None,
    replicas: Sequence[Sequence[int]],
    adding: Mapping[int, Sequence[int]],
    removing: Mapping[int, Sequence[int]],
) -> Iterator[str]:
    """Yield the JSON of an assignment, a partition at a time."""
    yield '{"partitions":'
    yield from _pieces_by_index(enumerate(replicas))
    if topic_id is not None:
        yield f',"topic_id":"{topic_id_to_text(topic_id)}"'
    if adding or removing:
        yield ',"adding_replicas":'
        yield from _pieces_by_index(adding.items())
        yield ',"removing_replicas":'
        yield from _pieces_by_index(removing.items())
        yield ',"version":3}'
    else:
        yield ',"adding_replicas":{},"removing_replicas":{},"version":3}'


def _pieces_by_index(entries: Iterable[tuple[int, Sequence[int]]]) -> Iterator[str]:
    separator = "{"
    for index, ids in entries:
        yield f'{separator}"{index}":[{",".join(map(str, ids))}]'
        separator = ","
    yield "}" if separator == "," else "{}"


def decode_topic(path: str, data: bytes) -> TopicAssignment:
    """Return the assignment in a node of version 1, 2 or 3."""
    value = _load(path, data)
    try:
        parts = [dict(_by_index(value.get(name))) for name in _REPLICAS_OF_TOPIC]
        return TopicAssignment(_topic_id_of(value), *parts)
    except (AttributeError, TypeError, ValueError) as error:
        raise _error_of(path, data, error) from error


async def decode_large_topic(path: str, data: bytes) -> TopicAssignment:
    """Like `decode_topic`, but in slices of the loop's time, all but the JSON: for thousands of
    partitions.
    """
    value = _load(path, data)
    try:
        parts = [dict(await collect(_by_index(value.get(name)))) for name in _REPLICAS_OF_TOPIC]
        return TopicAssignment(_topic_id_of(value), *parts)
    except (AttributeError, TypeError, ValueError) as error:
        raise _error_of(path, data, error) from error


def _topic_id_of(value: dict[str, Any]) -> TopicId | None:
    text = value.get("topic_id")
    return topic_id_from_text(text) if text else None


def _by_index(value: dict[str, list[int]] | None) -> Iterator[tuple[int, list[int]]]:
    for index, ids in (value or {}).items():
        yield int(index), [int(number) for number in ids]


def encode_state(state: PartitionState) -> bytes:
    """Return a partition state, version 1. A topic creation writes one per partition, so it is
    formatted by hand.
    """
    isr = ",".join(map(str, state.isr))
    recovery = f',"leader_recovery_state":{state.recovery}' if state.recovery else ""
    return (
        f'{{"controller_epoch":{state.controller_epoch},"leader":{state.leader},"version":1,'
        f'"leader_epoch":{state.leader_epoch},"isr":[{isr}]{recovery}}}'
    ).encode("ascii")


def decode_state(path: str, data: bytes) -> PartitionState:
    """Return the partition state in a node of version 1."""
    value = _load(path, data)
    try:
        return PartitionState(
            int(value["leader"]),
            int(value["leader_epoch"]),
            [int(broker_id) for broker_id in value["isr"]],
            int(value["controller_epoch"]),
            int(value.get("leader_recovery_state", 0)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _error_of(path, data, error) from error


# Configs


def encode_config(config: Mapping[str, str]) -> bytes:
    """Return the node of one entity's config, version 1."""
    return _dump({"version": 1, "config": dict(config)}) if config else _NO_CONFIG


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """Return the config of one entity; an empty value is an empty config."""
    if not data:
        return {}
    config = _load(path, data).get("config") or {}
    if not isinstance(config, dict):
        raise CoordinationError(f"{path} of the metadata tree holds {data!r}, expected a config")
    return {str(key): str(value) for key, value in config.items()}


def encode_config_change(entity_type: str, entity_name: str) -> bytes:
    """Return a notification, version 2."""
    return _dump({"version": 2, "entity_path": f"{entity_type}/{entity_name}"})


def decode_config_change(path: str, data: bytes) -> tuple[str, str]:
    """Return entity type and name of the notification in a node of version 1 or 2: which config to
    read again.
    """
    value = _load(path, data)
    try:
        if value["version"] == 1:
            return value["entity_type"], value["entity_name"]
        entity_type, separator, entity_name = value["entity_path"].partition("/")
        if not separator:
            raise ValueError("no entity name")
        return entity_type, entity_name
    except (AttributeError, KeyError, ValueError) as error:
        raise _error_of(path, data, error) from error


# Features


def encode_features(levels: Mapping[str, int]) -> bytes:
    """Return /feature, version 2: Kafka's own set is empty, ours stands beside it (`features`)."""
    value: dict[str, Any] = {"features": {}, "version": 2, "status": 1}
    if levels:
        value[_OUR_FEATURES] = {
            name: {"max_version_level": level} for name, level in levels.items()
        }
    return _dump(value)


def decode_features(path: str, data: bytes) -> dict[str, int]:
    """Return the levels in /feature of any version, whichever broker changed them."""
    value = _load(path, data)
    try:
        levels = {**(value.get("features") or {}), **(value.get(_OUR_FEATURES) or {})}
        return {str(name): int(entry["max_version_level"]) for name, entry in levels.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _error_of(path, data, error) from error


# Cluster id, controller, producer ids


def encode_cluster_id(cluster_id: str) -> bytes:
    """Return /cluster/id; the version is a string there."""
    return _dump({"version": "1", "id": cluster_id})


def decode_cluster_id(path: str, data: bytes) -> str:
    """Return the id in /cluster/id."""
    cluster_id = _load(path, data).get("id")
    if not isinstance(cluster_id, str):
        raise CoordinationError(
            f"{path} of the metadata tree holds {data!r}, expected a cluster id"
        )
    return cluster_id


def encode_log_dir_event(broker_id: int) -> bytes:
    """Return a node for /log_dir_event_notification: a log directory of this broker failed (event
    1).
    """
    return _dump({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(path: str, data: bytes) -> int:
    """Return the broker of a node under /log_dir_event_notification."""
    value = _load(path, data)
    try:
        return int(value["broker"])
    except (KeyError, TypeError, ValueError) as error:
        raise _error_of(path, data, error) from error


def decode_preferred_election(path: str, data: bytes) -> list[TopicPartition]:
    """Return the partitions in /admin/preferred_replica_election."""
    value = _load(path, data)
    try:
        return [
            TopicPartition(str(entry["topic"]), int(entry["partition"]))
            for entry in value["partitions"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise _error_of(path, data, error) from error


def decode_reassignment(path: str, data: bytes) -> dict[TopicPartition, list[int]]:
    """Return partition → wanted replicas, from /admin/reassign_partitions."""
    value = _load(path, data)
    try:
        return {
            TopicPartition(str(move["topic"]), int(move["partition"])): [
                int(broker_id) for broker_id in move["replicas"]
            ]
            for move in value["partitions"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise _error_of(path, data, error) from error


def encode_reassignment(moves: Mapping[TopicPartition, Sequence[int]]) -> bytes:
    """Return /admin/reassign_partitions with these moves."""
    entries = [
        {"topic": name.topic, "partition": name.partition, "replicas": list(replicas)}
        for name, replicas in moves.items()
    ]
    return _dump({"version": 1, "partitions": entries})


def encode_isr_change(partitions: Iterable[TopicPartition]) -> bytes:
    """Return a node of /isr_change_notification: leaders changed the ISR of these partitions."""
    entries = [{"topic": name.topic, "partition": name.partition} for name in partitions]
    return _dump({"version": 1, "partitions": entries})


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    """Return /controller, version 2. Its last field is for Kafka's migration to KRaft; -1: none."""
    return _dump(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(path: str, data: bytes) -> int:
    """Return the broker id in /controller of any version."""
    try:
        return int(_load(path, data)["brokerid"])
    except (KeyError, TypeError, ValueError) as error:
        raise _error_of(path, data, error) from error


def decode_controller_epoch(path: str, data: bytes) -> int:
    """Return the number in /controller_epoch."""
    try:
        return int(data)
    except ValueError as error:
        raise CoordinationError(
            f"{path} of the metadata tree holds {data!r}, expected a number"
        ) from error


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    """Return /latest_producer_id_block, version 1. The ends are strings, because JSON numbers end
    at 2**53.
    """
    return _dump(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first),
            "block_end": str(block.last),
        }
    )


def decode_producer_id_block(path: str, data: bytes) -> ProducerIdBlock | None:
    """Return the block in /latest_producer_id_block, None if none was taken yet (the node is
    empty).
    """
    if not data:
        return None
    value = _load(path, data)
    try:
        block = ProducerIdBlock(
            int(value["broker"]), int(value["block_start"]), int(value["block_end"])
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _error_of(path, data, error) from error
    if not 0 <= block.first <= block.last <= PRODUCER_ID_MAX:
        raise _error_of(path, data, ValueError("not a block of producer ids"))
    return block
