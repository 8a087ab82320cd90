# fmt: off
# ruff: noqa: E501
"""Records of a KRaft controller's __cluster_metadata.

Generated from protocol_specs/stored/cluster_metadata.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_ZZ = Struct(">??")
_UHH = Struct(">Hh")
_BB = Struct(">bb")
_DZ = Struct(">d?")
_HH = Struct(">hh")
_IZ = Struct(">i?")
_III = Struct(">iii")
_IQ = Struct(">iq")
_IQQ = Struct(">iqq")
_QQQ = Struct(">qqq")


class BrokerEndpoint(Message):
    """Listeners that clients and brokers connect to."""

    __slots__ = ("name", "host", "port", "security_protocol")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 4, False),
        ("host", "string", 0, 4, False),
        ("port", "uint16", 0, 4, False),
        ("security_protocol", "int16", 0, 4, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
    ) -> None:
        self.name: str = name
        """Listener, by name."""
        self.host: str = host
        """Host that clients of the listener connect to."""
        self.port: int = port
        """Port of the listener."""
        self.security_protocol: int = security_protocol
        """Protocol of the listener: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "BrokerEndpoint":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.host = reader.compact_string()
        self.port, self.security_protocol = reader.fixed(_UHH)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_string(self.host)
        writer.append(_UHH.pack(self.port, self.security_protocol))
        writer.append(b"\x00")


