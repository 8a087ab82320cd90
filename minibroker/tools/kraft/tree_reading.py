"""The nodes of a tree → `Metadata`.

    /brokers/topics/T, …/partitions/N/state     topics; those marked in /admin/delete_topics not
    /config/TYPE/NAME                           settings, quotas, SCRAM credentials
    /kafka-acl…, /delegation_token              ACLs, tokens
    /feature, /latest_producer_id_block, /controller_epoch

Everything is decoded or refused: a node that cannot be read is an error, since Kafka would go on
without it. Settings of topics that do not exist are left out, and so are keys of a user's node that
are neither quotas nor credentials.

Source: Kafka ZkTopicMigrationClient, ZkConfigMigrationClient (a partition without a state has its
first replica as leader and all in sync), ZkMigrationClient.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import (
    PRODUCER_ID_MAX,
    RECOVERING,
    PartitionState,
    TopicAssignment,
    decode_config,
    decode_controller_epoch,
    decode_features,
    decode_producer_id_block,
    decode_reassignment,
    decode_state,
    decode_topic,
)
from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.features import initial_levels
from minibroker.broker.cluster.paths import DEFAULT_ENTITY
from minibroker.broker.cluster.reassignment import ReplicaAssignment, check_target
from minibroker.broker.config.dynamic import is_password
from minibroker.broker.quotas.entities import CLIENT_ID, IP, USER
from minibroker.broker.quotas.limits import CLIENT_KEYS, CONNECTION_RATE
from minibroker.broker.security import acl_nodes, token_nodes
from minibroker.broker.security.acl_entries import Acl
from minibroker.broker.security.password_encoder import (
    OLD_SECRET_KEY,
    SECRET_KEY,
    encoder_of,
    is_encoded,
)
from minibroker.kafka.errors import ConfigError, KafkaError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicPartition, topic_id_to_text
from minibroker.kafka.java_numbers import parse_double
from minibroker.kafka.scram import CODES, credential_of
from minibroker.tools.kraft.errors import TransferError
from minibroker.tools.kraft.metadata import (
    NO_ACL_ID,
    ConfigEntity,
    ConfigKind,
    Metadata,
    PartitionValue,
    TopicValue,
)
from minibroker.tools.kraft.tree_nodes import plain_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.security.acl_entries import Entry, Pattern
    from minibroker.broker.security.password_encoder import PasswordEncoder
    from minibroker.broker.security.tokens import Token
    from minibroker.kafka.ids import TopicId
    from minibroker.kafka.scram import ScramCredential
    from minibroker.tools.kraft.metadata import QuotaEntity
    from minibroker.tools.kraft.tree_nodes import TreeNodes

logger = logging.getLogger(__name__)

CONFIG_KINDS = {
    ConfigKind.TOPIC: "topics",
    ConfigKind.BROKER: "brokers",
    ConfigKind.CLIENT_METRICS: "client-metrics",
    ConfigKind.GROUP: "groups",
}
"""Kind → type of the entity below /config."""
_INT32_MAX = 2**31 - 1


def metadata_in(
    nodes: TreeNodes,
    config: BrokerConfig,
    topic_ids: Mapping[str, TopicId],
    *,
    is_shared: bool,
) -> Metadata:
    """Return the metadata of the nodes; see `tree.read_metadata`. Raises CoordinationError,
    TransferError, ConfigError.
    """
    topics = dict(_topics(nodes, topic_ids))
    return Metadata(
        topics=topics,
        configs={
            entity: values
            for entity, values in _configs(nodes, Passwords(config))
            if values and (entity.kind is not ConfigKind.TOPIC or entity.name in topics)
        },
        quotas={entity: quotas for entity, quotas in _quotas(nodes) if quotas},
        credentials=dict(_credentials(nodes)),
        acls={
            Acl(pattern, entry): NO_ACL_ID
            for pattern, entries in entries_by_pattern(nodes).items()
            for entry in entries
        },
        tokens=tokens_in(nodes),
        features=features_in(nodes, config, is_shared=is_shared),
        next_producer_id=next_producer_id_in(nodes),
        epoch=epoch_in(nodes),
    )


# Topics


def _topics(nodes: TreeNodes, topic_ids: Mapping[str, TopicId]) -> Iterator[tuple[str, TopicValue]]:
    targets = _targets(nodes)
    names_by_id: dict[TopicId, str] = {}
    for name in nodes.children(paths.TOPICS):
        if paths.delete_topic(name) in nodes:
            logger.info("topic %s is marked for deletion and is left out", name)
            continue
        assignment = assignment_in(nodes, name)
        assert assignment is not None
        topic_id = assignment.topic_id
        if topic_id in {None, ZERO_TOPIC_ID}:
            topic_id = topic_ids.get(name) or new_topic_id()
        assert topic_id is not None
        other_name = names_by_id.setdefault(topic_id, name)
        if other_name != name:
            raise TransferError(
                f"topics {other_name!r} and {name!r} of the metadata tree have the same id,"
                f" {topic_id_to_text(topic_id)}: delete one of them"
            )
        count = len(assignment.replicas)
        if assignment.replicas.keys() != set(range(count)):
            raise TransferError(
                f"{paths.topic(name)} of the metadata tree has the partitions"
                f" {sorted(assignment.replicas)}: expected 0 to {count - 1} without a gap"
            )
        partitions = tuple(
            _partition(nodes, TopicPartition(name, index), assignment, targets)
            for index in range(count)
        )
        yield name, TopicValue(topic_id, partitions)


def _partition(
    nodes: TreeNodes,
    name: TopicPartition,
    assignment: TopicAssignment,
    targets: Mapping[TopicPartition, Sequence[int]],
) -> PartitionValue:
    index = name.partition
    move = ReplicaAssignment(
        assignment.replicas[index],
        assignment.adding.get(index, []),
        assignment.removing.get(index, []),
    )
    if not move.replicas:
        raise TransferError(
            f"{paths.topic(name.topic)} of the metadata tree has no replicas of partition {index}:"
            " expected at least one broker id"
        )
    state, version = state_in(nodes, name), 0
    if state is None:
        state = PartitionState(move.replicas[0], 0, move.replicas, 0)
    else:
        version = nodes.version(paths.partition_state(*name))
    if name in targets:
        move = _moved(name, move, targets[name])
    _check_numbers(name, move, state)
    return PartitionValue(
        replicas=tuple(move.replicas),
        isr=tuple(state.isr),
        leader=max(state.leader, -1),
        leader_epoch=state.leader_epoch,
        adding=tuple(move.adding),
        removing=tuple(move.removing),
        is_recovering=state.recovery == RECOVERING,
        partition_epoch=version,
    )


def _check_numbers(
    name: TopicPartition, assignment: ReplicaAssignment, state: PartitionState
) -> None:
    """Raise TransferError for numbers that the fields of Kafka's records do not have."""
    numbers = (*assignment.replicas, *assignment.adding, *assignment.removing, *state.isr)
    largest = max((*numbers, state.leader, state.leader_epoch))
    if min((*numbers, state.leader_epoch)) < 0 or largest > _INT32_MAX:
        raise TransferError(
            f"partition {name} of the metadata tree has replicas {assignment.replicas}, in sync"
            f" {state.isr}, leader {state.leader} and leader epoch {state.leader_epoch}: expected"
            f" numbers from 0 to {_INT32_MAX}"
        )


