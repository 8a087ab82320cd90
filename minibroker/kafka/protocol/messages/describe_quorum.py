# fmt: off
# ruff: noqa: E501
"""DescribeQuorum: key 55, versions 0 to 2.

Admin clients ask the state of the KRaft quorum (KIP-595). A ZooKeeper-mode broker does not serve it.

Versions:
1: Fetch and caught-up times of replicas (KIP-836).
2: Messages, directory ids, addresses of the voters (KIP-853).

Generated from protocol_specs/apis/55_describe_quorum.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")
_IIQ = Struct(">iiq")
_QQQ = Struct(">qqq")


class RequestPartitionData(Message):
    """One entry per partition asked about."""

    __slots__ = ("partition_index",)
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 2, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RequestPartitionData":
        self = cls.__new__(cls)
        self.partition_index = reader.int32()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.append(b"\x00")


class RequestTopicData(Message):
    """Quorum partitions wanted; only __cluster_metadata-0 exists."""

    __slots__ = ("topic_name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 2, False),
        ("partitions", "RequestPartitionData", 0, 2, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[RequestPartitionData] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.partitions: list[RequestPartitionData] = [] if partitions is None else partitions
        """One entry per partition asked about."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RequestTopicData":
        self = cls.__new__(cls)
        self.topic_name = reader.compact_string()
        count = reader.compact_array_count()
        partitions: list[RequestPartitionData] = []
        for _ in range(count):
            partitions.append(RequestPartitionData.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.compact_array_count(len(self.partitions))
        for request_partition_data in self.partitions:
            request_partition_data.write(writer, version)
        writer.append(b"\x00")


class DescribeQuorumRequest(Message):
    """Request of DescribeQuorum."""

    __slots__ = ("topics",)
    API_KEY = 55
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("topics", "RequestTopicData", 0, 2, False),
    )

    def __init__(
        self,
        *,
        topics: list[RequestTopicData] | None = None,
    ) -> None:
        self.topics: list[RequestTopicData] = [] if topics is None else topics
        """Quorum partitions wanted; only __cluster_metadata-0 exists."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeQuorumRequest":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        topics: list[RequestTopicData] = []
        for _ in range(count):
            topics.append(RequestTopicData.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.topics))
        for request_topic_data in self.topics:
            request_topic_data.write(writer, version)
        writer.append(b"\x00")


class ReplicaState(Message):
    """Replicas with a vote."""

    __slots__ = ("replica_id", "replica_directory_id", "log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp")
    JSON_FIELDS: JsonFields = (
        ("replica_id", "int32", 0, 2, False),
        ("replica_directory_id", "uuid", 2, 2, False),
        ("log_end_offset", "int64", 0, 2, False),
        ("last_fetch_timestamp", "int64", 1, 2, False),
        ("last_caught_up_timestamp", "int64", 1, 2, False),
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id: int = replica_id
        """Its node.id."""
        self.replica_directory_id: bytes = replica_directory_id
        """v2+. Id of the directory the replica lives in; zero when unknown (KIP-853)."""
        self.log_end_offset: int = log_end_offset
        """Offset after the last record the leader knows it to have; -1 when unknown."""
        self.last_fetch_timestamp: int = last_fetch_timestamp
        """v1+. Leader clock at its latest fetch, ms; -1 for the leader itself or when unknown."""
        self.last_caught_up_timestamp: int = last_caught_up_timestamp
        """v1+. Leader clock when it last had all records, ms; now for the leader, -1 when unknown."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReplicaState":
        self = cls.__new__(cls)
        self.replica_id = reader.int32()
        if version >= 2:
            self.replica_directory_id = reader.uuid()
        else:
            self.replica_directory_id = ZERO_UUID
        if version >= 1:
            (
                self.log_end_offset,
                self.last_fetch_timestamp,
                self.last_caught_up_timestamp,
            ) = reader.fixed(_QQQ)
        else:
            self.log_end_offset = reader.int64()
            self.last_fetch_timestamp = -1
            self.last_caught_up_timestamp = -1
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.replica_id)
        if version >= 2:
            writer.uuid(self.replica_directory_id)
        else:
            if self.replica_directory_id != ZERO_UUID:
                raise not_carried("ReplicaState", "replica_directory_id", version)
        if version >= 1:
            writer.append(_QQQ.pack(
                self.log_end_offset,
                self.last_fetch_timestamp,
                self.last_caught_up_timestamp,
            ))
        else:
            writer.int64(self.log_end_offset)
        writer.append(b"\x00")


