# fmt: off
# ruff: noqa: E501
"""DescribeTopicPartitions: key 75, versions 0 to 0.

Like Metadata, but answers in pages and tells eligible leader replicas (KIP-966).

Generated from protocol_specs/apis/75_describe_topic_partitions.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_HIII = Struct(">hiii")


class TopicRequest(Message):
    """Topics wanted; empty = all the caller may describe. Answered in order of name."""

    __slots__ = ("name",)
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name: str = name
        """Topic, by name."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicRequest":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.append(b"\x00")


class Cursor(Message):
    """Place at which the page begins; null for the first page."""

    __slots__ = ("topic_name", "partition_index")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 0, False),
        ("partition_index", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name: str = topic_name
        """First topic to answer."""
        self.partition_index: int = partition_index
        """First partition of that topic to answer."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Cursor":
        self = cls.__new__(cls)
        self.topic_name = reader.compact_string()
        self.partition_index = reader.int32()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.int32(self.partition_index)
        writer.append(b"\x00")


class DescribeTopicPartitionsRequest(Message):
    """Request of DescribeTopicPartitions."""

    __slots__ = ("topics", "response_partition_limit", "cursor")
    API_KEY = 75
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("topics", "TopicRequest", 0, 0, False),
        ("response_partition_limit", "int32", 0, 0, False),
        ("cursor", "Cursor", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topics: list[TopicRequest] | None = None,
        response_partition_limit: int = 2000,
        cursor: Cursor | None = None,
    ) -> None:
        self.topics: list[TopicRequest] = [] if topics is None else topics
        """Topics wanted; empty = all the caller may describe. Answered in order of name."""
        self.response_partition_limit: int = response_partition_limit
        """Most partitions to put into one answer; the broker has its own limit too."""
        self.cursor: Cursor | None = cursor
        """Place at which the page begins; null for the first page."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeTopicPartitionsRequest":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        topics: list[TopicRequest] = []
        for _ in range(count):
            topics.append(TopicRequest.read(reader, version))
        self.topics = topics
        self.response_partition_limit = reader.int32()
        self.cursor = Cursor.read(reader, version) if reader.int8() >= 0 else None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.topics))
        for topic_request in self.topics:
            topic_request.write(writer, version)
        writer.int32(self.response_partition_limit)
        if self.cursor is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.cursor.write(writer, version)
        writer.append(b"\x00")


