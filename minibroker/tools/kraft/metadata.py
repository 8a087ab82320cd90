"""The metadata of a whole cluster as one value.

It stands between the tree of minibroker (`tree`) and the records of KRaft (`records`). A fact
that only one of them has is named at its field. Equal values mean equal clusters: collections
without an order are dicts.

Source: Kafka MetadataImage, ZkData.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from minibroker.broker.security.acl_entries import Acl
    from minibroker.broker.security.tokens import Token
    from minibroker.kafka.ids import TopicId
    from minibroker.kafka.scram import ScramCredential

NO_DIRECTORY: Final = bytes(16)
"""Id where the directory of a replica was never written down (Kafka's DirectoryId.MIGRATING)."""
UNASSIGNED_DIRECTORY: Final = bytes(15) + b"\x01"
"""Id where the broker has still to choose the directory of a replica (DirectoryId.UNASSIGNED)."""
NO_ACL_ID: Final = bytes(16)
"""Id of an ACL of the tree, which has none."""


class ConfigKind(IntEnum):
    """Kinds of resources that have settings; the values are those of ConfigRecord."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigEntity(NamedTuple):
    """A resource with settings."""

    kind: ConfigKind
    name: str
    """A topic, a broker id in decimals, a subscription, a group; empty: all brokers."""


QuotaEntity = tuple[tuple[str, str | None], ...]
"""(type, name) of each part, sorted by type: `client-id`, `ip`, `user`; None: the default one."""


class PartitionValue(NamedTuple):
    """The state of a partition. Replicas are broker ids."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    """Broker id, -1 for none."""
    leader_epoch: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    is_recovering: bool = False
    """True after an unclean election, until the leader changes the ISR (KIP-704)."""
    partition_epoch: int = 0
    directories: tuple[bytes, ...] = ()
    """16 bytes for each replica, in their order; empty: unknown. The tree has none."""
    eligible: tuple[int, ...] = ()
    """Eligible leader replicas (KIP-966). The tree has none."""
    last_eligible: tuple[int, ...] = ()
    """The last known of them. The tree has none."""


class TopicValue(NamedTuple):
    """A topic; its partitions by index, without a gap."""

    id: TopicId
    partitions: tuple[PartitionValue, ...]


@dataclass(slots=True)
class Metadata:
    """The value. One thread changes it while it is built, nobody afterwards."""

    topics: dict[str, TopicValue] = field(default_factory=dict)
    """Topics whose deletion was asked for are not among them."""
    configs: dict[ConfigEntity, dict[str, str]] = field(default_factory=dict)
    """Settings of their own; none is empty. Passwords stand as they are."""
    quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    """Key (`producer_byte_rate` …) → value; none is empty."""
    credentials: dict[tuple[str, int], ScramCredential] = field(default_factory=dict)
    """(user, code of the mechanism as in `scram.MECHANISMS`) → credential."""
    acls: dict[Acl, bytes] = field(default_factory=dict)
    """ACL → its id, 16 bytes. The tree has none: `NO_ACL_ID`."""
    tokens: dict[str, Token] = field(default_factory=dict)
    """By id. Their secret is a setting of the broker."""
    features: dict[str, int] = field(default_factory=dict)
    """Name → level in force."""
    next_producer_id: int = 0
    """The first one that no block has."""
    epoch: int = 0
    """Epoch of the controller; in KRaft that of the quorum's leader."""


def summary(metadata: Metadata) -> str:
    """Return the counts of what is not empty: `3 topics with 12 partitions, 2 ACLs`."""
    partitions = sum(len(topic.partitions) for topic in metadata.topics.values())
    parts = [
        f"{_count(len(metadata.topics), 'topic')} with {_count(partitions, 'partition')}",
        _count(len(metadata.configs), "resource with settings", "resources with settings"),
        _count(len(metadata.quotas), "entity with quotas", "entities with quotas"),
        _count(len(metadata.credentials), "SCRAM credential"),
        _count(len(metadata.acls), "ACL"),
        _count(len(metadata.tokens), "delegation token"),
    ]
    return ", ".join(part for part in parts if not part.startswith("0 "))


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