def _targets(nodes: TreeNodes) -> dict[TopicPartition, list[int]]:
    """Return the moves that an old tool asked for: partition → its new replicas."""
    data = nodes.value(paths.REASSIGN_PARTITIONS)
    return {} if data is None else decode_reassignment(paths.REASSIGN_PARTITIONS, data)


def _moved(
    name: TopicPartition, assignment: ReplicaAssignment, target: Sequence[int]
) -> ReplicaAssignment:
    """Return the assignment on its way to `target`, as it was where the target cannot be had."""
    try:
        check_target(target, assignment, target)
    except KafkaError as error:
        logger.warning("%s is not moved: %s", name, error.detail)
        return assignment
    return assignment.move_to(target)


def assignment_in(nodes: TreeNodes, name: str) -> TopicAssignment | None:
    """Return what a topic's node says, None where there is no node. Raises CoordinationError."""
    path = paths.topic(name)
    data = nodes.value(path)
    return None if data is None else decode_topic(path, data)


def state_in(nodes: TreeNodes, name: TopicPartition) -> PartitionState | None:
    """Return the state of a partition, None where there is no node. Raises CoordinationError."""
    path = paths.partition_state(*name)
    data = nodes.value(path)
    return None if data is None else decode_state(path, data)


# Settings, quotas and credentials