class BrokerFeature(Message):
    """Versions of features that the node supports."""

    __slots__ = ("name", "min_supported_version", "max_supported_version")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 4, False),
        ("min_supported_version", "int16", 0, 4, False),
        ("max_supported_version", "int16", 0, 4, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.name: str = name
        """Feature, by name."""
        self.min_supported_version: int = min_supported_version
        """Lowest version that the node supports."""
        self.max_supported_version: int = max_supported_version
        """Highest version that the node supports."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "BrokerFeature":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.min_supported_version, self.max_supported_version = reader.fixed(_HH)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.append(_HH.pack(self.min_supported_version, self.max_supported_version))
        writer.append(b"\x00")


class RegisterBrokerRecord(Message):
    """A broker registers."""

    __slots__ = ("broker_id", "is_migrating_zk_broker", "incarnation_id", "broker_epoch", "end_points", "features", "rack", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("broker_id", "int32", 0, 4, False),
        ("is_migrating_zk_broker", "bool", 2, 4, False),
        ("incarnation_id", "uuid", 0, 4, False),
        ("broker_epoch", "int64", 0, 4, False),
        ("end_points", "BrokerEndpoint", 0, 4, False),
        ("features", "BrokerFeature", 0, 4, False),
        ("rack", "string", 0, 4, False),
        ("fenced", "bool", 0, 4, False),
        ("in_controlled_shutdown", "bool", 1, 4, False),
        ("log_dirs", "uuid", 3, 4, True),
        ("cordoned_log_dirs", "uuid", 4, 4, True),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        is_migrating_zk_broker: bool = False,
        incarnation_id: bytes = ZERO_UUID,
        broker_epoch: int = 0,
        end_points: list[BrokerEndpoint] | None = None,
        features: list[BrokerFeature] | None = None,
        rack: str | None = "",
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: list[bytes] | None = None,
        cordoned_log_dirs: list[bytes] | None = None,
    ) -> None:
        self.broker_id: int = broker_id
        """Broker, by id."""
        self.is_migrating_zk_broker: bool = is_migrating_zk_broker
        """v2+. Whether the broker comes from a cluster with ZooKeeper."""
        self.incarnation_id: bytes = incarnation_id
        """Id that the process made when it started."""
        self.broker_epoch: int = broker_epoch
        """Epoch of the broker's registration."""
        self.end_points: list[BrokerEndpoint] = [] if end_points is None else end_points
        """Listeners that clients and brokers connect to."""
        self.features: list[BrokerFeature] = [] if features is None else features
        """Versions of features that the node supports."""
        self.rack: str | None = rack
        """broker.rack; null = none."""
        self.fenced: bool = fenced
        """Whether the broker is kept out of leaders and metadata."""
        self.in_controlled_shutdown: bool = in_controlled_shutdown
        """v1+. Whether the broker is giving up its leaders to stop."""
        self.log_dirs: list[bytes] = [] if log_dirs is None else log_dirs
        """v3+. Ids of the broker's log directories that are online."""
        self.cordoned_log_dirs: list[bytes] | None = cordoned_log_dirs
        """v4+. Ids of log directories that take no new replicas; null when unknown."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RegisterBrokerRecord":
        self = cls.__new__(cls)
        if version >= 2:
            self.broker_id, self.is_migrating_zk_broker = reader.fixed(_IZ)
        else:
            self.broker_id = reader.int32()
            self.is_migrating_zk_broker = False
        self.incarnation_id = reader.uuid()
        self.broker_epoch = reader.int64()
        count = reader.compact_array_count()
        end_points: list[BrokerEndpoint] = []
        for _ in range(count):
            end_points.append(BrokerEndpoint.read(reader, version))
        self.end_points = end_points
        count = reader.compact_array_count()
        features: list[BrokerFeature] = []
        for _ in range(count):
            features.append(BrokerFeature.read(reader, version))
        self.features = features
        self.rack = reader.compact_nullable_string()
        if version >= 1:
            self.fenced, self.in_controlled_shutdown = reader.fixed(_ZZ)
        else:
            self.fenced = reader.boolean()
            self.in_controlled_shutdown = False
        self.log_dirs = []
        self.cordoned_log_dirs = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0 and version >= 3:
                count = reader.compact_array_count()
                log_dirs: list[bytes] = []
                for _ in range(count):
                    log_dirs.append(reader.uuid())
                self.log_dirs = log_dirs
            elif tag == 1 and version >= 4:
                count = reader.compact_nullable_array_count()
                cordoned_log_dirs: list[bytes] = []
                for _ in range(count):
                    cordoned_log_dirs.append(reader.uuid())
                self.cordoned_log_dirs = cordoned_log_dirs if count >= 0 else None
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.append(_IZ.pack(self.broker_id, self.is_migrating_zk_broker))
        else:
            if self.is_migrating_zk_broker:
                raise not_carried("RegisterBrokerRecord", "is_migrating_zk_broker", version)
            writer.int32(self.broker_id)
        writer.uuid(self.incarnation_id)
        writer.int64(self.broker_epoch)
        writer.compact_array_count(len(self.end_points))
        for broker_endpoint in self.end_points:
            broker_endpoint.write(writer, version)
        writer.compact_array_count(len(self.features))
        for broker_feature in self.features:
            broker_feature.write(writer, version)
        writer.compact_nullable_string(self.rack)
        if version >= 1:
            writer.append(_ZZ.pack(self.fenced, self.in_controlled_shutdown))
        else:
            if self.in_controlled_shutdown:
                raise not_carried("RegisterBrokerRecord", "in_controlled_shutdown", version)
            writer.boolean(self.fenced)
        tagged: list[tuple[int, Writer]] = []
        if self.log_dirs and version >= 3:
            value = Writer()
            value.compact_array_count(len(self.log_dirs))
            for uuid in self.log_dirs:
                value.uuid(uuid)
            tagged.append((0, value))
        elif self.log_dirs:
            raise not_carried("RegisterBrokerRecord", "log_dirs", version)
        if self.cordoned_log_dirs is not None and version >= 4:
            value = Writer()
            value.compact_array_count(-1 if self.cordoned_log_dirs is None else len(self.cordoned_log_dirs))
            for uuid in self.cordoned_log_dirs or []:
                value.uuid(uuid)
            tagged.append((1, value))
        elif self.cordoned_log_dirs is not None:
            raise not_carried("RegisterBrokerRecord", "cordoned_log_dirs", version)
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")


class UnregisterBrokerRecord(Message):
    """A broker's registration goes."""

    __slots__ = ("broker_id", "broker_epoch")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("broker_id", "int32", 0, 0, False),
        ("broker_epoch", "int64", 0, 0, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
    ) -> None:
        self.broker_id: int = broker_id
        """Broker, by id."""
        self.broker_epoch: int = broker_epoch
        """Epoch of the broker's registration."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UnregisterBrokerRecord":
        self = cls.__new__(cls)
        self.broker_id, self.broker_epoch = reader.fixed(_IQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQ.pack(self.broker_id, self.broker_epoch))
        writer.append(b"\x00")


class TopicRecord(Message):
    """A topic is made."""

    __slots__ = ("name", "topic_id")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("topic_id", "uuid", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.topic_id: bytes = topic_id
        """Topic, by id."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicRecord":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.topic_id = reader.uuid()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.uuid(self.topic_id)
        writer.append(b"\x00")


class PartitionRecord(Message):
    """A partition is made, or its whole state."""

    __slots__ = ("partition_id", "topic_id", "replicas", "isr", "removing_replicas", "adding_replicas", "leader", "leader_recovery_state", "leader_epoch", "partition_epoch", "directories", "eligible_leader_replicas", "last_known_elr")
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("partition_id", "int32", 0, 2, False),
        ("topic_id", "uuid", 0, 2, False),
        ("replicas", "int32", 0, 2, False),
        ("isr", "int32", 0, 2, False),
        ("removing_replicas", "int32", 0, 2, False),
        ("adding_replicas", "int32", 0, 2, False),
        ("leader", "int32", 0, 2, False),
        ("leader_recovery_state", "int8", 0, 2, True),
        ("leader_epoch", "int32", 0, 2, False),
        ("partition_epoch", "int32", 0, 2, False),
        ("directories", "uuid", 1, 2, False),
        ("eligible_leader_replicas", "int32", 2, 2, True),
        ("last_known_elr", "int32", 2, 2, True),
    )

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: bytes = ZERO_UUID,
        replicas: list[int] | None = None,
        isr: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        leader: int = -1,
        leader_recovery_state: int = 0,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: list[bytes] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id: int = partition_id
        """Partition number within the topic, counted from 0."""
        self.topic_id: bytes = topic_id
        """Topic, by id."""
        self.replicas: list[int] = [] if replicas is None else replicas
        """Brokers with a replica, the preferred leader first."""
        self.isr: list[int] = [] if isr is None else isr
        """Brokers in sync."""
        self.removing_replicas: list[int] = [] if removing_replicas is None else removing_replicas
        """Replicas that a reassignment takes away."""
        self.adding_replicas: list[int] = [] if adding_replicas is None else adding_replicas
        """Replicas that a reassignment adds."""
        self.leader: int = leader
        """Leader of the partition, by broker id; -1 when it has none."""
        self.leader_recovery_state: int = leader_recovery_state
        """0 recovered, 1 recovering after an unclean election."""
        self.leader_epoch: int = leader_epoch
        """Epoch of the leader."""
        self.partition_epoch: int = partition_epoch
        """Number that grows with each change of the partition."""
        self.directories: list[bytes] = [] if directories is None else directories
        """v1+. Id of the log directory of each replica, in the order of the replicas."""
        self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
        """v2+. Replicas out of sync that may become leader without loss (KIP-966); null when unknown."""
        self.last_known_elr: list[int] | None = last_known_elr
        """v2+. Last eligible replicas and replicas in sync that were lost (KIP-966); null when unknown."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionRecord":
        self = cls.__new__(cls)
        self.partition_id = reader.int32()
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        self.replicas = reader.numbers(count, "i")
        count = reader.compact_array_count()
        self.isr = reader.numbers(count, "i")
        count = reader.compact_array_count()
        self.removing_replicas = reader.numbers(count, "i")
        count = reader.compact_array_count()
        self.adding_replicas = reader.numbers(count, "i")
        self.leader, self.leader_epoch, self.partition_epoch = reader.fixed(_III)
        if version >= 1:
            count = reader.compact_array_count()
            directories: list[bytes] = []
            for _ in range(count):
                directories.append(reader.uuid())
            self.directories = directories
        else:
            self.directories = []
        self.leader_recovery_state = 0
        self.eligible_leader_replicas = None
        self.last_known_elr = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                self.leader_recovery_state = reader.int8()
            elif tag == 1 and version >= 2:
                count = reader.compact_nullable_array_count()
                self.eligible_leader_replicas = reader.numbers(count, "i") if count >= 0 else None
            elif tag == 2 and version >= 2:
                count = reader.compact_nullable_array_count()
                self.last_known_elr = reader.numbers(count, "i") if count >= 0 else None
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_id)
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.replicas))
        writer.numbers(self.replicas, "i")
        writer.compact_array_count(len(self.isr))
        writer.numbers(self.isr, "i")
        writer.compact_array_count(len(self.removing_replicas))
        writer.numbers(self.removing_replicas, "i")
        writer.compact_array_count(len(self.adding_replicas))
        writer.numbers(self.adding_replicas, "i")
        writer.append(_III.pack(self.leader, self.leader_epoch, self.partition_epoch))
        if version >= 1:
            writer.compact_array_count(len(self.directories))
            for uuid in self.directories:
                writer.uuid(uuid)
        else:
            if self.directories:
                raise not_carried("PartitionRecord", "directories", version)
        tagged: list[tuple[int, Writer]] = []
        if self.leader_recovery_state != 0:
            value = Writer()
            value.int8(self.leader_recovery_state)
            tagged.append((0, value))
        if self.eligible_leader_replicas is not None and version >= 2:
            value = Writer()
            value.compact_array_count(-1 if self.eligible_leader_replicas is None else len(self.eligible_leader_replicas))
            value.numbers(self.eligible_leader_replicas or [], "i")
            tagged.append((1, value))
        elif self.eligible_leader_replicas is not None:
            raise not_carried("PartitionRecord", "eligible_leader_replicas", version)
        if self.last_known_elr is not None and version >= 2:
            value = Writer()
            value.compact_array_count(-1 if self.last_known_elr is None else len(self.last_known_elr))
            value.numbers(self.last_known_elr or [], "i")
            tagged.append((2, value))
        elif self.last_known_elr is not None:
            raise not_carried("PartitionRecord", "last_known_elr", version)
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")


class ConfigRecord(Message):
    """A setting of a topic, broker or other resource."""

    __slots__ = ("resource_type", "resource_name", "name", "value")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("resource_type", "int8", 0, 0, False),
        ("resource_name", "string", 0, 0, False),
        ("name", "string", 0, 0, False),
        ("value", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.resource_type: int = resource_type
        """Kind of the resource: 2 topic, 4 broker, and those of ACLs."""
        self.resource_name: str = resource_name
        """Resource, by name."""
        self.name: str = name
        """Setting, by name."""
        self.value: str | None = value
        """Value of the setting; null takes it away."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConfigRecord":
        self = cls.__new__(cls)
        self.resource_type = reader.int8()
        self.resource_name = reader.compact_string()
        self.name = reader.compact_string()
        self.value = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        writer.compact_string(self.resource_name)
        writer.compact_string(self.name)
        writer.compact_nullable_string(self.value)
        writer.append(b"\x00")


