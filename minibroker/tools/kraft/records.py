"""Metadata → records of KRaft, and one record ↔ its bytes.

A snapshot holds these records. The features come first, because Kafka reads what follows by
`metadata.version`; a topic comes before its partitions. `replay` is the way back.

Source: Kafka MetadataImage and the images in it (write), ImageWriterOptions, MetadataRecordSerde.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from minibroker.broker.cluster.features import METADATA_VERSION
from minibroker.kafka.protocol.stored.cluster_metadata import (
    RECORDS,
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from minibroker.kafka.protocol.writer import Writer
from minibroker.tools.kraft.levels import (
    LevelError,
    broker_record_version,
    has_eligible_replicas,
    has_group_settings,
    metadata_version,
    partition_record_version,
)
from minibroker.tools.kraft.metadata import NO_ACL_ID, ConfigKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from minibroker.broker.security.acl_entries import Acl
    from minibroker.tools.kraft.metadata import Metadata, PartitionValue

FRAME_VERSION: Final = 1
TYPES: Final[Mapping[type, int]] = {kind: type_id for type_id, kind in RECORDS.items()}
"""Class → type."""


class StoredMessage(Protocol):
    """A generated message that can be written."""

    def write(self, writer: Writer, version: int) -> None:
        """Append the message. Raises ValueError, struct.error for a field that does not fit."""


class MetadataRecord(NamedTuple):
    """A record of KRaft's metadata, and the version that it has or gets on disk."""

    type_id: int
    version: int
    message: StoredMessage


class RegisteredBroker(NamedTuple):
    """A broker that the metadata knows."""

    epoch: int
    """Offset of the record that registered it; `.kafka_cleanshutdown` names it."""
    incarnation: bytes
    """16 bytes, made by the broker's process at its start."""
    directories: tuple[bytes, ...] = ()
    """Ids of its log directories that are online, 16 bytes each."""


def acl_id_of(acl: Acl) -> bytes:
    """Return the id of an ACL that has none, 16 bytes: every node gives it the same one."""
    (resource_type, name, pattern_type), (principal, host, operation, permission) = acl
    codes = (int(resource_type), int(pattern_type), int(operation), int(permission))
    return sha256(repr((*codes, name, principal, host)).encode()).digest()[:16]


def records_of(
    metadata: Metadata, *, brokers: Mapping[int, RegisteredBroker] | None = None
) -> Iterator[MetadataRecord]:
    """Yield the records of a snapshot. An ACL without an id gets one.

    Args:
        metadata: its `features` decide the versions of the records (`LEVELS` has a release's).
        brokers: registrations by broker id. They are fenced until the broker comes.

    Raises:
        LevelError: `metadata.version` is not one of 3.9 to 4.4, or the levels are too low for
            settings of groups or for eligible leader replicas that the metadata has.
    """
    level = metadata_version(metadata.features)
    for message, version in _messages(metadata, brokers or {}, level):
        yield MetadataRecord(TYPES[type(message)], version, message)


def _messages(
    metadata: Metadata,
    brokers: Mapping[int, RegisteredBroker],
    level: int,
) -> Iterator[tuple[StoredMessage, int]]:
    """Yield each message with its version, in the order of a snapshot."""
    names = sorted(metadata.features, key=lambda name: (name != METADATA_VERSION, name))
    for name in names:
        yield FeatureLevelRecord(name=name, feature_level=metadata.features[name]), 0
    for broker_id, registration in brokers.items():
        yield _broker(broker_id, registration), broker_record_version(level)
    yield from _topics(metadata, level)
    for (kind, resource), settings in metadata.configs.items():
        if kind is ConfigKind.GROUP and not has_group_settings(level):
            raise LevelError(
                f"group {resource} has settings, which Kafka 3.9 (metadata.version {level}) does "
                "not know: remove them, or choose Kafka 4.0 or newer"
            )
        for name, value in settings.items():
            yield (
                ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value),
                0,
            )
    yield from _quotas(metadata)
    if metadata.next_producer_id > 0:
        next_id = metadata.next_producer_id
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=next_id), 0
    yield from _security(metadata)


def _broker(broker_id: int, registration: RegisteredBroker) -> RegisterBrokerRecord:
    """Return the registration of a broker that is stopped."""
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=registration.incarnation,
        broker_epoch=registration.epoch,
        rack=None,
        fenced=True,
        log_dirs=list(registration.directories),
    )


def _topics(metadata: Metadata, level: int) -> Iterator[tuple[StoredMessage, int]]:
    version = partition_record_version(level)
    has_eligible = has_eligible_replicas(metadata.features)
    for name, topic in metadata.topics.items():
        yield TopicRecord(name=name, topic_id=topic.id), 0
        for index, partition in enumerate(topic.partitions):
            if (partition.eligible or partition.last_eligible) and not has_eligible:
                raise LevelError(
                    f"partition {name}-{index} has eligible leader replicas, but the feature "
                    "eligible.leader.replicas.version is not in force: set it to 1, or clear them"
                )
            yield _partition(topic.id, index, partition), version


def _partition(topic_id: bytes, index: int, partition: PartitionValue) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=int(partition.is_recovering),
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.eligible) or None,
        last_known_elr=list(partition.last_eligible) or None,
    )


def _quotas(metadata: Metadata) -> Iterator[tuple[StoredMessage, int]]:
    for entity, quotas in metadata.quotas.items():
        parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        for key, value in quotas.items():
            yield ClientQuotaRecord(entity=parts, key=key, value=value), 0


def _security(metadata: Metadata) -> Iterator[tuple[StoredMessage, int]]:
    """Yield ACLs, SCRAM credentials and delegation tokens."""
    for acl, acl_id in metadata.acls.items():
        pattern, entry = acl
        yield (
            AccessControlEntryRecord(
                id=acl_id_of(acl) if acl_id == NO_ACL_ID else acl_id,
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            ),
            0,
        )
    for (user, mechanism), credential in metadata.credentials.items():
        salt, stored_key, server_key, iterations = credential
        yield (
            UserScramCredentialRecord(
                name=user,
                mechanism=mechanism,
                salt=salt,
                stored_key=stored_key,
                server_key=server_key,
                iterations=iterations,
            ),
            0,
        )
    for token in metadata.tokens.values():
        yield (
            DelegationTokenRecord(
                owner=token.owner,
                requester=token.requester,
                renewers=list(token.renewers),
                issue_timestamp=token.issued_ms,
                max_timestamp=token.max_ms,
                expiration_timestamp=token.expires_ms,
                token_id=token.id,
            ),
            0,
        )


def encode_record(record: MetadataRecord) -> bytes:
    """Return the value of a record on disk: the frame's version, type, version, the message.

    Raises ValueError, struct.error for a field that the message cannot hold.
    """
    writer = Writer()
    writer.uvarint(FRAME_VERSION)
    writer.uvarint(record.type_id)
    writer.uvarint(record.version)
    record.message.write(writer, record.version)
    return writer.to_bytes()