class Passwords:
    """Passwords among the settings of brokers, in the tree and in plain text. Constant."""

    def __init__(self, config: BrokerConfig) -> None:
        """Raise ConfigError for wrong settings of `password.encoder.…`."""
        self.encoder: PasswordEncoder | None = encoder_of(config)
        """Encodes what is written; None where passwords stand in the tree as they are."""
        old_encoder = encoder_of(config, OLD_SECRET_KEY)
        self._decoders = [encoder for encoder in (self.encoder, old_encoder) if encoder]

    def decode(self, path: str, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of a node in plain text. Raises TransferError: they are encoded with
        another secret.
        """
        plain = dict(settings)
        for name, text in settings.items():
            if is_password(name) and is_encoded(text):
                plain[name] = self._decode(path, name, text)
        return plain

    def _decode(self, path: str, name: str, text: str) -> str:
        for encoder in self._decoders:
            try:
                return encoder.decode(text)
            except ConfigError:
                logger.debug("%s of %s has another secret", name, path)
        raise TransferError(
            f"{name} of {path} in the metadata tree is encoded with a secret that"
            f" {SECRET_KEY} does not have: set {SECRET_KEY} (or {OLD_SECRET_KEY}) to the secret"
            " with which it was altered"
        )


def _configs(
    nodes: TreeNodes, passwords: Passwords
) -> Iterator[tuple[ConfigEntity, dict[str, str]]]:
    for kind, entity_type in CONFIG_KINDS.items():
        root = f"{paths.CONFIG}/{entity_type}"
        for node_name in nodes.children(root):
            path = paths.config(entity_type, node_name)
            values = config_in(nodes, path)
            name = plain_name(root, node_name)
            if kind is ConfigKind.BROKER:
                values = passwords.decode(path, values)
                name = "" if node_name == DEFAULT_ENTITY else name
            yield ConfigEntity(kind, name), values


def config_in(nodes: TreeNodes, path: str) -> dict[str, str]:
    """Return the settings of a node, none where there is no node. Raises CoordinationError."""
    return decode_config(path, nodes.value(path) or b"")


def quota_nodes(nodes: TreeNodes) -> Iterator[tuple[str, QuotaEntity]]:
    """Yield path and entity of each node that may have quotas. Raises TransferError."""
    for entity_type, part in (("clients", CLIENT_ID), ("ips", IP), ("users", USER)):
        root = f"{paths.CONFIG}/{entity_type}"
        for node_name in nodes.children(root):
            path = f"{root}/{node_name}"
            name = _entity_name(root, node_name)
            yield path, ((part, name),)
            if part == USER:
                for client in nodes.children(f"{path}/clients"):
                    client_name = _entity_name(path, client)
                    yield f"{path}/clients/{client}", ((CLIENT_ID, client_name), (USER, name))


def _entity_name(root: str, node_name: str) -> str | None:
    return None if node_name == DEFAULT_ENTITY else plain_name(root, node_name)


def _quotas(nodes: TreeNodes) -> Iterator[tuple[QuotaEntity, dict[str, float]]]:
    for path, entity in quota_nodes(nodes):
        config = config_in(nodes, path)
        keys = (CONNECTION_RATE,) if entity[0][0] == IP else CLIENT_KEYS
        yield entity, {key: quota_of(path, key, config[key]) for key in keys if key in config}


def quota_of(path: str, key: str, text: str) -> float:
    """Return a stored quota. Raises TransferError."""
    try:
        value = parse_double(text)
    except ValueError:
        value = float("nan")
    if value != value:  # noqa: PLR0124  the one number that differs from itself
        raise TransferError(
            f"{key} of {path} in the metadata tree is {text!r}: expected a number; set the quota"
            " anew, or delete it"
        )
    return value


def _credentials(nodes: TreeNodes) -> Iterator[tuple[tuple[str, int], ScramCredential]]:
    """Yield the credentials of users. The default user has none: nobody logs in as it."""
    for path, entity in quota_nodes(nodes):
        kind, user = entity[0]
        if kind != USER or user is None:
            continue
        for mechanism, text in config_in(nodes, path).items():
            if mechanism in CODES:
                credential = credential_of(text)
                if credential is None:
                    raise TransferError(
                        f"{path} of the metadata tree has a {mechanism} credential that cannot be"
                        " read; set the user's password anew, or delete the credential"
                    )
                yield (user, CODES[mechanism]), credential


# The rest


def entries_by_pattern(nodes: TreeNodes) -> dict[Pattern, frozenset[Entry]]:
    """Return pattern → its ACLs, for the patterns that have a node. Raises CoordinationError."""
    entries = {}
    for root in acl_nodes.ACLS.values():
        for path in nodes.subtree(root):
            pattern = acl_nodes.pattern_of(path)
            if pattern is not None:
                entries[pattern] = acl_nodes.decode_entries(path, nodes.value(path) or b"")
    return entries


def tokens_in(nodes: TreeNodes) -> dict[str, Token]:
    """Return the delegation tokens by id. Raises CoordinationError."""
    return {
        token_id: token_nodes.decode(token_id, nodes.value(token_nodes.path_of(token_id)) or b"")
        for token_id in nodes.children(token_nodes.TOKENS)
    }


def features_in(nodes: TreeNodes, config: BrokerConfig, *, is_shared: bool) -> dict[str, int]:
    """Return the features in force with their levels: the node's, and for features that it does
    not have those of this broker. Raises CoordinationError.
    """
    levels = initial_levels(
        config.advertised_kafka_version, config.feature_levels, is_shared=is_shared
    )
    levels |= stored_features(nodes)
    return {name: level for name, level in levels.items() if level}


def stored_features(nodes: TreeNodes) -> dict[str, int]:
    """Return the levels in the node, zeros too. Raises CoordinationError."""
    data = nodes.value(paths.FEATURE)
    return {} if data is None else decode_features(paths.FEATURE, data)


def next_producer_id_in(nodes: TreeNodes) -> int:
    """Return the first producer id behind the last block. Raises CoordinationError."""
    path = paths.PRODUCER_ID_BLOCK
    block = decode_producer_id_block(path, nodes.value(path) or b"")
    # No block begins at the largest number: Kafka, too, gives out no more ids then.
    return 0 if block is None else min(block.last + 1, PRODUCER_ID_MAX)


def epoch_in(nodes: TreeNodes) -> int:
    """Return the controller's epoch, 0 where nobody was controller. Raises CoordinationError."""
    data = nodes.value(paths.CONTROLLER_EPOCH)
    return 0 if data is None else decode_controller_epoch(paths.CONTROLLER_EPOCH, data)
