# fmt: off
# ruff: noqa: E501
"""Metadata: key 3, versions 0 to 13.

Every client asks where brokers, topics and partition leaders are; any broker answers, and may create topics.

Versions:
1: Racks, controller id, internal flag; null instead of empty means all topics.
2: Cluster id in the response (KIP-78).
3: Throttle time in the response.
4: Caller may forbid automatic topic creation.
5: Offline replicas per partition (KIP-112).
6: Over quota, the answer goes out first and the pause follows (KIP-219).
7: Leader epoch per partition (KIP-320).
8: Authorized operations can be asked for (KIP-430).
9: Flexible encoding (KIP-482).
10: Topic ids in the response; the id in the request is not usable yet (KIP-516).
11: Cluster operations leave: DescribeCluster has them now (KIP-700).
12: Topics can be asked for by id.
13: Error for the whole response, e.g. REBOOTSTRAP_REQUIRED (KIP-1102).

Generated from protocol_specs/apis/03_metadata.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried, null_not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_ZZ = Struct(">??")
_ZZZ = Struct(">???")
_HII = Struct(">hii")
_HIII = Struct(">hiii")


class MetadataRequestTopic(Message):
    """Topics wanted; null = all (v0: empty = all), empty = none, just the cluster."""

    __slots__ = ("topic_id", "name")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 10, 13, False),
        ("name", "string", 0, 13, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        name: str | None = "",
    ) -> None:
        self.topic_id: bytes = topic_id
        """v10+. Topic wanted, by id; zero when asked by name. Honoured from v12 on."""
        self.name: str | None = name
        """Topic wanted, by name; null when asked by id (v12 and up)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "MetadataRequestTopic":
        self = cls.__new__(cls)
        if version >= 10:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 10:
            self.name = reader.compact_nullable_string()
        elif version >= 9:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 9:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 10:
            writer.uuid(self.topic_id)
        if version >= 10:
            writer.compact_nullable_string(self.name)
        elif version >= 9:
            if self.name is None:
                raise null_not_carried("name", version)
            writer.compact_string(self.name)
        else:
            if self.name is None:
                raise null_not_carried("name", version)
            writer.string(self.name)
        if version >= 9:
            writer.append(b"\x00")


