# fmt: off
# ruff: noqa: E501
"""ShareFetch: key 78, versions 0 to 2.

A share consumer acquires records and acknowledges earlier ones; the partition leader answers (KIP-932).

Versions:
1: First stable version, with record limits; v0 was early access and is gone.
2: Acquire mode and renewals of the lock (KIP-1206, KIP-1222).

Generated from protocol_specs/apis/78_share_fetch.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried, null_not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Buffer, Reader, Writer

_IH = Struct(">ih")
_II = Struct(">ii")
_IIII = Struct(">iiii")
_IIIIII = Struct(">iiiiii")
_IIIIIIBZ = Struct(">iiiiiib?")
_QQ = Struct(">qq")
_QQH = Struct(">qqh")


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


class FetchPartition(Message):
    """Partitions to fetch from and to acknowledge."""

    __slots__ = ("partition_index", "partition_max_bytes", "acknowledgement_batches")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 2, False),
        ("partition_max_bytes", "int32", 0, 0, False),
        ("acknowledgement_batches", "AcknowledgementBatch", 0, 2, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_max_bytes: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.partition_max_bytes: int = partition_max_bytes
        """v0. v0: soft limit for the partition in bytes; 0 = acknowledge only."""
        self.acknowledgement_batches: list[AcknowledgementBatch] = [] if acknowledgement_batches is None else acknowledgement_batches
        """Outcomes of records acquired earlier, in order of offset without overlap."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FetchPartition":
        self = cls.__new__(cls)
        if version >= 1:
            self.partition_index = reader.int32()
            self.partition_max_bytes = 0
        else:
            self.partition_index, self.partition_max_bytes = reader.fixed(_II)
        count = reader.compact_array_count()
        acknowledgement_batches: list[AcknowledgementBatch] = []
        for _ in range(count):
            acknowledgement_batches.append(AcknowledgementBatch.read(reader, version))
        self.acknowledgement_batches = acknowledgement_batches
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            if self.partition_max_bytes != 0:
                raise not_carried("FetchPartition", "partition_max_bytes", version)
            writer.int32(self.partition_index)
        else:
            writer.append(_II.pack(self.partition_index, self.partition_max_bytes))
        writer.compact_array_count(len(self.acknowledgement_batches))
        for acknowledgement_batch in self.acknowledgement_batches:
            acknowledgement_batch.write(writer, version)
        writer.append(b"\x00")


