"""`Metadata` → the operations that bring a tree to it, one transaction.

`operations_for` compares the values of nodes, not their bytes: a node that says the same stays,
with its version. Nodes that KRaft has nothing of stay too, such as offsets of consumers of Kafka
0.8, and so do keys of a user's node that are neither quotas nor credentials. The mark of a topic
that is to be deleted stays where the metadata have no topic of that name: a broker ends the
deletion at its start.

Numbers that may never come again never fall: the controller's epoch, and producer ids.

Source: Kafka ZkTopicMigrationClient, ZkConfigMigrationClient, ZkAclMigrationClient.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import (
    RECOVERING,
    PartitionState,
    ProducerIdBlock,
    TopicAssignment,
    encode_config,
    encode_features,
    encode_producer_id_block,
    encode_state,
    encode_topic,
)
from minibroker.broker.cluster.features import initial_levels
from minibroker.broker.cluster.paths import DEFAULT_ENTITY, sanitize
from minibroker.broker.cluster.producer_ids import BLOCK_SIZE
from minibroker.broker.cluster.topics import check_topic_name
from minibroker.broker.cluster.tree import Create, Delete, Set, check_path, parent_of
from minibroker.broker.config.dynamic import is_password
from minibroker.broker.quotas.entities import node_of, text_of
from minibroker.broker.quotas.limits import CLIENT_KEYS, CONNECTION_RATE
from minibroker.broker.security import acl_nodes, token_nodes
from minibroker.broker.security.acl_entries import Acl
from minibroker.broker.security.acl_words import Permission
from minibroker.broker.security.acls import RESOURCE_TYPES
from minibroker.broker.security.acls import Operation as AclOperation
from minibroker.kafka import scram
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.scram import MECHANISMS, credential_of
from minibroker.tools.kraft.errors import TransferError
from minibroker.tools.kraft.metadata import ConfigEntity, ConfigKind
from minibroker.tools.kraft.tree_reading import (
    CONFIG_KINDS,
    Passwords,
    assignment_in,
    config_in,
    entries_by_pattern,
    epoch_in,
    features_in,
    next_producer_id_in,
    quota_nodes,
    quota_of,
    state_in,
    stored_features,
    tokens_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from minibroker.broker.cluster.tree import Operation
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.security.acl_entries import Entry, Pattern
    from minibroker.tools.kraft.metadata import Metadata, PartitionValue, TopicValue
    from minibroker.tools.kraft.tree_nodes import TreeNodes

_NO_BROKER = -1
"""Broker of a block of producer ids that no broker took."""
_USER_DEPTH = paths.config("users", "u").count("/")
_CLEANED_KINDS = (ConfigKind.CLIENT_METRICS, ConfigKind.GROUP)
"""Kinds whose nodes go with their last setting, as when a client deletes it."""


class TreeChanges:
    """Operations on nodes, in their order; it knows which nodes exist after them."""

    def __init__(self, nodes: TreeNodes) -> None:
        self._nodes = nodes
        self._paths = set(nodes)
        self._child_counts = Counter(parent_of(path) for path in nodes)
        self._created_paths: set[str] = set()
        self.operations: list[Operation] = []

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def put(self, path: str, data: bytes, subject: str = "") -> None:
        """Give a node this value; create it, and its parents, where it does not exist.

        `subject` names the metadata, for the TransferError about a name that no node may have.
        """
        if path in self._paths:
            if path in self._created_paths:
                self.operations.append(Set(path, data))
            elif self._nodes.value(path) != data:
                self.operations.append(Set(path, data, self._nodes.version(path)))
            return
        try:
            check_path(path)
        except ValueError as error:
            raise TransferError(
                f"{subject} cannot stand in the metadata tree: no node may have the path {path!r};"
                " delete it before its cluster is stopped"
            ) from error
        missing_paths = []
        parent = parent_of(path)
        while parent not in self._paths:
            missing_paths.append(parent)
            parent = parent_of(parent)
        for parent in reversed(missing_paths):
            self._create(parent, b"")
        self._create(path, data)

    def _create(self, path: str, data: bytes) -> None:
        self.operations.append(Create(path, data))
        self._paths.add(path)
        self._child_counts[parent_of(path)] += 1
        self._created_paths.add(path)

    def remove(self, path: str) -> None:
        """Delete a node that was read, and everything that was read below it, where it exists."""
        for node_path in reversed(list(self._nodes.subtree(path))):
            if node_path in self._paths:
                self.operations.append(Delete(node_path))
                self._paths.discard(node_path)
                self._child_counts[parent_of(node_path)] -= 1
                self._created_paths.discard(node_path)

    def has_children(self, path: str) -> bool:
        """Return whether there is a node below this one."""
        return self._child_counts[path] > 0


def operations_for(
    nodes: TreeNodes, metadata: Metadata, config: BrokerConfig, *, is_shared: bool
) -> list[Operation]:
    """Return the operations that bring the nodes to the metadata; see `tree.write_metadata`.

    Raises CoordinationError, TransferError, ConfigError.
    """
    changes = TreeChanges(nodes)
    _write_topics(changes, nodes, metadata)
    _write_configs(changes, nodes, metadata, Passwords(config))
    _write_users(changes, nodes, metadata)
    _write_acls(changes, nodes, metadata)
    _write_tokens(changes, nodes, metadata)
    _write_features(changes, nodes, metadata, config, is_shared=is_shared)
    _write_numbers(changes, nodes, metadata)
    return changes.operations


# Topics


def _write_topics(changes: TreeChanges, nodes: TreeNodes, metadata: Metadata) -> None:
    epoch = max(metadata.epoch, epoch_in(nodes))
    for name in nodes.children(paths.TOPICS):
        if name not in metadata.topics and paths.delete_topic(name) not in nodes:
            changes.remove(paths.topic(name))
            changes.remove(paths.config("topics", name))
    for name, topic in metadata.topics.items():
        old = assignment_in(nodes, name)
        if old is None:
            _check_topic(name)
        if old is not None and old.topic_id not in {None, topic.id}:
            changes.remove(paths.topic(name))
            old = None
        assignment = _assignment_of(topic)
        if assignment != old:
            changes.put(paths.topic(name), _encode(assignment))
        _write_states(changes, nodes, name, topic, epoch)
        changes.remove(paths.delete_topic(name))
    changes.remove(paths.REASSIGN_PARTITIONS)  # its moves are under way in the metadata


def _check_topic(name: str) -> None:
    """Raise TransferError for a name that no topic may have."""
    try:
        check_topic_name(name)
    except KafkaError as error:
        raise TransferError(
            f"topic {name!r} cannot stand in the metadata tree: {error.detail}"
        ) from error


def _assignment_of(topic: TopicValue) -> TopicAssignment:
    partitions = topic.partitions
    return TopicAssignment(
        topic.id,
        {index: list(partition.replicas) for index, partition in enumerate(partitions)},
        {i: list(partition.adding) for i, partition in enumerate(partitions) if partition.adding},
        {
            i: list(partition.removing)
            for i, partition in enumerate(partitions)
            if partition.removing
        },
    )


def _encode(assignment: TopicAssignment) -> bytes:
    replicas = list(assignment.replicas.values())
    return encode_topic(assignment.topic_id, replicas, assignment.adding, assignment.removing)


def _write_states(
    changes: TreeChanges, nodes: TreeNodes, name: str, topic: TopicValue, epoch: int
) -> None:
    for index, partition in enumerate(topic.partitions):
        path = paths.partition_state(name, index)
        state = _state_of(partition, epoch)
        old = state_in(nodes, TopicPartition(name, index)) if path in changes else None
        if old is None or old._replace(controller_epoch=epoch) != state:
            changes.put(path, encode_state(state))
    indexes = {str(index) for index in range(len(topic.partitions))}
    for index_text in nodes.children(paths.partitions(name)):
        if index_text not in indexes:
            changes.remove(f"{paths.partitions(name)}/{index_text}")


def _state_of(partition: PartitionValue, epoch: int) -> PartitionState:
    """Return the state of a partition. Where KRaft has nobody in sync, its eligible leaders are:
    they have every committed record. If there are none either, the last leader may lead as one that
    was elected uncleanly. Source: Kafka PartitionChangeBuilder (isValidNewLeader,
    canElectLastKnownLeader).
    """
    isr = partition.isr or partition.eligible
    is_recovering = partition.is_recovering
    if not isr and len(partition.last_eligible) == 1:
        isr, is_recovering = partition.last_eligible, True
    return PartitionState(
        partition.leader,
        partition.leader_epoch,
        list(isr),
        epoch,
        RECOVERING if is_recovering else 0,
    )


# Settings, quotas and credentials


def _write_configs(
    changes: TreeChanges, nodes: TreeNodes, metadata: Metadata, passwords: Passwords
) -> None:
    """Write settings of topics, brokers, groups and subscriptions."""
    for kind, entity_type in CONFIG_KINDS.items():
        root = f"{paths.CONFIG}/{entity_type}"
        settings_by_path = {
            f"{root}/{_config_name(entity)}": (entity, settings)
            for entity, settings in _settings_of_kind(metadata, kind)
        }
        for path, (entity, settings) in settings_by_path.items():
            subject = f"the settings of {kind.name.lower()} {entity.name!r}"
            old = config_in(nodes, path)
            stored = settings
            if kind is ConfigKind.BROKER:
                stored = _with_passwords(path, settings, old, passwords)
            if path not in changes or stored != old:
                changes.put(path, encode_config(stored), subject)
        for name in nodes.children(root):
            path = f"{root}/{name}"
            if path in settings_by_path or path not in changes:
                continue
            if kind in _CLEANED_KINDS:
                changes.remove(path)
            elif kind is ConfigKind.BROKER and config_in(nodes, path):
                changes.put(path, encode_config({}))


def _settings_of_kind(
    metadata: Metadata, kind: ConfigKind
) -> Iterator[tuple[ConfigEntity, Mapping[str, str]]]:
    """Yield the settings of all resources of a kind. Each topic has a node, also without any."""
    if kind is ConfigKind.TOPIC:
        for name in metadata.topics:
            entity = ConfigEntity(kind, name)
            yield entity, metadata.configs.get(entity, {})
        return
    for entity, settings in metadata.configs.items():
        if entity.kind is kind:
            yield entity, settings


def _config_name(entity: ConfigEntity) -> str:
    if entity.kind is ConfigKind.BROKER and not entity.name:
        return DEFAULT_ENTITY
    return sanitize(entity.name)


def _with_passwords(
    path: str, settings: Mapping[str, str], old: Mapping[str, str], passwords: Passwords
) -> dict[str, str]:
    """Return the settings with passwords as they are stored; one that did not change keeps its
    text, which is another one with each encoding.
    """
    old_plain = passwords.decode(path, old)
    stored = dict(settings)
    for name, text in settings.items():
        if not is_password(name):
            continue
        if old_plain.get(name) == text:
            stored[name] = old[name]
        elif passwords.encoder is not None:
            stored[name] = passwords.encoder.encode(text)
    return stored


def _write_users(changes: TreeChanges, nodes: TreeNodes, metadata: Metadata) -> None:
    """Write quotas of all entities, and the credentials that stand beside those of users."""
    texts, subjects = _user_texts(metadata)
    old_paths = {path for path, _ in quota_nodes(nodes)}
    for path in sorted({*texts, *old_paths}, reverse=True):  # children before their parents
        old = config_in(nodes, path)
        new = _merged(path, old, texts.get(path, {}))
        if new == old:
            continue
        if new or changes.has_children(path):
            changes.put(path, encode_config(new), subjects.get(path, ""))
        else:
            _clean(changes, nodes, path)


def _user_texts(metadata: Metadata) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Return path of a node → key → text, and path → the words for an error."""
    texts: dict[str, dict[str, str]] = {}
    subjects: dict[str, str] = {}
    for entity, quotas in metadata.quotas.items():
        subject = f"the quotas of {dict(entity)}"
        try:
            node = node_of(dict(entity))
            path = paths.config(node.entity_type, node.entity_name)
            texts[path] = {
                key: text_of(key, value, node.key_types) for key, value in quotas.items()
            }
        except KafkaError as error:
            raise TransferError(
                f"{subject} cannot stand in the metadata tree: {error.detail}; delete them before"
                " their cluster is stopped"
            ) from error
        subjects[path] = subject
    for (user, code), credential in metadata.credentials.items():
        if code not in MECHANISMS:
            raise TransferError(
                f"a credential of user {user!r} cannot stand in the metadata tree: its mechanism is"
                f" {code}, expected one of {dict(MECHANISMS)}"
            )
        path = paths.config("users", sanitize(user))
        texts.setdefault(path, {})[MECHANISMS[code]] = scram.text_of(credential)
        subjects[path] = f"the credential of user {user!r}"
    return texts, subjects


