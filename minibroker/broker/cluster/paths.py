"""The paths of Kafka 3.9 in ZooKeeper; they are the same in both homes of the tree.

Source: Kafka's ZkData. Names of config entities are percent-encoded as Kafka's Sanitizer does.
"""

from __future__ import annotations

from typing import Final

ADMIN_DELETE_TOPICS: Final = "/admin/delete_topics"
PREFERRED_ELECTION: Final = "/admin/preferred_replica_election"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
BROKER_IDS: Final = "/brokers/ids"
BROKER_SEQUENCE: Final = "/brokers/seqid"
TOPICS: Final = "/brokers/topics"
CLUSTER_ID: Final = "/cluster/id"
CONFIG: Final = "/config"
CONFIG_CHANGES: Final = "/config/changes"
CONFIG_CHANGE_PREFIX: Final = "/config/changes/config_change_"
CONSUMERS: Final = "/consumers"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
FEATURE: Final = "/feature"
ISR_CHANGES: Final = "/isr_change_notification"
ISR_CHANGE: Final = ISR_CHANGES + "/isr_change_"
"""A number follows."""
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
LOG_DIR_EVENT: Final = LOG_DIR_EVENTS + "/log_dir_event_"
"""A number follows."""
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"

CONFIG_TYPES: Final = ("topics", "clients", "users", "brokers", "ips")
"""Entity types under /config (Kafka's ConfigType.ALL)."""
UNANNOUNCED_CONFIG_TYPES: Final = ("client-metrics", "groups")
"""Entity types that Kafka keeps in KRaft only. Their nodes are made when needed, their changes are
not announced: a Kafka 3.9 broker gets stuck at a notification of a type it does not know."""
DEFAULT_ENTITY: Final = "<default>"
"""Name of the entity that stands for all of its type which have no value of their own."""

PERSISTENT: Final = (
    CONSUMERS,
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    ADMIN_DELETE_TOPICS,
    BROKER_SEQUENCE,
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    *(f"{CONFIG}/{entity_type}" for entity_type in CONFIG_TYPES),
)
"""Nodes that every Kafka broker makes at start when they are missing, in this order."""

_PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


def broker(broker_id: int) -> str:
    """Return the node of one broker's registration (ephemeral)."""
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    """Return the node of one topic's assignment and id."""
    return f"{TOPICS}/{name}"


def partitions(name: str) -> str:
    """Return the parent of a topic's partitions."""
    return f"{TOPICS}/{name}/partitions"


def partition(name: str, index: int) -> str:
    """Return the parent of one partition's state."""
    return f"{TOPICS}/{name}/partitions/{index}"


def partition_state(name: str, index: int) -> str:
    """Return the node of one partition's leader, epoch and ISR."""
    return f"{TOPICS}/{name}/partitions/{index}/state"


def config(entity_type: str, entity_name: str) -> str:
    """Return the node of one entity's config. A (user, client id) pair is type `users`, name
    `<u>/clients/<c>`.
    """
    return f"{CONFIG}/{entity_type}/{entity_name}"


def consumer_offset(group_id: str, topic_name: str, index: int) -> str:
    """Return the node of an offset that a group of the 0.8 kind committed for one partition."""
    return f"{CONSUMERS}/{group_id}/offsets/{topic_name}/{index}"


def delete_topic(name: str) -> str:
    """Mark that says "delete this topic"."""
    return f"{ADMIN_DELETE_TOPICS}/{name}"


def sanitize(name: str) -> str:
    """Make any text a node name: UTF-8 percent-encoding of all but `A-Za-z0-9-_.` (Sanitizer)."""
    if _PLAIN.issuperset(name):
        return name
    return "".join(
        chr(byte) if chr(byte) in _PLAIN else f"%{byte:02X}" for byte in name.encode("utf-8")
    )


def desanitize(name: str) -> str:
    """Return the text that `sanitize` made `text` of. Raises ValueError for broken
    percent-encoding.
    """
    if "%" not in name:
        return name
    head, *escapes = name.split("%")
    raw = bytearray(head.encode("utf-8"))
    for piece in escapes:
        raw.append(int(piece[:2], 16))
        raw += piece[2:].encode("utf-8")
    return raw.decode("utf-8")