class ResponsePartitionData(Message):
    """One entry per partition answered."""

    __slots__ = ("partition_index", "error_code", "error_message", "leader_id", "leader_epoch", "high_watermark", "current_voters", "observers")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 2, False),
        ("error_code", "error_code", 0, 2, False),
        ("error_message", "string", 2, 2, False),
        ("leader_id", "int32", 0, 2, False),
        ("leader_epoch", "int32", 0, 2, False),
        ("high_watermark", "int64", 0, 2, False),
        ("current_voters", "ReplicaState", 0, 2, False),
        ("observers", "ReplicaState", 0, 2, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] | None = None,
        observers: list[ReplicaState] | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """Result for this partition alone; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """v2+. Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.leader_id: int = leader_id
        """Broker id of the partition leader now; -1 when unknown."""
        self.leader_epoch: int = leader_epoch
        """Leader epoch that goes with that leader; -1 when unknown."""
        self.high_watermark: int = high_watermark
        """Offset after the last record a majority holds; -1 when unknown."""
        self.current_voters: list[ReplicaState] = [] if current_voters is None else current_voters
        """Replicas with a vote."""
        self.observers: list[ReplicaState] = [] if observers is None else observers
        """Replicas that follow without a vote."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ResponsePartitionData":
        self = cls.__new__(cls)
        self.partition_index, self.error_code = reader.fixed(_IH)
        if version >= 2:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = ""
        self.leader_id, self.leader_epoch, self.high_watermark = reader.fixed(_IIQ)
        count = reader.compact_array_count()
        current_voters: list[ReplicaState] = []
        for _ in range(count):
            current_voters.append(ReplicaState.read(reader, version))
        self.current_voters = current_voters
        count = reader.compact_array_count()
        observers: list[ReplicaState] = []
        for _ in range(count):
            observers.append(ReplicaState.read(reader, version))
        self.observers = observers
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.error_code))
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        writer.append(_IIQ.pack(self.leader_id, self.leader_epoch, self.high_watermark))
        writer.compact_array_count(len(self.current_voters))
        for replica_state in self.current_voters:
            replica_state.write(writer, version)
        writer.compact_array_count(len(self.observers))
        for replica_state in self.observers:
            replica_state.write(writer, version)
        writer.append(b"\x00")


class ResponseTopicData(Message):
    """State of the quorum partitions."""

    __slots__ = ("topic_name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 2, False),
        ("partitions", "ResponsePartitionData", 0, 2, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[ResponsePartitionData] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.partitions: list[ResponsePartitionData] = [] if partitions is None else partitions
        """One entry per partition answered."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ResponseTopicData":
        self = cls.__new__(cls)
        self.topic_name = reader.compact_string()
        count = reader.compact_array_count()
        partitions: list[ResponsePartitionData] = []
        for _ in range(count):
            partitions.append(ResponsePartitionData.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.compact_array_count(len(self.partitions))
        for response_partition_data in self.partitions:
            response_partition_data.write(writer, version)
        writer.append(b"\x00")


class Listener(Message):
    """Controller listeners of the voter."""

    __slots__ = ("name", "host", "port")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 2, 2, False),
        ("host", "string", 2, 2, False),
        ("port", "uint16", 2, 2, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name: str = name
        """Listener, by name."""
        self.host: str = host
        """Host name or address to connect to."""
        self.port: int = port
        """TCP port to connect to."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Listener":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.host = reader.compact_string()
        self.port = reader.uint16()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.append(b"\x00")


class Node(Message):
    """Addresses of the voters; from v2 on."""

    __slots__ = ("node_id", "listeners")
    JSON_FIELDS: JsonFields = (
        ("node_id", "int32", 2, 2, False),
        ("listeners", "Listener", 2, 2, False),
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        listeners: list[Listener] | None = None,
    ) -> None:
        self.node_id: int = node_id
        """Its node.id."""
        self.listeners: list[Listener] = [] if listeners is None else listeners
        """Controller listeners of the voter."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Node":
        self = cls.__new__(cls)
        self.node_id = reader.int32()
        count = reader.compact_array_count()
        listeners: list[Listener] = []
        for _ in range(count):
            listeners.append(Listener.read(reader, version))
        self.listeners = listeners
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.node_id)
        writer.compact_array_count(len(self.listeners))
        for listener in self.listeners:
            listener.write(writer, version)
        writer.append(b"\x00")


class DescribeQuorumResponse(Message):
    """Answer of DescribeQuorum."""

    __slots__ = ("error_code", "error_message", "topics", "nodes")
    API_KEY = 55
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 2, False),
        ("error_message", "string", 2, 2, False),
        ("topics", "ResponseTopicData", 0, 2, False),
        ("nodes", "Node", 2, 2, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[ResponseTopicData] | None = None,
        nodes: list[Node] | None = None,
    ) -> None:
        self.error_code: int = error_code
        """Error that concerns the request as a whole; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """v2+. Human-readable reason for error_code; null when there is nothing to add."""
        self.topics: list[ResponseTopicData] = [] if topics is None else topics
        """State of the quorum partitions."""
        self.nodes: list[Node] = [] if nodes is None else nodes
        """v2+. Addresses of the voters; from v2 on."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeQuorumResponse":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 2:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = ""
        count = reader.compact_array_count()
        topics: list[ResponseTopicData] = []
        for _ in range(count):
            topics.append(ResponseTopicData.read(reader, version))
        self.topics = topics
        if version >= 2:
            count = reader.compact_array_count()
            nodes: list[Node] = []
            for _ in range(count):
                nodes.append(Node.read(reader, version))
            self.nodes = nodes
        else:
            self.nodes = []
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        writer.compact_array_count(len(self.topics))
        for response_topic_data in self.topics:
            response_topic_data.write(writer, version)
        if version >= 2:
            writer.compact_array_count(len(self.nodes))
            for node in self.nodes:
                node.write(writer, version)
        else:
            if self.nodes:
                raise not_carried("DescribeQuorumResponse", "nodes", version)
        writer.append(b"\x00")