class PartitionChangeRecord(Message):
    """A partition changes; a field that is not set stays."""

    __slots__ = ("partition_id", "topic_id", "isr", "leader", "replicas", "removing_replicas", "adding_replicas", "leader_recovery_state", "directories", "eligible_leader_replicas", "last_known_elr")
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("partition_id", "int32", 0, 2, False),
        ("topic_id", "uuid", 0, 2, False),
        ("isr", "int32", 0, 2, True),
        ("leader", "int32", 0, 2, True),
        ("replicas", "int32", 0, 2, True),
        ("removing_replicas", "int32", 0, 2, True),
        ("adding_replicas", "int32", 0, 2, True),
        ("leader_recovery_state", "int8", 0, 2, True),
        ("directories", "uuid", 1, 2, True),
        ("eligible_leader_replicas", "int32", 2, 2, True),
        ("last_known_elr", "int32", 2, 2, True),
    )

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: bytes = ZERO_UUID,
        isr: list[int] | None = None,
        leader: int = -2,
        replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        leader_recovery_state: int = -1,
        directories: list[bytes] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id: int = partition_id
        """Partition number within the topic, counted from 0."""
        self.topic_id: bytes = topic_id
        """Topic, by id."""
        self.isr: list[int] | None = isr
        """Brokers in sync; null = no change."""
        self.leader: int = leader
        """Leader, by broker id; -1 when it has none, -2 = no change."""
        self.replicas: list[int] | None = replicas
        """Brokers with a replica; null = no change."""
        self.removing_replicas: list[int] | None = removing_replicas
        """Replicas that a reassignment takes away; null = no change."""
        self.adding_replicas: list[int] | None = adding_replicas
        """Replicas that a reassignment adds; null = no change."""
        self.leader_recovery_state: int = leader_recovery_state
        """0 recovered, 1 recovering after an unclean election, -1 = no change."""
        self.directories: list[bytes] | None = directories
        """v1+. Id of the log directory of each replica; null = no change."""
        self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
        """v2+. Replicas out of sync that may become leader without loss (KIP-966); null = no change."""
        self.last_known_elr: list[int] | None = last_known_elr
        """v2+. Last eligible replicas and replicas in sync that were lost (KIP-966); null = no change."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionChangeRecord":
        self = cls.__new__(cls)
        self.partition_id = reader.int32()
        self.topic_id = reader.uuid()
        self.isr = None
        self.leader = -2
        self.replicas = None
        self.removing_replicas = None
        self.adding_replicas = None
        self.leader_recovery_state = -1
        self.eligible_leader_replicas = None
        self.last_known_elr = None
        self.directories = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                count = reader.compact_nullable_array_count()
                self.isr = reader.numbers(count, "i") if count >= 0 else None
            elif tag == 1:
                self.leader = reader.int32()
            elif tag == 2:
                count = reader.compact_nullable_array_count()
                self.replicas = reader.numbers(count, "i") if count >= 0 else None
            elif tag == 3:
                count = reader.compact_nullable_array_count()
                self.removing_replicas = reader.numbers(count, "i") if count >= 0 else None
            elif tag == 4:
                count = reader.compact_nullable_array_count()
                self.adding_replicas = reader.numbers(count, "i") if count >= 0 else None
            elif tag == 5:
                self.leader_recovery_state = reader.int8()
            elif tag == 6 and version >= 2:
                count = reader.compact_nullable_array_count()
                self.eligible_leader_replicas = reader.numbers(count, "i") if count >= 0 else None
            elif tag == 7 and version >= 2:
                count = reader.compact_nullable_array_count()
                self.last_known_elr = reader.numbers(count, "i") if count >= 0 else None
            elif tag == 8 and version >= 1:
                count = reader.compact_nullable_array_count()
                directories: list[bytes] = []
                for _ in range(count):
                    directories.append(reader.uuid())
                self.directories = directories if count >= 0 else None
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_id)
        writer.uuid(self.topic_id)
        tagged: list[tuple[int, Writer]] = []
        if self.isr is not None:
            value = Writer()
            value.compact_array_count(-1 if self.isr is None else len(self.isr))
            value.numbers(self.isr or [], "i")
            tagged.append((0, value))
        if self.leader != -2:
            value = Writer()
            value.int32(self.leader)
            tagged.append((1, value))
        if self.replicas is not None:
            value = Writer()
            value.compact_array_count(-1 if self.replicas is None else len(self.replicas))
            value.numbers(self.replicas or [], "i")
            tagged.append((2, value))
        if self.removing_replicas is not None:
            value = Writer()
            value.compact_array_count(-1 if self.removing_replicas is None else len(self.removing_replicas))
            value.numbers(self.removing_replicas or [], "i")
            tagged.append((3, value))
        if self.adding_replicas is not None:
            value = Writer()
            value.compact_array_count(-1 if self.adding_replicas is None else len(self.adding_replicas))
            value.numbers(self.adding_replicas or [], "i")
            tagged.append((4, value))
        if self.leader_recovery_state != -1:
            value = Writer()
            value.int8(self.leader_recovery_state)
            tagged.append((5, value))
        if self.eligible_leader_replicas is not None and version >= 2:
            value = Writer()
            value.compact_array_count(-1 if self.eligible_leader_replicas is None else len(self.eligible_leader_replicas))
            value.numbers(self.eligible_leader_replicas or [], "i")
            tagged.append((6, value))
        elif self.eligible_leader_replicas is not None:
            raise not_carried("PartitionChangeRecord", "eligible_leader_replicas", version)
        if self.last_known_elr is not None and version >= 2:
            value = Writer()
            value.compact_array_count(-1 if self.last_known_elr is None else len(self.last_known_elr))
            value.numbers(self.last_known_elr or [], "i")
            tagged.append((7, value))
        elif self.last_known_elr is not None:
            raise not_carried("PartitionChangeRecord", "last_known_elr", version)
        if self.directories is not None and version >= 1:
            value = Writer()
            value.compact_array_count(-1 if self.directories is None else len(self.directories))
            for uuid in self.directories or []:
                value.uuid(uuid)
            tagged.append((8, value))
        elif self.directories is not None:
            raise not_carried("PartitionChangeRecord", "directories", version)
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")


class FenceBrokerRecord(Message):
    """A broker is fenced (before BrokerRegistrationChangeRecord)."""

    __slots__ = ("id", "epoch")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("id", "int32", 0, 0, False),
        ("epoch", "int64", 0, 0, False),
    )

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
    ) -> None:
        self.id: int = id
        """Broker, by id."""
        self.epoch: int = epoch
        """Epoch of the broker's registration."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FenceBrokerRecord":
        self = cls.__new__(cls)
        self.id, self.epoch = reader.fixed(_IQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQ.pack(self.id, self.epoch))
        writer.append(b"\x00")