class FetchTopic(Message):
    """Partitions to fetch from or acknowledge on, grouped by topic."""

    __slots__ = ("topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 2, False),
        ("partitions", "FetchPartition", 0, 2, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[FetchPartition] = [] if partitions is None else partitions
        """Partitions to fetch from and to acknowledge."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FetchTopic":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        partitions: list[FetchPartition] = []
        for _ in range(count):
            partitions.append(FetchPartition.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        for fetch_partition in self.partitions:
            fetch_partition.write(writer, version)
        writer.append(b"\x00")


class ForgottenTopic(Message):
    """Partitions to remove from the share session."""

    __slots__ = ("topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 2, False),
        ("partitions", "int32", 0, 2, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Partition numbers the share session need no longer hold."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ForgottenTopic":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        self.partitions = reader.numbers(count, "i")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")
        writer.append(b"\x00")


class ShareFetchRequest(Message):
    """Request of ShareFetch."""

    __slots__ = ("group_id", "member_id", "share_session_epoch", "max_wait_ms", "min_bytes", "max_bytes", "max_records", "batch_size", "share_acquire_mode", "is_renew_ack", "topics", "forgotten_topics_data")
    API_KEY = 78
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 2, False),
        ("member_id", "string", 0, 2, False),
        ("share_session_epoch", "int32", 0, 2, False),
        ("max_wait_ms", "int32", 0, 2, False),
        ("min_bytes", "int32", 0, 2, False),
        ("max_bytes", "int32", 0, 2, False),
        ("max_records", "int32", 1, 2, False),
        ("batch_size", "int32", 1, 2, False),
        ("share_acquire_mode", "int8", 2, 2, False),
        ("is_renew_ack", "bool", 2, 2, False),
        ("topics", "FetchTopic", 0, 2, False),
        ("forgotten_topics_data", "ForgottenTopic", 0, 2, False),
    )

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: list[FetchTopic] | None = None,
        forgotten_topics_data: list[ForgottenTopic] | None = None,
    ) -> None:
        self.group_id: str | None = group_id
        """Share group, by name; null is refused."""
        self.member_id: str | None = member_id
        """Member that fetches; null is refused."""
        self.share_session_epoch: int = share_session_epoch
        """Counter of requests in the share session; 0 = open it, -1 = close it after this request."""
        self.max_wait_ms: int = max_wait_ms
        """Longest time to hold the request while less than min_bytes is there, in ms."""
        self.min_bytes: int = min_bytes
        """Bytes that end the wait early."""
        self.max_bytes: int = max_bytes
        """Soft limit of the whole response in bytes; the first batch found is sent whole all the same."""
        self.max_records: int = max_records
        """v1+. Records to acquire at most; whole batches may exceed it unless share_acquire_mode is 1."""
        self.batch_size: int = batch_size
        """v1+. Number of records the broker should aim at for one entry of acquired_records."""
        self.share_acquire_mode: int = share_acquire_mode
        """v2+. 0 = whole batches, may pass max_records; 1 = never more than max_records (KIP-1206)."""
        self.is_renew_ack: bool = is_renew_ack
        """v2+. True when outcomes include renewals: the limits must then be 0 and nothing is fetched (KIP-1222)."""
        self.topics: list[FetchTopic] = [] if topics is None else topics
        """Partitions to fetch from or acknowledge on, grouped by topic."""
        self.forgotten_topics_data: list[ForgottenTopic] = [] if forgotten_topics_data is None else forgotten_topics_data
        """Partitions to remove from the share session."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ShareFetchRequest":
        self = cls.__new__(cls)
        self.group_id = reader.compact_nullable_string()
        self.member_id = reader.compact_nullable_string()
        if version >= 2:
            (
                self.share_session_epoch,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
                self.max_records,
                self.batch_size,
                self.share_acquire_mode,
                self.is_renew_ack,
            ) = reader.fixed(_IIIIIIBZ)
        elif version >= 1:
            (
                self.share_session_epoch,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
                self.max_records,
                self.batch_size,
            ) = reader.fixed(_IIIIII)
            self.share_acquire_mode = 0
            self.is_renew_ack = False
        else:
            (
                self.share_session_epoch,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
            ) = reader.fixed(_IIII)
            self.max_records = 0
            self.batch_size = 0
            self.share_acquire_mode = 0
            self.is_renew_ack = False
        count = reader.compact_array_count()
        topics: list[FetchTopic] = []
        for _ in range(count):
            topics.append(FetchTopic.read(reader, version))
        self.topics = topics
        count = reader.compact_array_count()
        forgotten_topics_data: list[ForgottenTopic] = []
        for _ in range(count):
            forgotten_topics_data.append(ForgottenTopic.read(reader, version))
        self.forgotten_topics_data = forgotten_topics_data
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_nullable_string(self.group_id)
        writer.compact_nullable_string(self.member_id)
        if version >= 2:
            writer.append(_IIIIIIBZ.pack(
                self.share_session_epoch,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
                self.max_records,
                self.batch_size,
                self.share_acquire_mode,
                self.is_renew_ack,
            ))
        elif version >= 1:
            if self.is_renew_ack:
                raise not_carried("ShareFetchRequest", "is_renew_ack", version)
            writer.append(_IIIIII.pack(
                self.share_session_epoch,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
                self.max_records,
                self.batch_size,
            ))
        else:
            if self.max_records != 0:
                raise not_carried("ShareFetchRequest", "max_records", version)
            if self.batch_size != 0:
                raise not_carried("ShareFetchRequest", "batch_size", version)
            if self.is_renew_ack:
                raise not_carried("ShareFetchRequest", "is_renew_ack", version)
            writer.append(_IIII.pack(
                self.share_session_epoch,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
            ))
        writer.compact_array_count(len(self.topics))
        for fetch_topic in self.topics:
            fetch_topic.write(writer, version)
        writer.compact_array_count(len(self.forgotten_topics_data))
        for forgotten_topic in self.forgotten_topics_data:
            forgotten_topic.write(writer, version)
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


class AcquiredRecords(Message):
    """Ranges of offsets now locked for the member."""

    __slots__ = ("first_offset", "last_offset", "delivery_count")
    JSON_FIELDS: JsonFields = (
        ("first_offset", "int64", 0, 2, False),
        ("last_offset", "int64", 0, 2, False),
        ("delivery_count", "int16", 0, 2, False),
    )

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset: int = first_offset
        """Offset the range begins with."""
        self.last_offset: int = last_offset
        """Offset the range ends with, itself included."""
        self.delivery_count: int = delivery_count
        """How often these records have been handed out, this time included."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AcquiredRecords":
        self = cls.__new__(cls)
        self.first_offset, self.last_offset, self.delivery_count = reader.fixed(_QQH)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_QQH.pack(self.first_offset, self.last_offset, self.delivery_count))
        writer.append(b"\x00")


class PartitionData(Message):
    """Records and acknowledgement results by partition."""

    __slots__ = ("partition_index", "error_code", "error_message", "acknowledge_error_code", "acknowledge_error_message", "current_leader", "records", "acquired_records")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 2, False),
        ("error_code", "error_code", 0, 2, False),
        ("error_message", "string", 0, 2, False),
        ("acknowledge_error_code", "error_code", 0, 2, False),
        ("acknowledge_error_message", "string", 0, 2, False),
        ("current_leader", "LeaderIdAndEpoch", 0, 2, False),
        ("records", "records", 0, 2, False),
        ("acquired_records", "AcquiredRecords", 0, 2, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        records: Buffer | None = None,
        acquired_records: list[AcquiredRecords] | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """Result of fetching from this partition; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.acknowledge_error_code: int = acknowledge_error_code
        """Result of the acknowledgements for this partition; 0 (NONE) on success."""
        self.acknowledge_error_message: str | None = acknowledge_error_message
        """Human-readable reason for acknowledge_error_code; null when there is none."""
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader
        """Current leader of the partition; set with leadership errors."""
        self.records: Buffer | None = records
        """Batches read; only the offsets in acquired_records belong to the member."""
        self.acquired_records: list[AcquiredRecords] = [] if acquired_records is None else acquired_records
        """Ranges of offsets now locked for the member."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionData":
        self = cls.__new__(cls)
        self.partition_index, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        self.acknowledge_error_code = reader.int16()
        self.acknowledge_error_message = reader.compact_nullable_string()
        self.current_leader = LeaderIdAndEpoch.read(reader, version)
        self.records = reader.compact_records()
        count = reader.compact_array_count()
        acquired_records: list[AcquiredRecords] = []
        for _ in range(count):
            acquired_records.append(AcquiredRecords.read(reader, version))
        self.acquired_records = acquired_records
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.int16(self.acknowledge_error_code)
        writer.compact_nullable_string(self.acknowledge_error_message)
        self.current_leader.write(writer, version)
        if version >= 1:
            if self.records is None:
                raise null_not_carried("records", version)
            writer.compact_records(self.records)
        else:
            writer.compact_records(self.records)
        writer.compact_array_count(len(self.acquired_records))
        for acquired_records in self.acquired_records:
            acquired_records.write(writer, version)
        writer.append(b"\x00")


class ShareFetchableTopicResponse(Message):
    """Records grouped by topic."""

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
        """Records and acknowledgement results by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ShareFetchableTopicResponse":
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


class ShareFetchResponse(Message):
    """Answer of ShareFetch."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses", "node_endpoints")
    API_KEY = 78
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 2, False),
        ("error_code", "error_code", 0, 2, False),
        ("error_message", "string", 0, 2, False),
        ("acquisition_lock_timeout_ms", "int32", 1, 2, False),
        ("responses", "ShareFetchableTopicResponse", 0, 2, False),
        ("node_endpoints", "NodeEndpoint", 0, 2, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchableTopicResponse] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """Session-level error (SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, …); 0 otherwise."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.acquisition_lock_timeout_ms: int = acquisition_lock_timeout_ms
        """v1+. The records stay locked for the member for this many ms."""
        self.responses: list[ShareFetchableTopicResponse] = [] if responses is None else responses
        """Records grouped by topic."""
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is None else node_endpoints
        """Addresses of the leaders named in current_leader, so the client need not refresh first (KIP-951)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ShareFetchResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        if version >= 1:
            self.acquisition_lock_timeout_ms = reader.int32()
        else:
            self.acquisition_lock_timeout_ms = 0
        count = reader.compact_array_count()
        responses: list[ShareFetchableTopicResponse] = []
        for _ in range(count):
            responses.append(ShareFetchableTopicResponse.read(reader, version))
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
        if version >= 1:
            writer.int32(self.acquisition_lock_timeout_ms)
        else:
            if self.acquisition_lock_timeout_ms != 0:
                raise not_carried("ShareFetchResponse", "acquisition_lock_timeout_ms", version)
        writer.compact_array_count(len(self.responses))
        for share_fetchable_topic_response in self.responses:
            share_fetchable_topic_response.write(writer, version)
        writer.compact_array_count(len(self.node_endpoints))
        for node_endpoint in self.node_endpoints:
            node_endpoint.write(writer, version)
        writer.append(b"\x00")