class DescribeTopicPartitionsResponsePartition(Message):
    """Partitions of this page, in order of their number."""

    __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "eligible_leader_replicas", "last_known_elr", "offline_replicas")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 0, False),
        ("partition_index", "int32", 0, 0, False),
        ("leader_id", "int32", 0, 0, False),
        ("leader_epoch", "int32", 0, 0, False),
        ("replica_nodes", "int32", 0, 0, False),
        ("isr_nodes", "int32", 0, 0, False),
        ("eligible_leader_replicas", "int32", 0, 0, False),
        ("last_known_elr", "int32", 0, 0, False),
        ("offline_replicas", "int32", 0, 0, False),
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
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] | None = None,
    ) -> None:
        self.error_code: int = error_code
        """LEADER_NOT_AVAILABLE or LISTENER_NOT_FOUND when there is no usable leader; else 0."""
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.leader_id: int = leader_id
        """Broker id of the leader; -1 when the partition is without one."""
        self.leader_epoch: int = leader_epoch
        """Leader epoch, grows with every election; -1 when unknown."""
        self.replica_nodes: list[int] = [] if replica_nodes is None else replica_nodes
        """Broker ids of all replicas, preferred leader first."""
        self.isr_nodes: list[int] = [] if isr_nodes is None else isr_nodes
        """Broker ids of the in-sync replicas."""
        self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
        """Replicas out of the ISR that still hold all committed data; null or empty: none (KIP-966)."""
        self.last_known_elr: list[int] | None = last_known_elr
        """Members of the ELR before they were lost uncleanly; null or empty: none (KIP-966)."""
        self.offline_replicas: list[int] = [] if offline_replicas is None else offline_replicas
        """Broker ids of replicas whose broker or disk is down."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeTopicPartitionsResponsePartition":
        self = cls.__new__(cls)
        (
            self.error_code,
            self.partition_index,
            self.leader_id,
            self.leader_epoch,
        ) = reader.fixed(_HIII)
        count = reader.compact_array_count()
        self.replica_nodes = reader.numbers(count, "i")
        count = reader.compact_array_count()
        self.isr_nodes = reader.numbers(count, "i")
        count = reader.compact_nullable_array_count()
        self.eligible_leader_replicas = reader.numbers(count, "i") if count >= 0 else None
        count = reader.compact_nullable_array_count()
        self.last_known_elr = reader.numbers(count, "i") if count >= 0 else None
        count = reader.compact_array_count()
        self.offline_replicas = reader.numbers(count, "i")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_HIII.pack(
            self.error_code,
            self.partition_index,
            self.leader_id,
            self.leader_epoch,
        ))
        writer.compact_array_count(len(self.replica_nodes))
        writer.numbers(self.replica_nodes, "i")
        writer.compact_array_count(len(self.isr_nodes))
        writer.numbers(self.isr_nodes, "i")
        writer.compact_array_count(-1 if self.eligible_leader_replicas is None else len(self.eligible_leader_replicas))
        writer.numbers(self.eligible_leader_replicas or [], "i")
        writer.compact_array_count(-1 if self.last_known_elr is None else len(self.last_known_elr))
        writer.numbers(self.last_known_elr or [], "i")
        writer.compact_array_count(len(self.offline_replicas))
        writer.numbers(self.offline_replicas, "i")
        writer.append(b"\x00")


class DescribeTopicPartitionsResponseTopic(Message):
    """Topics of this page, sorted by name."""

    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 0, False),
        ("name", "string", 0, 0, False),
        ("topic_id", "uuid", 0, 0, False),
        ("is_internal", "bool", 0, 0, False),
        ("partitions", "DescribeTopicPartitionsResponsePartition", 0, 0, False),
        ("topic_authorized_operations", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] | None = None,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        """UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED, …; 0 on success."""
        self.name: str | None = name
        """Topic, by name; null only if it cannot be told."""
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.is_internal: bool = is_internal
        """True for __consumer_offsets, __transaction_state and the like: clients must not write there."""
        self.partitions: list[DescribeTopicPartitionsResponsePartition] = [] if partitions is None else partitions
        """Partitions of this page, in order of their number."""
        self.topic_authorized_operations: int = topic_authorized_operations
        """Bit set of ACL operations the caller may do on the topic; -2147483648 = unknown."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeTopicPartitionsResponseTopic":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        self.name = reader.compact_nullable_string()
        self.topic_id = reader.uuid()
        self.is_internal = reader.boolean()
        count = reader.compact_array_count()
        partitions: list[DescribeTopicPartitionsResponsePartition] = []
        for _ in range(count):
            partitions.append(DescribeTopicPartitionsResponsePartition.read(reader, version))
        self.partitions = partitions
        self.topic_authorized_operations = reader.int32()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.name)
        writer.uuid(self.topic_id)
        writer.boolean(self.is_internal)
        writer.compact_array_count(len(self.partitions))
        for describe_topic_partitions_response_partition in self.partitions:
            describe_topic_partitions_response_partition.write(writer, version)
        writer.int32(self.topic_authorized_operations)
        writer.append(b"\x00")


class DescribeTopicPartitionsResponse(Message):
    """Answer of DescribeTopicPartitions."""

    __slots__ = ("throttle_time_ms", "topics", "next_cursor")
    API_KEY = 75
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("topics", "DescribeTopicPartitionsResponseTopic", 0, 0, False),
        ("next_cursor", "Cursor", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] | None = None,
        next_cursor: Cursor | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.topics: list[DescribeTopicPartitionsResponseTopic] = [] if topics is None else topics
        """Topics of this page, sorted by name."""
        self.next_cursor: Cursor | None = next_cursor
        """Place at which the next page begins; null after the last page."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeTopicPartitionsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        count = reader.compact_array_count()
        topics: list[DescribeTopicPartitionsResponseTopic] = []
        for _ in range(count):
            topics.append(DescribeTopicPartitionsResponseTopic.read(reader, version))
        self.topics = topics
        self.next_cursor = Cursor.read(reader, version) if reader.int8() >= 0 else None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.compact_array_count(len(self.topics))
        for describe_topic_partitions_response_topic in self.topics:
            describe_topic_partitions_response_topic.write(writer, version)
        if self.next_cursor is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.next_cursor.write(writer, version)
        writer.append(b"\x00")