class UnfenceBrokerRecord(Message):
    """A broker is no longer fenced (before BrokerRegistrationChangeRecord)."""

    __slots__ = ("id", "epoch")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("id", "int32", 0, 0, False),
        ("epoch", "int64", 0, 0, False),
    )

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
    ) -> None:
        self.id: int = id
        """Broker, by id."""
        self.epoch: int = epoch
        """Epoch of the broker's registration."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UnfenceBrokerRecord":
        self = cls.__new__(cls)
        self.id, self.epoch = reader.fixed(_IQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQ.pack(self.id, self.epoch))
        writer.append(b"\x00")


class RemoveTopicRecord(Message):
    """A topic goes."""

    __slots__ = ("topic_id",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by id."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RemoveTopicRecord":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.append(b"\x00")


class DelegationTokenRecord(Message):
    """A delegation token."""

    __slots__ = ("owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiration_timestamp", "token_id")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("owner", "string", 0, 0, False),
        ("requester", "string", 0, 0, False),
        ("renewers", "string", 0, 0, False),
        ("issue_timestamp", "int64", 0, 0, False),
        ("max_timestamp", "int64", 0, 0, False),
        ("expiration_timestamp", "int64", 0, 0, False),
        ("token_id", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        owner: str = "",
        requester: str = "",
        renewers: list[str] | None = None,
        issue_timestamp: int = 0,
        max_timestamp: int = 0,
        expiration_timestamp: int = 0,
        token_id: str = "",
    ) -> None:
        self.owner: str = owner
        """Principal that owns the token."""
        self.requester: str = requester
        """Principal that asked for the token."""
        self.renewers: list[str] = [] if renewers is None else renewers
        """Principals that may renew the token."""
        self.issue_timestamp: int = issue_timestamp
        """When the token was issued, ms since the epoch."""
        self.max_timestamp: int = max_timestamp
        """Until when the token can be renewed, ms since the epoch."""
        self.expiration_timestamp: int = expiration_timestamp
        """When the token expires, ms since the epoch."""
        self.token_id: str = token_id
        """Token, by id."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DelegationTokenRecord":
        self = cls.__new__(cls)
        self.owner = reader.compact_string()
        self.requester = reader.compact_string()
        count = reader.compact_array_count()
        renewers: list[str] = []
        for _ in range(count):
            renewers.append(reader.compact_string())
        self.renewers = renewers
        (
            self.issue_timestamp,
            self.max_timestamp,
            self.expiration_timestamp,
        ) = reader.fixed(_QQQ)
        self.token_id = reader.compact_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.owner)
        writer.compact_string(self.requester)
        writer.compact_array_count(len(self.renewers))
        for text in self.renewers:
            writer.compact_string(text)
        writer.append(_QQQ.pack(
            self.issue_timestamp,
            self.max_timestamp,
            self.expiration_timestamp,
        ))
        writer.compact_string(self.token_id)
        writer.append(b"\x00")