class MetadataRequest(Message):
    """Request of Metadata."""

    __slots__ = ("topics", "allow_auto_topic_creation", "include_cluster_authorized_operations", "include_topic_authorized_operations")
    API_KEY = 3
    VERSIONS = (0, 13)
    FLEXIBLE_FROM: int | None = 9
    JSON_FIELDS: JsonFields = (
        ("topics", "MetadataRequestTopic", 0, 13, False),
        ("allow_auto_topic_creation", "bool", 4, 13, False),
        ("include_cluster_authorized_operations", "bool", 8, 10, False),
        ("include_topic_authorized_operations", "bool", 8, 13, False),
    )

    def __init__(
        self,
        *,
        topics: list[MetadataRequestTopic] | None | tuple[()] = (),
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics: list[MetadataRequestTopic] | None = [] if isinstance(topics, tuple) else topics
        """Topics wanted; null = all (v0: empty = all), empty = none, just the cluster."""
        self.allow_auto_topic_creation: bool = allow_auto_topic_creation
        """v4+. False forbids creating a missing topic; true still needs auto.create.topics.enable."""
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        """v8-10. True: answer what the caller may do on the cluster. v8 to v10 only."""
        self.include_topic_authorized_operations: bool = include_topic_authorized_operations
        """v8+. True: answer what the caller may do on each topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "MetadataRequest":
        self = cls.__new__(cls)
        if version >= 9:
            count = reader.compact_nullable_array_count()
        elif version >= 1:
            count = reader.nullable_array_count()
        else:
            count = reader.array_count()
        topics: list[MetadataRequestTopic] = []
        for _ in range(count):
            topics.append(MetadataRequestTopic.read(reader, version))
        self.topics = topics if count >= 0 else None
        if version >= 11:
            (
                self.allow_auto_topic_creation,
                self.include_topic_authorized_operations,
            ) = reader.fixed(_ZZ)
            self.include_cluster_authorized_operations = False
        elif version >= 8:
            (
                self.allow_auto_topic_creation,
                self.include_cluster_authorized_operations,
                self.include_topic_authorized_operations,
            ) = reader.fixed(_ZZZ)
        elif version >= 4:
            self.allow_auto_topic_creation = reader.boolean()
            self.include_cluster_authorized_operations = False
            self.include_topic_authorized_operations = False
        else:
            self.allow_auto_topic_creation = True
            self.include_cluster_authorized_operations = False
            self.include_topic_authorized_operations = False
        if version >= 9:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 9:
            writer.compact_array_count(-1 if self.topics is None else len(self.topics))
        elif version >= 1:
            writer.array_count(-1 if self.topics is None else len(self.topics))
        else:
            if self.topics is None:
                raise null_not_carried("topics", version)
            writer.array_count(len(self.topics))
        for metadata_request_topic in self.topics or []:
            metadata_request_topic.write(writer, version)
        if version >= 11:
            if self.include_cluster_authorized_operations:
                raise not_carried("MetadataRequest", "include_cluster_authorized_operations", version)
            writer.append(_ZZ.pack(
                self.allow_auto_topic_creation,
                self.include_topic_authorized_operations,
            ))
        elif version >= 8:
            writer.append(_ZZZ.pack(
                self.allow_auto_topic_creation,
                self.include_cluster_authorized_operations,
                self.include_topic_authorized_operations,
            ))
        elif version >= 4:
            if self.include_cluster_authorized_operations:
                raise not_carried("MetadataRequest", "include_cluster_authorized_operations", version)
            if self.include_topic_authorized_operations:
                raise not_carried("MetadataRequest", "include_topic_authorized_operations", version)
            writer.boolean(self.allow_auto_topic_creation)
        else:
            if not self.allow_auto_topic_creation:
                raise not_carried("MetadataRequest", "allow_auto_topic_creation", version)
            if self.include_cluster_authorized_operations:
                raise not_carried("MetadataRequest", "include_cluster_authorized_operations", version)
            if self.include_topic_authorized_operations:
                raise not_carried("MetadataRequest", "include_topic_authorized_operations", version)
        if version >= 9:
            writer.append(b"\x00")


class MetadataResponseBroker(Message):
    """Live brokers, at the addresses of the listener the request came in on."""

    __slots__ = ("node_id", "host", "port", "rack")
    JSON_FIELDS: JsonFields = (
        ("node_id", "int32", 0, 13, False),
        ("host", "string", 0, 13, False),
        ("port", "int32", 0, 13, False),
        ("rack", "string", 1, 13, False),
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id: int = node_id
        """Broker's id, as in broker.id."""
        self.host: str = host
        """Host name or address to connect to."""
        self.port: int = port
        """TCP port to connect to."""
        self.rack: str | None = rack
        """v1+. The node's broker.rack; null when it is not configured."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "MetadataResponseBroker":
        self = cls.__new__(cls)
        self.node_id = reader.int32()
        if version >= 9:
            self.host = reader.compact_string()
        else:
            self.host = reader.string()
        self.port = reader.int32()
        if version >= 9:
            self.rack = reader.compact_nullable_string()
        elif version >= 1:
            self.rack = reader.nullable_string()
        else:
            self.rack = None
        if version >= 9:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.node_id)
        if version >= 9:
            writer.compact_string(self.host)
        else:
            writer.string(self.host)
        writer.int32(self.port)
        if version >= 9:
            writer.compact_nullable_string(self.rack)
        elif version >= 1:
            writer.nullable_string(self.rack)
        if version >= 9:
            writer.append(b"\x00")


class MetadataResponsePartition(Message):
    """All partitions of the topic, in any order."""

    __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "offline_replicas")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 13, False),
        ("partition_index", "int32", 0, 13, False),
        ("leader_id", "int32", 0, 13, False),
        ("leader_epoch", "int32", 7, 13, False),
        ("replica_nodes", "int32", 0, 13, False),
        ("isr_nodes", "int32", 0, 13, False),
        ("offline_replicas", "int32", 5, 13, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] | None = None,
        isr_nodes: list[int] | None = None,
        offline_replicas: list[int] | None = None,
    ) -> None:
        self.error_code: int = error_code
        """LEADER_NOT_AVAILABLE or LISTENER_NOT_FOUND when there is no usable leader; else 0."""
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.leader_id: int = leader_id
        """Broker id of the leader; -1 when the partition is without one."""
        self.leader_epoch: int = leader_epoch
        """v7+. Leader epoch, grows with every election; -1 when unknown."""
        self.replica_nodes: list[int] = [] if replica_nodes is None else replica_nodes
        """Broker ids of all replicas, preferred leader first."""
        self.isr_nodes: list[int] = [] if isr_nodes is None else isr_nodes
        """Broker ids of the in-sync replicas."""
        self.offline_replicas: list[int] = [] if offline_replicas is None else offline_replicas
        """v5+. Broker ids of replicas whose broker or disk is down."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "MetadataResponsePartition":
        self = cls.__new__(cls)
        if version >= 7:
            (
                self.error_code,
                self.partition_index,
                self.leader_id,
                self.leader_epoch,
            ) = reader.fixed(_HIII)
        else:
            self.error_code, self.partition_index, self.leader_id = reader.fixed(_HII)
            self.leader_epoch = -1
        if version >= 9:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.replica_nodes = reader.numbers(count, "i")
        if version >= 9:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.isr_nodes = reader.numbers(count, "i")
        if version >= 5:
            if version >= 9:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            self.offline_replicas = reader.numbers(count, "i")
        else:
            self.offline_replicas = []
        if version >= 9:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 7:
            writer.append(_HIII.pack(
                self.error_code,
                self.partition_index,
                self.leader_id,
                self.leader_epoch,
            ))
        else:
            writer.append(_HII.pack(self.error_code, self.partition_index, self.leader_id))
        if version >= 9:
            writer.compact_array_count(len(self.replica_nodes))
        else:
            writer.array_count(len(self.replica_nodes))
        writer.numbers(self.replica_nodes, "i")
        if version >= 9:
            writer.compact_array_count(len(self.isr_nodes))
        else:
            writer.array_count(len(self.isr_nodes))
        writer.numbers(self.isr_nodes, "i")
        if version >= 5:
            if version >= 9:
                writer.compact_array_count(len(self.offline_replicas))
            else:
                writer.array_count(len(self.offline_replicas))
            writer.numbers(self.offline_replicas, "i")
        if version >= 9:
            writer.append(b"\x00")


class MetadataResponseTopic(Message):
    """Topics found or refused, each with its partitions."""

    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 13, False),
        ("name", "string", 0, 13, False),
        ("topic_id", "uuid", 10, 13, False),
        ("is_internal", "bool", 1, 13, False),
        ("partitions", "MetadataResponsePartition", 0, 13, False),
        ("topic_authorized_operations", "int32", 8, 13, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] | None = None,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        """UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE (being created), …; 0 on success."""
        self.name: str | None = name
        """Topic, by name; null only when an unknown id was asked for."""
        self.topic_id: bytes = topic_id
        """v10+. Topic, by id; zero only when an unknown name was asked for."""
        self.is_internal: bool = is_internal
        """v1+. True for __consumer_offsets, __transaction_state and the like: clients must not write there."""
        self.partitions: list[MetadataResponsePartition] = [] if partitions is None else partitions
        """All partitions of the topic, in any order."""
        self.topic_authorized_operations: int = topic_authorized_operations
        """v8+. Bit set of ACL operations the caller may do on the topic; -2147483648 = not asked for."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "MetadataResponseTopic":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 12:
            self.name = reader.compact_nullable_string()
        elif version >= 9:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 10:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 1:
            self.is_internal = reader.boolean()
        else:
            self.is_internal = False
        if version >= 9:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[MetadataResponsePartition] = []
        for _ in range(count):
            partitions.append(MetadataResponsePartition.read(reader, version))
        self.partitions = partitions
        if version >= 8:
            self.topic_authorized_operations = reader.int32()
        else:
            self.topic_authorized_operations = -2147483648
        if version >= 9:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 12:
            writer.compact_nullable_string(self.name)
        elif version >= 9:
            if self.name is None:
                raise null_not_carried("name", version)
            writer.compact_string(self.name)
        else:
            if self.name is None:
                raise null_not_carried("name", version)
            writer.string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        if version >= 1:
            writer.boolean(self.is_internal)
        if version >= 9:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for metadata_response_partition in self.partitions:
            metadata_response_partition.write(writer, version)
        if version >= 8:
            writer.int32(self.topic_authorized_operations)
        else:
            if self.topic_authorized_operations != -2147483648:
                raise not_carried("MetadataResponseTopic", "topic_authorized_operations", version)
        if version >= 9:
            writer.append(b"\x00")


class MetadataResponse(Message):
    """Answer of Metadata."""

    __slots__ = ("throttle_time_ms", "brokers", "cluster_id", "controller_id", "topics", "cluster_authorized_operations", "error_code")
    API_KEY = 3
    VERSIONS = (0, 13)
    FLEXIBLE_FROM: int | None = 9
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 3, 13, False),
        ("brokers", "MetadataResponseBroker", 0, 13, False),
        ("cluster_id", "string", 2, 13, False),
        ("controller_id", "int32", 1, 13, False),
        ("topics", "MetadataResponseTopic", 0, 13, False),
        ("cluster_authorized_operations", "int32", 8, 10, False),
        ("error_code", "error_code", 13, 13, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] | None = None,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] | None = None,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v3+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.brokers: list[MetadataResponseBroker] = [] if brokers is None else brokers
        """Live brokers, at the addresses of the listener the request came in on."""
        self.cluster_id: str | None = cluster_id
        """v2+. Id of this cluster (22 characters, base64 of a UUID); null when not known yet."""
        self.controller_id: int = controller_id
        """v1+. Broker to send admin requests to; -1 when there is none."""
        self.topics: list[MetadataResponseTopic] = [] if topics is None else topics
        """Topics found or refused, each with its partitions."""
        self.cluster_authorized_operations: int = cluster_authorized_operations
        """v8-10. Bit set of ACL operations the caller may do on the cluster; -2147483648 = not asked for."""
        self.error_code: int = error_code
        """v13+. Error for the whole response; 0 (NONE) on success."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "MetadataResponse":
        self = cls.__new__(cls)
        if version >= 3:
            self.throttle_time_ms = reader.int32()
        else:
            self.throttle_time_ms = 0
        if version >= 9:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        brokers: list[MetadataResponseBroker] = []
        for _ in range(count):
            brokers.append(MetadataResponseBroker.read(reader, version))
        self.brokers = brokers
        if version >= 9:
            self.cluster_id = reader.compact_nullable_string()
        elif version >= 2:
            self.cluster_id = reader.nullable_string()
        else:
            self.cluster_id = None
        if version >= 1:
            self.controller_id = reader.int32()
        else:
            self.controller_id = -1
        if version >= 9:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[MetadataResponseTopic] = []
        for _ in range(count):
            topics.append(MetadataResponseTopic.read(reader, version))
        self.topics = topics
        if version >= 13:
            self.error_code = reader.int16()
            self.cluster_authorized_operations = -2147483648
        elif version >= 11:
            self.cluster_authorized_operations = -2147483648
            self.error_code = 0
        elif version >= 8:
            self.cluster_authorized_operations = reader.int32()
            self.error_code = 0
        else:
            self.cluster_authorized_operations = -2147483648
            self.error_code = 0
        if version >= 9:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.int32(self.throttle_time_ms)
        if version >= 9:
            writer.compact_array_count(len(self.brokers))
        else:
            writer.array_count(len(self.brokers))
        for metadata_response_broker in self.brokers:
            metadata_response_broker.write(writer, version)
        if version >= 9:
            writer.compact_nullable_string(self.cluster_id)
        elif version >= 2:
            writer.nullable_string(self.cluster_id)
        if version >= 1:
            writer.int32(self.controller_id)
        if version >= 9:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for metadata_response_topic in self.topics:
            metadata_response_topic.write(writer, version)
        if version >= 13:
            if self.cluster_authorized_operations != -2147483648:
                raise not_carried("MetadataResponse", "cluster_authorized_operations", version)
            writer.int16(self.error_code)
        elif version >= 11:
            if self.cluster_authorized_operations != -2147483648:
                raise not_carried("MetadataResponse", "cluster_authorized_operations", version)
        elif version >= 8:
            writer.int32(self.cluster_authorized_operations)
        else:
            if self.cluster_authorized_operations != -2147483648:
                raise not_carried("MetadataResponse", "cluster_authorized_operations", version)
        if version >= 9:
            writer.append(b"\x00")