def _merged(path: str, old: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, str]:
    """Return the new config of a node. A text that says the same as the old one stays."""
    is_ip = path.startswith(f"{paths.CONFIG}/ips/")
    quota_keys = (CONNECTION_RATE,) if is_ip else CLIENT_KEYS
    is_user = path.startswith(f"{paths.CONFIG}/users/") and path.count("/") == _USER_DEPTH
    is_user = is_user and not path.endswith(f"/{DEFAULT_ENTITY}")
    keys = {*quota_keys, *(MECHANISMS.values() if is_user else ())}
    new = {key: text for key, text in old.items() if key not in keys or key in texts}
    for key, text in texts.items():
        old_text = old.get(key)
        if old_text is not None:
            if key in quota_keys:
                is_same = quota_of(path, key, old_text) == quota_of(path, key, text)
            else:
                is_same = credential_of(old_text) == credential_of(text)
            if is_same:
                continue
        new[key] = text
    return new


def _clean(changes: TreeChanges, nodes: TreeNodes, path: str) -> None:
    """Delete an empty node of a quota entity, and the empty nodes above it below the type."""
    while path.count("/") > 2 and not changes.has_children(path):
        changes.remove(path)
        path = parent_of(path)
        if config_in(nodes, path):
            return


# The rest


def _write_acls(changes: TreeChanges, nodes: TreeNodes, metadata: Metadata) -> None:
    entries_of: dict[Pattern, set[Entry]] = {}
    for acl in metadata.acls:
        entries_of.setdefault(acl.pattern, set()).add(acl.entry)
    old_entries = entries_by_pattern(nodes)
    for pattern, entries in entries_of.items():
        if entries == old_entries.get(pattern, frozenset()):
            continue
        for entry in entries:
            _check_acl(Acl(pattern, entry))
        path = acl_nodes.path_of(pattern)
        changes.put(path, acl_nodes.encode_entries(entries), f"an ACL of {pattern}")
    gone_paths = [
        acl_nodes.path_of(pattern)
        for pattern, entries in old_entries.items()
        if entries and pattern not in entries_of
    ]
    for path in sorted(gone_paths, reverse=True):  # children before their parents
        if not changes.has_children(path):
            changes.remove(path)
        else:
            changes.put(path, acl_nodes.encode_entries(()))


