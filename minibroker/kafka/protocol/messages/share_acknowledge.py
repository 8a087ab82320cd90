# fmt: off
# ruff: noqa: E501
"""ShareAcknowledge: key 79, versions 0 to 2.

A share consumer reports the outcome of records without fetching more; the partition leader answers (KIP-932).

Versions:
1: First stable version; v0 was early access and is gone.
2: Renewals of the lock (KIP-1222).

Generated from protocol_specs/apis/79_share_acknowledge.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IZ = Struct(">i?")
_IH = Struct(">ih")
_II = Struct(">ii")
_QQ = Struct(">qq")


class AcknowledgementBatch(Message):
    """Outcomes of records acquired earlier, in order of offset without overlap."""

    __slots__ = ("first_offset", "last_offset", "acknowledge_types")
    JSON_FIELDS: JsonFields = (
        ("first_offset", "int64", 0, 2, False),
        ("last_offset", "int64", 0, 2, False),
        ("acknowledge_types", "int8", 0, 2, False),
    )

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] | None = None,
    ) -> None:
        self.first_offset: int = first_offset
        """Offset the range begins with."""
        self.last_offset: int = last_offset
        """Offset the range ends with, itself included."""
        self.acknowledge_types: list[int] = [] if acknowledge_types is None else acknowledge_types
        """accept = 1, release = 2, reject = 3, renew = 4, gap = 0; one for the whole range or one per offset."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AcknowledgementBatch":
        self = cls.__new__(cls)
        self.first_offset, self.last_offset = reader.fixed(_QQ)
        count = reader.compact_array_count()
        self.acknowledge_types = reader.numbers(count, "b")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_QQ.pack(self.first_offset, self.last_offset))
        writer.compact_array_count(len(self.acknowledge_types))
        writer.numbers(self.acknowledge_types, "b")
        writer.append(b"\x00")


class AcknowledgePartition(Message):
    """Outcomes by partition."""

    __slots__ = ("partition_index", "acknowledgement_batches")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 2, False),
        ("acknowledgement_batches", "AcknowledgementBatch", 0, 2, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.acknowledgement_batches: list[AcknowledgementBatch] = [] if acknowledgement_batches is None else acknowledgement_batches
        """Outcomes of records acquired earlier, in order of offset without overlap."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AcknowledgePartition":
        self = cls.__new__(cls)
        self.partition_index = reader.int32()
        count = reader.compact_array_count()
        acknowledgement_batches: list[AcknowledgementBatch] = []
        for _ in range(count):
            acknowledgement_batches.append(AcknowledgementBatch.read(reader, version))
        self.acknowledgement_batches = acknowledgement_batches
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.compact_array_count(len(self.acknowledgement_batches))
        for acknowledgement_batch in self.acknowledgement_batches:
            acknowledgement_batch.write(writer, version)
        writer.append(b"\x00")


class AcknowledgeTopic(Message):
    """Outcomes grouped by topic."""

    __slots__ = ("topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 2, False),
        ("partitions", "AcknowledgePartition", 0, 2, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[AcknowledgePartition] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[AcknowledgePartition] = [] if partitions is None else partitions
        """Outcomes by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AcknowledgeTopic":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        partitions: list[AcknowledgePartition] = []
        for _ in range(count):
            partitions.append(AcknowledgePartition.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        for acknowledge_partition in self.partitions:
            acknowledge_partition.write(writer, version)
        writer.append(b"\x00")


class ShareAcknowledgeRequest(Message):
    """Request of ShareAcknowledge."""

    __slots__ = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics")
    API_KEY = 79
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 2, False),
        ("member_id", "string", 0, 2, False),
        ("share_session_epoch", "int32", 0, 2, False),
        ("is_renew_ack", "bool", 2, 2, False),
        ("topics", "AcknowledgeTopic", 0, 2, False),
    )

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: list[AcknowledgeTopic] | None = None,
    ) -> None:
        self.group_id: str | None = group_id
        """Share group, by name; null is refused."""
        self.member_id: str | None = member_id
        """Member that acknowledges; null is refused."""
        self.share_session_epoch: int = share_session_epoch
        """Counter of requests in the share session; -1 = close it after this request. 0 is refused."""
        self.is_renew_ack: bool = is_renew_ack
        """v2+. True when some of the outcomes are renewals (KIP-1222)."""
        self.topics: list[AcknowledgeTopic] = [] if topics is None else topics
        """Outcomes grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ShareAcknowledgeRequest":
        self = cls.__new__(cls)
        self.group_id = reader.compact_nullable_string()
        self.member_id = reader.compact_nullable_string()
        if version >= 2:
            self.share_session_epoch, self.is_renew_ack = reader.fixed(_IZ)
        else:
            self.share_session_epoch = reader.int32()
            self.is_renew_ack = False
        count = reader.compact_array_count()
        topics: list[AcknowledgeTopic] = []
        for _ in range(count):
            topics.append(AcknowledgeTopic.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_nullable_string(self.group_id)
        writer.compact_nullable_string(self.member_id)
        if version >= 2:
            writer.append(_IZ.pack(self.share_session_epoch, self.is_renew_ack))
        else:
            if self.is_renew_ack:
                raise not_carried("ShareAcknowledgeRequest", "is_renew_ack", version)
            writer.int32(self.share_session_epoch)
        writer.compact_array_count(len(self.topics))
        for acknowledge_topic in self.topics:
            acknowledge_topic.write(writer, version)
        writer.append(b"\x00")


class LeaderIdAndEpoch(Message):
    """Current leader of the partition; set with leadership errors."""

    __slots__ = ("leader_id", "leader_epoch")
    JSON_FIELDS: JsonFields = (
        ("leader_id", "int32", 0, 2, False),
        ("leader_epoch", "int32", 0, 2, False),
    )

    def __init__(
        self,
        *,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id: int = leader_id
        """Broker id of the partition leader now; -1 when unknown."""
        self.leader_epoch: int = leader_epoch
        """Leader epoch that goes with that leader; -1 when unknown."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "LeaderIdAndEpoch":
        self = cls.__new__(cls)
        self.leader_id, self.leader_epoch = reader.fixed(_II)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_II.pack(self.leader_id, self.leader_epoch))
        writer.append(b"\x00")