class UserScramCredentialRecord(Message):
    """A user's SCRAM credential."""

    __slots__ = ("name", "mechanism", "salt", "stored_key", "server_key", "iterations")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("mechanism", "int8", 0, 0, False),
        ("salt", "bytes", 0, 0, False),
        ("stored_key", "bytes", 0, 0, False),
        ("server_key", "bytes", 0, 0, False),
        ("iterations", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        salt: bytes = b"",
        stored_key: bytes = b"",
        server_key: bytes = b"",
        iterations: int = 0,
    ) -> None:
        self.name: str = name
        """User, by name."""
        self.mechanism: int = mechanism
        """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
        self.salt: bytes = salt
        """Salt of the password."""
        self.stored_key: bytes = stored_key
        """Hash of the client key."""
        self.server_key: bytes = server_key
        """Server key."""
        self.iterations: int = iterations
        """Iterations of the hash."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UserScramCredentialRecord":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.mechanism = reader.int8()
        self.salt = reader.compact_byte_string()
        self.stored_key = reader.compact_byte_string()
        self.server_key = reader.compact_byte_string()
        self.iterations = reader.int32()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int8(self.mechanism)
        writer.compact_byte_string(self.salt)
        writer.compact_byte_string(self.stored_key)
        writer.compact_byte_string(self.server_key)
        writer.int32(self.iterations)
        writer.append(b"\x00")