def _check_acl(acl: Acl) -> None:
    """Raise TransferError for an ACL that would be read as another one, or not at all."""
    pattern, entry = acl
    if (
        pattern.resource_type not in RESOURCE_TYPES
        or pattern.pattern_type not in acl_nodes.ACLS
        or ":" not in entry.principal
        or entry.operation is AclOperation.UNKNOWN
        or entry.permission is Permission.UNKNOWN
    ):
        raise TransferError(
            f"the ACL {str(acl)!r} cannot stand in the metadata tree: expected a kind of resource,"
            " an operation and a permission of Kafka 3.9, a literal or prefixed pattern, and a"
            " principal as type:name; delete it before its cluster is stopped"
        )


def _write_tokens(changes: TreeChanges, nodes: TreeNodes, metadata: Metadata) -> None:
    old_tokens = tokens_in(nodes)
    for token_id, token in metadata.tokens.items():
        if token != old_tokens.get(token_id):
            if not token_nodes.is_id(token_id):
                raise TransferError(
                    f"the delegation token {token_id!r} cannot stand in the metadata tree: expected"
                    " an id of letters, digits, =, - and _; let it expire"
                )
            changes.put(token_nodes.path_of(token_id), token_nodes.encode(token))
    for token_id in old_tokens:
        if token_id not in metadata.tokens:
            changes.remove(token_nodes.path_of(token_id))


def _write_features(
    changes: TreeChanges,
    nodes: TreeNodes,
    metadata: Metadata,
    config: BrokerConfig,
    *,
    is_shared: bool,
) -> None:
    """Write the levels; 0 for a feature that would be in force if the node did not say so."""
    if features_in(nodes, config, is_shared=is_shared) == metadata.features:
        return
    names = {
        *initial_levels(
            config.advertised_kafka_version, config.feature_levels, is_shared=is_shared
        ),
        *stored_features(nodes),
    }
    levels = {**dict.fromkeys(sorted(names), 0), **metadata.features}
    changes.put(paths.FEATURE, encode_features(levels))


def _write_numbers(changes: TreeChanges, nodes: TreeNodes, metadata: Metadata) -> None:
    if metadata.epoch > epoch_in(nodes):
        changes.put(paths.CONTROLLER_EPOCH, str(metadata.epoch).encode("ascii"))
    last = metadata.next_producer_id - 1
    if last >= next_producer_id_in(nodes):
        block = ProducerIdBlock(_NO_BROKER, max(0, last + 1 - BLOCK_SIZE), last)
        changes.put(paths.PRODUCER_ID_BLOCK, encode_producer_id_block(block))
