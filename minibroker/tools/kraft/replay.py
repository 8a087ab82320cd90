"""Records of KRaft → Metadata: every record changes the value as Kafka's brokers change theirs.

The records of a snapshot come first, those of the log behind it afterwards. Records between the
start of a metadata transaction (KIP-868) and its abort do not count. Those of a transaction that
the log does not end do not count either: the controller that began it failed, and the next one
aborts it.

Source: Kafka MetadataDelta and the deltas in it, MetadataBatchLoader, PartitionRegistration.merge,
LeaderRecoveryState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from minibroker.broker.cluster.features import METADATA_VERSION
from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.security.tokens import Token
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicId, topic_id_to_text
from minibroker.kafka.protocol.stored.cluster_metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from minibroker.kafka.scram import MECHANISMS, ScramCredential
from minibroker.tools.kraft.levels import NEWEST_METADATA_VERSION, LevelError
from minibroker.tools.kraft.metadata import (
    NO_DIRECTORY,
    ConfigEntity,
    ConfigKind,
    Metadata,
    PartitionValue,
    TopicValue,
)
from minibroker.tools.kraft.records import RegisteredBroker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from minibroker.tools.kraft.records import MetadataRecord, StoredMessage

Key = TypeVar("Key")
Value = TypeVar("Value")

UNCHANGED_LEADER: Final = -2
UNCHANGED_RECOVERY: Final = -1
PARTITIONS_MAX: Final = 1_000_000
"""Partitions of one topic; a higher index in a record is damage."""


def metadata_of(records: Iterable[MetadataRecord], *, epoch: int = 0) -> Metadata:
    """Return the metadata that the records make. `epoch`: of the quorum's leader.

    Raises:
        CorruptionError: a record contradicts those before it.
        LevelError: `metadata.version` is newer than the records known here.
    """
    replay = Replay()
    for record in records:
        replay.apply(record.message)
    return replay.finish(epoch)


class Replay:
    """Metadata in the making: `apply` each record in the order of the log, then `finish` once."""

    def __init__(self) -> None:
        self.brokers: dict[int, RegisteredBroker] = {}
        """Registered brokers, by id."""
        self._metadata = Metadata()
        self._names: dict[bytes, str] = {}
        """Topic id → name."""
        self._partitions: dict[bytes, dict[int, PartitionValue]] = {}
        """Topic id → index → partition."""
        self._acls: dict[bytes, Acl] = {}
        """Id → ACL."""
        self._transaction: list[StoredMessage] | None = None
        """Records of the transaction that is open; None while none is."""
        self._changes: Mapping[type, Callable[[Any], None]] = {
            FeatureLevelRecord: self._feature_level,
            RegisterBrokerRecord: self._register_broker,
            BrokerRegistrationChangeRecord: self._change_broker,
            UnregisterBrokerRecord: self._unregister_broker,
            TopicRecord: self._topic,
            RemoveTopicRecord: self._remove_topic,
            PartitionRecord: self._partition,
            PartitionChangeRecord: self._partition_change,
            ClearElrRecord: self._clear_eligible,
            ConfigRecord: self._config,
            ClientQuotaRecord: self._quota,
            ProducerIdsRecord: self._producer_ids,
            AccessControlEntryRecord: self._acl,
            RemoveAccessControlEntryRecord: self._remove_acl,
            UserScramCredentialRecord: self._credential,
            RemoveUserScramCredentialRecord: self._remove_credential,
            DelegationTokenRecord: self._token,
            RemoveDelegationTokenRecord: self._remove_token,
            FenceBrokerRecord: self._ignore,
            UnfenceBrokerRecord: self._ignore,
            NoOpRecord: self._ignore,
            ZkMigrationStateRecord: self._ignore,
            RegisterControllerRecord: self._ignore,
            UnregisterControllerRecord: self._ignore,
        }
        """Class of the record → what it does."""

    def apply(self, message: StoredMessage) -> None:
        """Take one record into account. Raises CorruptionError, LevelError."""
        if isinstance(message, BeginTransactionRecord):
            self._transaction = self._expect_transaction(is_open=False)
        elif isinstance(message, AbortTransactionRecord):
            self._expect_transaction(is_open=True)
            self._transaction = None
        elif isinstance(message, EndTransactionRecord):
            messages = self._expect_transaction(is_open=True)
            self._transaction = None
            for message_inside in messages:
                self._change(message_inside)
        elif self._transaction is not None:
            self._transaction.append(message)
        else:
            self._change(message)

    def finish(self, epoch: int) -> Metadata:
        """Return the metadata; an open transaction does not count. `epoch`: of the quorum's leader.

        Raises CorruptionError where partitions of a topic are missing.
        """
        metadata = self._metadata
        metadata.epoch = epoch
        for topic_id, name in self._names.items():
            partitions = self._partitions[topic_id]
            missing = next(
                (number for number in range(len(partitions)) if number not in partitions), None
            )
            if missing is not None:
                raise CorruptionError(
                    f"the metadata has {len(partitions)} partitions of topic {name}, but none with "
                    f"index {missing}"
                )
            if name in metadata.topics:
                raise CorruptionError(f"the metadata has two topics with the name {name}")
            in_order = tuple(partitions[index] for index in range(len(partitions)))
            metadata.topics[name] = TopicValue(TopicId(topic_id), in_order)
        metadata.acls = {acl: acl_id for acl_id, acl in self._acls.items()}
        return metadata

    def _expect_transaction(self, *, is_open: bool) -> list[StoredMessage]:
        """Return the open transaction's records, none if there is none. Raises CorruptionError."""
        if (self._transaction is not None) is not is_open:
            raise CorruptionError(
                "the metadata ends a transaction that was not begun"
                if is_open
                else "the metadata begins a transaction inside another one"
            )
        return self._transaction or []

    def _change(self, message: StoredMessage) -> None:
        change = self._changes.get(type(message))
        if change is None:
            raise CorruptionError(f"a {type(message).__name__} cannot be applied to metadata")
        change(message)

    def _feature_level(self, record: FeatureLevelRecord) -> None:
        if record.name == METADATA_VERSION and record.feature_level > NEWEST_METADATA_VERSION:
            raise LevelError(
                f"the cluster's metadata.version is {record.feature_level}, newer than "
                f"{NEWEST_METADATA_VERSION} (4.4-IV2): lower it with Kafka's kafka-features.sh, "
                "or take a newer minibroker"
            )
        if record.feature_level:
            self._metadata.features[record.name] = record.feature_level
        else:
            self._metadata.features.pop(record.name, None)

    def _register_broker(self, record: RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = RegisteredBroker(
            record.broker_epoch, record.incarnation_id, tuple(record.log_dirs)
        )

    def _change_broker(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self.brokers.get(record.broker_id)
        if broker is not None and record.log_dirs:
            self.brokers[record.broker_id] = broker._replace(directories=tuple(record.log_dirs))

    def _unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self.brokers.pop(record.broker_id, None)

    def _topic(self, record: TopicRecord) -> None:
        if record.topic_id in self._names:
            raise CorruptionError(
                f"topic id {topic_id_to_text(record.topic_id)} of topic {record.name} is already "
                f"that of topic {self._names[record.topic_id]}"
            )
        self._names[record.topic_id] = record.name
        self._partitions[record.topic_id] = {}

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        self._partitions_of(record.topic_id)
        name = self._names.pop(record.topic_id)
        del self._partitions[record.topic_id]
        self._metadata.configs.pop(ConfigEntity(ConfigKind.TOPIC, name), None)

    def _partitions_of(self, topic_id: bytes) -> dict[int, PartitionValue]:
        """Return the partitions of a topic, by index. Raises CorruptionError for no such topic."""
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            raise CorruptionError(
                f"the metadata has no topic with id {topic_id_to_text(topic_id)}, but a record "
                "that changes it"
            )
        return partitions

    def _partition(self, record: PartitionRecord) -> None:
        partitions = self._partitions_of(record.topic_id)
        if not 0 <= record.partition_id < PARTITIONS_MAX:
            raise CorruptionError(
                f"topic {self._names[record.topic_id]} has a partition with index "
                f"{record.partition_id}, expected 0 to {PARTITIONS_MAX - 1}"
            )
        partitions[record.partition_id] = PartitionValue(
            tuple(record.replicas),
            tuple(record.isr),
            record.leader,
            record.leader_epoch,
            tuple(record.adding_replicas),
            tuple(record.removing_replicas),
            bool(record.leader_recovery_state),
            record.partition_epoch,
            _directories(record.directories, len(record.replicas)),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
        )

    def _partition_change(self, record: PartitionChangeRecord) -> None:
        partitions = self._partitions_of(record.topic_id)
        partition = partitions.get(record.partition_id)
        if partition is None:
            raise CorruptionError(
                f"the metadata has no partition {self._names[record.topic_id]}-"
                f"{record.partition_id}, but a record that changes it"
            )
        partitions[record.partition_id] = _changed(partition, record)

    def _clear_eligible(self, record: ClearElrRecord) -> None:
        """Clear the eligible replicas of a topic, of all topics if it has no name."""
        for topic_id, partitions in self._partitions.items():
            if record.topic_name not in ("", self._names[topic_id]):
                continue
            for index, partition in partitions.items():
                if partition.eligible or partition.last_eligible:
                    partitions[index] = partition._replace(
                        eligible=(), last_eligible=(), partition_epoch=partition.partition_epoch + 1
                    )

    def _config(self, record: ConfigRecord) -> None:
        try:
            entity = ConfigEntity(ConfigKind(record.resource_type), record.resource_name)
        except ValueError as error:
            raise CorruptionError(
                f"setting {record.name} belongs to a resource of type {record.resource_type}, "
                f"expected one of {', '.join(str(int(kind)) for kind in ConfigKind)}"
            ) from error
        _set_or_remove(self._metadata.configs, entity, record.name, record.value)

    def _quota(self, record: ClientQuotaRecord) -> None:
        names: dict[str, str | None] = {}
        for part in record.entity:
            if part.entity_type in names:
                raise CorruptionError(f"quota {record.key} names its {part.entity_type} twice")
            names[part.entity_type] = part.entity_name
        entity = tuple(sorted(names.items()))
        value = None if record.remove else record.value
        _set_or_remove(self._metadata.quotas, entity, record.key, value)

    def _producer_ids(self, record: ProducerIdsRecord) -> None:
        self._metadata.next_producer_id = record.next_producer_id

    def _acl(self, record: AccessControlEntryRecord) -> None:
        try:
            pattern = Pattern(
                ResourceType(record.resource_type),
                record.resource_name,
                PatternType(record.pattern_type),
            )
            operation, permission = Operation(record.operation), Permission(record.permission_type)
        except ValueError as error:
            raise CorruptionError(
                f"the ACL of {record.principal} on {record.resource_name} has a code that means "
                f"nothing here: {error}"
            ) from error
        self._acls[record.id] = Acl(
            pattern, Entry(record.principal, record.host, operation, permission)
        )

    def _remove_acl(self, record: RemoveAccessControlEntryRecord) -> None:
        self._acls.pop(record.id, None)

    def _credential(self, record: UserScramCredentialRecord) -> None:
        if record.mechanism not in MECHANISMS:
            raise CorruptionError(
                f"user {record.name} has a credential of mechanism {record.mechanism}, expected "
                "1 (SCRAM-SHA-256) or 2 (SCRAM-SHA-512)"
            )
        self._metadata.credentials[record.name, record.mechanism] = ScramCredential(
            bytes(record.salt),
            bytes(record.stored_key),
            bytes(record.server_key),
            record.iterations,
        )

    def _remove_credential(self, record: RemoveUserScramCredentialRecord) -> None:
        self._metadata.credentials.pop((record.name, record.mechanism), None)

    def _token(self, record: DelegationTokenRecord) -> None:
        self._metadata.tokens[record.token_id] = Token(
            record.token_id,
            record.owner,
            record.requester,
            tuple(record.renewers),
            record.issue_timestamp,
            record.max_timestamp,
            record.expiration_timestamp,
        )

    def _remove_token(self, record: RemoveDelegationTokenRecord) -> None:
        self._metadata.tokens.pop(record.token_id, None)

    def _ignore(self, record: StoredMessage) -> None:
        """Leave the metadata as it is: the record is about the quorum, or says nothing."""


def _changed(partition: PartitionValue, record: PartitionChangeRecord) -> PartitionValue:
    """Return the partition with what the record names; its epoch grows with every record.

    The leader's epoch grows where a leader is named, also if it is the one of before.
    """
    replicas = partition.replicas if record.replicas is None else tuple(record.replicas)
    directories = partition.directories if record.directories is None else record.directories
    is_named = record.leader != UNCHANGED_LEADER
    is_recovering = partition.is_recovering
    if record.leader_recovery_state != UNCHANGED_RECOVERY:
        is_recovering = bool(record.leader_recovery_state)
    return PartitionValue(
        replicas,
        _changed_ids(record.isr, partition.isr),
        record.leader if is_named else partition.leader,
        partition.leader_epoch + is_named,
        _changed_ids(record.adding_replicas, partition.adding),
        _changed_ids(record.removing_replicas, partition.removing),
        is_recovering,
        partition.partition_epoch + 1,
        _directories(directories, len(replicas)),
        _changed_ids(record.eligible_leader_replicas, partition.eligible),
        _changed_ids(record.last_known_elr, partition.last_eligible),
    )


def _changed_ids(new_ids: list[int] | None, ids: tuple[int, ...]) -> tuple[int, ...]:
    """Return the ids of brokers that a record names, else those of before."""
    return ids if new_ids is None else tuple(new_ids)


def _directories(directories: Iterable[bytes], replica_count: int) -> tuple[bytes, ...]:
    """Return the directory of each replica, empty where none was written down.

    Raises CorruptionError where they are not as many as the replicas.
    """
    ids = tuple(directories)
    if all(directory == NO_DIRECTORY for directory in ids):
        return ()
    if len(ids) != replica_count:
        raise CorruptionError(
            f"a partition has {replica_count} replicas and {len(ids)} directories, expected as many"
        )
    return ids


def _set_or_remove(
    table: dict[Key, dict[str, Value]], entity: Key, name: str, value: Value | None
) -> None:
    """Set a value of an entity, or remove it (None); an entity without values goes."""
    if value is not None:
        table.setdefault(entity, {})[name] = value
    elif entity in table:
        table[entity].pop(name, None)
        if not table[entity]:
            del table[entity]