class FeatureLevelRecord(Message):
    """The finalized version of a feature."""

    __slots__ = ("name", "feature_level")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("feature_level", "int16", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        feature_level: int = 0,
    ) -> None:
        self.name: str = name
        """Feature, by name."""
        self.feature_level: int = feature_level
        """Finalized version of the feature; 0 takes it away."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FeatureLevelRecord":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.feature_level = reader.int16()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int16(self.feature_level)
        writer.append(b"\x00")


class EntityData(Message):
    """Parts of the quota's entity."""

    __slots__ = ("entity_type", "entity_name")
    JSON_FIELDS: JsonFields = (
        ("entity_type", "string", 0, 0, False),
        ("entity_name", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type: str = entity_type
        """user, client-id or ip."""
        self.entity_name: str | None = entity_name
        """Name of that part; null = the default entity."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "EntityData":
        self = cls.__new__(cls)
        self.entity_type = reader.compact_string()
        self.entity_name = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.entity_type)
        writer.compact_nullable_string(self.entity_name)
        writer.append(b"\x00")


class ClientQuotaRecord(Message):
    """A quota of a user, client or address."""

    __slots__ = ("entity", "key", "value", "remove")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("entity", "EntityData", 0, 0, False),
        ("key", "string", 0, 0, False),
        ("value", "float64", 0, 0, False),
        ("remove", "bool", 0, 0, False),
    )

    def __init__(
        self,
        *,
        entity: list[EntityData] | None = None,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.entity: list[EntityData] = [] if entity is None else entity
        """Parts of the quota's entity."""
        self.key: str = key
        """Quota, by name, such as producer_byte_rate."""
        self.value: float = value
        """Limit."""
        self.remove: bool = remove
        """Whether the quota is taken away."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ClientQuotaRecord":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        entity: list[EntityData] = []
        for _ in range(count):
            entity.append(EntityData.read(reader, version))
        self.entity = entity
        self.key = reader.compact_string()
        self.value, self.remove = reader.fixed(_DZ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.entity))
        for entity_data in self.entity:
            entity_data.write(writer, version)
        writer.compact_string(self.key)
        writer.append(_DZ.pack(self.value, self.remove))
        writer.append(b"\x00")


class ProducerIdsRecord(Message):
    """A broker takes a block of producer ids."""

    __slots__ = ("broker_id", "broker_epoch", "next_producer_id")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("broker_id", "int32", 0, 0, False),
        ("broker_epoch", "int64", 0, 0, False),
        ("next_producer_id", "int64", 0, 0, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        next_producer_id: int = 0,
    ) -> None:
        self.broker_id: int = broker_id
        """Broker, by id."""
        self.broker_epoch: int = broker_epoch
        """Epoch of the broker's registration."""
        self.next_producer_id: int = next_producer_id
        """First producer id of the next block."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ProducerIdsRecord":
        self = cls.__new__(cls)
        self.broker_id, self.broker_epoch, self.next_producer_id = reader.fixed(_IQQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQQ.pack(self.broker_id, self.broker_epoch, self.next_producer_id))
        writer.append(b"\x00")


class BrokerRegistrationChangeRecord(Message):
    """A broker's registration changes."""

    __slots__ = ("broker_id", "broker_epoch", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("broker_id", "int32", 0, 3, False),
        ("broker_epoch", "int64", 0, 3, False),
        ("fenced", "int8", 0, 3, True),
        ("in_controlled_shutdown", "int8", 1, 3, True),
        ("log_dirs", "uuid", 2, 3, True),
        ("cordoned_log_dirs", "uuid", 3, 3, True),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: list[bytes] | None = None,
        cordoned_log_dirs: list[bytes] | None = None,
    ) -> None:
        self.broker_id: int = broker_id
        """Broker, by id."""
        self.broker_epoch: int = broker_epoch
        """Epoch of the broker's registration."""
        self.fenced: int = fenced
        """1 the broker becomes fenced, -1 it is no longer, 0 = no change."""
        self.in_controlled_shutdown: int = in_controlled_shutdown
        """v1+. 1 the broker begins to stop, 0 = no change."""
        self.log_dirs: list[bytes] = [] if log_dirs is None else log_dirs
        """v2+. Ids of the log directories that are online; empty = no change."""
        self.cordoned_log_dirs: list[bytes] | None = cordoned_log_dirs
        """v3+. Ids of log directories that take no new replicas; null = no change."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "BrokerRegistrationChangeRecord":
        self = cls.__new__(cls)
        self.broker_id, self.broker_epoch = reader.fixed(_IQ)
        self.fenced = 0
        self.in_controlled_shutdown = 0
        self.log_dirs = []
        self.cordoned_log_dirs = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                self.fenced = reader.int8()
            elif tag == 1 and version >= 1:
                self.in_controlled_shutdown = reader.int8()
            elif tag == 2 and version >= 2:
                count = reader.compact_array_count()
                log_dirs: list[bytes] = []
                for _ in range(count):
                    log_dirs.append(reader.uuid())
                self.log_dirs = log_dirs
            elif tag == 3 and version >= 3:
                count = reader.compact_nullable_array_count()
                cordoned_log_dirs: list[bytes] = []
                for _ in range(count):
                    cordoned_log_dirs.append(reader.uuid())
                self.cordoned_log_dirs = cordoned_log_dirs if count >= 0 else None
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQ.pack(self.broker_id, self.broker_epoch))
        tagged: list[tuple[int, Writer]] = []
        if self.fenced != 0:
            value = Writer()
            value.int8(self.fenced)
            tagged.append((0, value))
        if self.in_controlled_shutdown != 0 and version >= 1:
            value = Writer()
            value.int8(self.in_controlled_shutdown)
            tagged.append((1, value))
        elif self.in_controlled_shutdown != 0:
            raise not_carried("BrokerRegistrationChangeRecord", "in_controlled_shutdown", version)
        if self.log_dirs and version >= 2:
            value = Writer()
            value.compact_array_count(len(self.log_dirs))
            for uuid in self.log_dirs:
                value.uuid(uuid)
            tagged.append((2, value))
        elif self.log_dirs:
            raise not_carried("BrokerRegistrationChangeRecord", "log_dirs", version)
        if self.cordoned_log_dirs is not None and version >= 3:
            value = Writer()
            value.compact_array_count(-1 if self.cordoned_log_dirs is None else len(self.cordoned_log_dirs))
            for uuid in self.cordoned_log_dirs or []:
                value.uuid(uuid)
            tagged.append((3, value))
        elif self.cordoned_log_dirs is not None:
            raise not_carried("BrokerRegistrationChangeRecord", "cordoned_log_dirs", version)
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")


class AccessControlEntryRecord(Message):
    """An ACL."""

    __slots__ = ("id", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("id", "uuid", 0, 0, False),
        ("resource_type", "int8", 0, 0, False),
        ("resource_name", "string", 0, 0, False),
        ("pattern_type", "int8", 0, 0, False),
        ("principal", "string", 0, 0, False),
        ("host", "string", 0, 0, False),
        ("operation", "int8", 0, 0, False),
        ("permission_type", "int8", 0, 0, False),
    )

    def __init__(
        self,
        *,
        id: bytes = ZERO_UUID,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 0,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.id: bytes = id
        """ACL, by id."""
        self.resource_type: int = resource_type
        """Kind of the resource: 2 topic, 4 broker, and those of ACLs."""
        self.resource_name: str = resource_name
        """Resource, by name."""
        self.pattern_type: int = pattern_type
        """Pattern of the resource name: 3 literal, 4 prefixed."""
        self.principal: str = principal
        """Principal, as type:name."""
        self.host: str = host
        """Host that the ACL is for; * = every host."""
        self.operation: int = operation
        """Operation, by its number in ACLs."""
        self.permission_type: int = permission_type
        """2 deny, 3 allow."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AccessControlEntryRecord":
        self = cls.__new__(cls)
        self.id = reader.uuid()
        self.resource_type = reader.int8()
        self.resource_name = reader.compact_string()
        self.pattern_type = reader.int8()
        self.principal = reader.compact_string()
        self.host = reader.compact_string()
        self.operation, self.permission_type = reader.fixed(_BB)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.id)
        writer.int8(self.resource_type)
        writer.compact_string(self.resource_name)
        writer.int8(self.pattern_type)
        writer.compact_string(self.principal)
        writer.compact_string(self.host)
        writer.append(_BB.pack(self.operation, self.permission_type))
        writer.append(b"\x00")


class RemoveAccessControlEntryRecord(Message):
    """An ACL goes."""

    __slots__ = ("id",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("id", "uuid", 0, 0, False),
    )

    def __init__(
        self,
        *,
        id: bytes = ZERO_UUID,
    ) -> None:
        self.id: bytes = id
        """ACL, by id."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RemoveAccessControlEntryRecord":
        self = cls.__new__(cls)
        self.id = reader.uuid()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.id)
        writer.append(b"\x00")


class NoOpRecord(Message):
    """Nothing; it moves the end of the log."""

    __slots__ = ()
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0

    def __init__(self) -> None:
        """No fields."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "NoOpRecord":
        self = cls.__new__(cls)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(b"\x00")


class ZkMigrationStateRecord(Message):
    """State of the migration from ZooKeeper."""

    __slots__ = ("zk_migration_state",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("zk_migration_state", "int8", 0, 0, False),
    )

    def __init__(
        self,
        *,
        zk_migration_state: int = 0,
    ) -> None:
        self.zk_migration_state: int = zk_migration_state
        """State of the migration from ZooKeeper, by number; 0 = none."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ZkMigrationStateRecord":
        self = cls.__new__(cls)
        self.zk_migration_state = reader.int8()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int8(self.zk_migration_state)
        writer.append(b"\x00")


class RemoveUserScramCredentialRecord(Message):
    """A user's SCRAM credential goes."""

    __slots__ = ("name", "mechanism")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("mechanism", "int8", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name: str = name
        """User, by name."""
        self.mechanism: int = mechanism
        """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RemoveUserScramCredentialRecord":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.mechanism = reader.int8()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int8(self.mechanism)
        writer.append(b"\x00")


class BeginTransactionRecord(Message):
    """Records begin that apply only together."""

    __slots__ = ("name",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, True),
    )

    def __init__(
        self,
        *,
        name: str | None = None,
    ) -> None:
        self.name: str | None = name
        """Name of the transaction; null = none."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "BeginTransactionRecord":
        self = cls.__new__(cls)
        self.name = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                self.name = reader.compact_nullable_string()
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        tagged: list[tuple[int, Writer]] = []
        if self.name is not None:
            value = Writer()
            value.compact_nullable_string(self.name)
            tagged.append((0, value))
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")


class EndTransactionRecord(Message):
    """The records of the transaction apply."""

    __slots__ = ()
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0

    def __init__(self) -> None:
        """No fields."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "EndTransactionRecord":
        self = cls.__new__(cls)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(b"\x00")


class AbortTransactionRecord(Message):
    """The records of the transaction do not apply."""

    __slots__ = ("reason",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("reason", "string", 0, 0, True),
    )

    def __init__(
        self,
        *,
        reason: str | None = None,
    ) -> None:
        self.reason: str | None = reason
        """Reason of the abort; null = none."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AbortTransactionRecord":
        self = cls.__new__(cls)
        self.reason = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                self.reason = reader.compact_nullable_string()
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        tagged: list[tuple[int, Writer]] = []
        if self.reason is not None:
            value = Writer()
            value.compact_nullable_string(self.reason)
            tagged.append((0, value))
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")


class RemoveDelegationTokenRecord(Message):
    """A delegation token goes."""

    __slots__ = ("token_id",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("token_id", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        token_id: str = "",
    ) -> None:
        self.token_id: str = token_id
        """Token, by id."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RemoveDelegationTokenRecord":
        self = cls.__new__(cls)
        self.token_id = reader.compact_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.token_id)
        writer.append(b"\x00")


class ControllerEndpoint(Message):
    """Listeners that clients and brokers connect to."""

    __slots__ = ("name", "host", "port", "security_protocol")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("host", "string", 0, 0, False),
        ("port", "uint16", 0, 0, False),
        ("security_protocol", "int16", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
    ) -> None:
        self.name: str = name
        """Listener, by name."""
        self.host: str = host
        """Host that clients of the listener connect to."""
        self.port: int = port
        """Port of the listener."""
        self.security_protocol: int = security_protocol
        """Protocol of the listener: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ControllerEndpoint":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.host = reader.compact_string()
        self.port, self.security_protocol = reader.fixed(_UHH)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_string(self.host)
        writer.append(_UHH.pack(self.port, self.security_protocol))
        writer.append(b"\x00")


class ControllerFeature(Message):
    """Versions of features that the node supports."""

    __slots__ = ("name", "min_supported_version", "max_supported_version")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("min_supported_version", "int16", 0, 0, False),
        ("max_supported_version", "int16", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.name: str = name
        """Feature, by name."""
        self.min_supported_version: int = min_supported_version
        """Lowest version that the node supports."""
        self.max_supported_version: int = max_supported_version
        """Highest version that the node supports."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ControllerFeature":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.min_supported_version, self.max_supported_version = reader.fixed(_HH)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.append(_HH.pack(self.min_supported_version, self.max_supported_version))
        writer.append(b"\x00")


class RegisterControllerRecord(Message):
    """A controller registers."""

    __slots__ = ("controller_id", "incarnation_id", "zk_migration_ready", "end_points", "features")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("controller_id", "int32", 0, 0, False),
        ("incarnation_id", "uuid", 0, 0, False),
        ("zk_migration_ready", "bool", 0, 0, False),
        ("end_points", "ControllerEndpoint", 0, 0, False),
        ("features", "ControllerFeature", 0, 0, False),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: bytes = ZERO_UUID,
        zk_migration_ready: bool = False,
        end_points: list[ControllerEndpoint] | None = None,
        features: list[ControllerFeature] | None = None,
    ) -> None:
        self.controller_id: int = controller_id
        """Controller, by node id."""
        self.incarnation_id: bytes = incarnation_id
        """Id that the process made when it started."""
        self.zk_migration_ready: bool = zk_migration_ready
        """Whether the controller can migrate from ZooKeeper."""
        self.end_points: list[ControllerEndpoint] = [] if end_points is None else end_points
        """Listeners that clients and brokers connect to."""
        self.features: list[ControllerFeature] = [] if features is None else features
        """Versions of features that the node supports."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RegisterControllerRecord":
        self = cls.__new__(cls)
        self.controller_id = reader.int32()
        self.incarnation_id = reader.uuid()
        self.zk_migration_ready = reader.boolean()
        count = reader.compact_array_count()
        end_points: list[ControllerEndpoint] = []
        for _ in range(count):
            end_points.append(ControllerEndpoint.read(reader, version))
        self.end_points = end_points
        count = reader.compact_array_count()
        features: list[ControllerFeature] = []
        for _ in range(count):
            features.append(ControllerFeature.read(reader, version))
        self.features = features
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.controller_id)
        writer.uuid(self.incarnation_id)
        writer.boolean(self.zk_migration_ready)
        writer.compact_array_count(len(self.end_points))
        for controller_endpoint in self.end_points:
            controller_endpoint.write(writer, version)
        writer.compact_array_count(len(self.features))
        for controller_feature in self.features:
            controller_feature.write(writer, version)
        writer.append(b"\x00")


class ClearElrRecord(Message):
    """The eligible leader replicas of a topic, or of all topics, are forgotten."""

    __slots__ = ("topic_name",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ClearElrRecord":
        self = cls.__new__(cls)
        self.topic_name = reader.compact_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.append(b"\x00")


class UnregisterControllerRecord(Message):
    """A controller's registration goes."""

    __slots__ = ("controller_id",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("controller_id", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
    ) -> None:
        self.controller_id: int = controller_id
        """Controller, by node id."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UnregisterControllerRecord":
        self = cls.__new__(cls)
        self.controller_id = reader.int32()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.controller_id)
        writer.append(b"\x00")


RECORDS = {
    0: RegisterBrokerRecord,
    1: UnregisterBrokerRecord,
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    5: PartitionChangeRecord,
    7: FenceBrokerRecord,
    8: UnfenceBrokerRecord,
    9: RemoveTopicRecord,
    10: DelegationTokenRecord,
    11: UserScramCredentialRecord,
    12: FeatureLevelRecord,
    14: ClientQuotaRecord,
    15: ProducerIdsRecord,
    17: BrokerRegistrationChangeRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    20: NoOpRecord,
    21: ZkMigrationStateRecord,
    22: RemoveUserScramCredentialRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
    26: RemoveDelegationTokenRecord,
    27: RegisterControllerRecord,
    28: ClearElrRecord,
    29: UnregisterControllerRecord,
}
"""Type → class."""