class PartitionData(Message):
    """Results by partition."""

    __slots__ = ("partition_index", "error_code", "error_message", "current_leader")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 2, False),
        ("error_code", "error_code", 0, 2, False),
        ("error_message", "string", 0, 2, False),
        ("current_leader", "LeaderIdAndEpoch", 0, 2, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """Result of the acknowledgements for this partition; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader
        """Current leader of the partition; set with leadership errors."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionData":
        self = cls.__new__(cls)
        self.partition_index, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        self.current_leader = LeaderIdAndEpoch.read(reader, version)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.error_code))
        writer.compact_nullable_string(self.error_message)
        self.current_leader.write(writer, version)
        writer.append(b"\x00")


class ShareAcknowledgeTopicResponse(Message):
    """Results grouped by topic."""

    __slots__ = ("topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 2, False),
        ("partitions", "PartitionData", 0, 2, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[PartitionData] = [] if partitions is None else partitions
        """Results by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ShareAcknowledgeTopicResponse":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        partitions: list[PartitionData] = []
        for _ in range(count):
            partitions.append(PartitionData.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        for partition_data in self.partitions:
            partition_data.write(writer, version)
        writer.append(b"\x00")


class NodeEndpoint(Message):
    """Addresses of the leaders named in current_leader, so the client need not refresh first (KIP-951)."""

    __slots__ = ("node_id", "host", "port", "rack")
    JSON_FIELDS: JsonFields = (
        ("node_id", "int32", 0, 2, False),
        ("host", "string", 0, 2, False),
        ("port", "int32", 0, 2, False),
        ("rack", "string", 0, 2, False),
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
        """The node's id, as in broker.id."""
        self.host: str = host
        """Host name or address to connect to."""
        self.port: int = port
        """TCP port to connect to."""
        self.rack: str | None = rack
        """The node's broker.rack; null when it is not configured."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "NodeEndpoint":
        self = cls.__new__(cls)
        self.node_id = reader.int32()
        self.host = reader.compact_string()
        self.port = reader.int32()
        self.rack = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.node_id)
        writer.compact_string(self.host)
        writer.int32(self.port)
        writer.compact_nullable_string(self.rack)
        writer.append(b"\x00")


class ShareAcknowledgeResponse(Message):
    """Answer of ShareAcknowledge."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses", "node_endpoints")
    API_KEY = 79
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 2, False),
        ("error_code", "error_code", 0, 2, False),
        ("error_message", "string", 0, 2, False),
        ("acquisition_lock_timeout_ms", "int32", 2, 2, False),
        ("responses", "ShareAcknowledgeTopicResponse", 0, 2, False),
        ("node_endpoints", "NodeEndpoint", 0, 2, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareAcknowledgeTopicResponse] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """Session-level error (SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, …); 0 otherwise."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.acquisition_lock_timeout_ms: int = acquisition_lock_timeout_ms
        """v2+. Renewed records stay locked for this many ms."""
        self.responses: list[ShareAcknowledgeTopicResponse] = [] if responses is None else responses
        """Results grouped by topic."""
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is None else node_endpoints
        """Addresses of the leaders named in current_leader, so the client need not refresh first (KIP-951)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ShareAcknowledgeResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        if version >= 2:
            self.acquisition_lock_timeout_ms = reader.int32()
        else:
            self.acquisition_lock_timeout_ms = 0
        count = reader.compact_array_count()
        responses: list[ShareAcknowledgeTopicResponse] = []
        for _ in range(count):
            responses.append(ShareAcknowledgeTopicResponse.read(reader, version))
        self.responses = responses
        count = reader.compact_array_count()
        node_endpoints: list[NodeEndpoint] = []
        for _ in range(count):
            node_endpoints.append(NodeEndpoint.read(reader, version))
        self.node_endpoints = node_endpoints
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        if version >= 2:
            writer.int32(self.acquisition_lock_timeout_ms)
        writer.compact_array_count(len(self.responses))
        for share_acknowledge_topic_response in self.responses:
            share_acknowledge_topic_response.write(writer, version)
        writer.compact_array_count(len(self.node_endpoints))
        for node_endpoint in self.node_endpoints:
            node_endpoint.write(writer, version)
        writer.append(b"\x00")
