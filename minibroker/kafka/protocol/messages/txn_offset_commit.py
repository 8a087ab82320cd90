# fmt: off
# ruff: noqa: E501
"""TxnOffsetCommit: key 28, versions 0 to 6.

A transactional producer stores group offsets that count only once the transaction commits (KIP-98).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: Leader epoch beside each offset (KIP-320).
3: Member, generation and static name, so that zombies are fenced; flexible encoding (KIP-447).
4: TRANSACTION_ABORTABLE may be answered (KIP-890).
5: Also adds the offsets partition to the transaction: no AddOffsetsToTxn needed (KIP-890 part 2).
6: Topics are named by id (KIP-1319).

Generated from protocol_specs/apis/28_txn_offset_commit.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")
_IQ = Struct(">iq")
_IQI = Struct(">iqi")
_QH = Struct(">qh")
_QHI = Struct(">qhi")


class TxnOffsetCommitRequestPartition(Message):
    """One offset per partition."""

    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 6, False),
        ("committed_offset", "int64", 0, 6, False),
        ("committed_leader_epoch", "int32", 2, 6, False),
        ("committed_metadata", "string", 0, 6, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.committed_offset: int = committed_offset
        """Next offset the group will read."""
        self.committed_leader_epoch: int = committed_leader_epoch
        """v2+. Epoch of the last record read; -1 when unknown."""
        self.committed_metadata: str | None = committed_metadata
        """Free text kept beside the offset; null is kept as empty."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TxnOffsetCommitRequestPartition":
        self = cls.__new__(cls)
        if version >= 2:
            (
                self.partition_index,
                self.committed_offset,
                self.committed_leader_epoch,
            ) = reader.fixed(_IQI)
        else:
            self.partition_index, self.committed_offset = reader.fixed(_IQ)
            self.committed_leader_epoch = -1
        if version >= 3:
            self.committed_metadata = reader.compact_nullable_string()
        else:
            self.committed_metadata = reader.nullable_string()
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.append(_IQI.pack(
                self.partition_index,
                self.committed_offset,
                self.committed_leader_epoch,
            ))
        else:
            writer.append(_IQ.pack(self.partition_index, self.committed_offset))
        if version >= 3:
            writer.compact_nullable_string(self.committed_metadata)
        else:
            writer.nullable_string(self.committed_metadata)
        if version >= 3:
            writer.append(b"\x00")


class TxnOffsetCommitRequestTopic(Message):
    """Offsets to store, grouped by topic."""

    __slots__ = ("name", "topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 5, False),
        ("topic_id", "uuid", 6, 6, False),
        ("partitions", "TxnOffsetCommitRequestPartition", 0, 6, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[TxnOffsetCommitRequestPartition] | None = None,
    ) -> None:
        self.name: str = name
        """v0-5. Topic, by name; up to v5."""
        self.topic_id: bytes = topic_id
        """v6+. Topic, by id; from v6 on."""
        self.partitions: list[TxnOffsetCommitRequestPartition] = [] if partitions is None else partitions
        """One offset per partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TxnOffsetCommitRequestTopic":
        self = cls.__new__(cls)
        if version >= 6:
            self.name = ""
        elif version >= 3:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 6:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 3:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[TxnOffsetCommitRequestPartition] = []
        for _ in range(count):
            partitions.append(TxnOffsetCommitRequestPartition.read(reader, version))
        self.partitions = partitions
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            pass
        elif version >= 3:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 6:
            writer.uuid(self.topic_id)
        if version >= 3:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for txn_offset_commit_request_partition in self.partitions:
            txn_offset_commit_request_partition.write(writer, version)
        if version >= 3:
            writer.append(b"\x00")


class TxnOffsetCommitRequest(Message):
    """Request of TxnOffsetCommit."""

    __slots__ = ("transactional_id", "group_id", "producer_id", "producer_epoch", "generation_id_or_member_epoch", "member_id", "group_instance_id", "topics")
    API_KEY = 28
    VERSIONS = (0, 6)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("transactional_id", "string", 0, 6, False),
        ("group_id", "string", 0, 6, False),
        ("producer_id", "int64", 0, 6, False),
        ("producer_epoch", "int16", 0, 6, False),
        ("generation_id_or_member_epoch", "int32", 3, 6, False),
        ("member_id", "string", 3, 6, False),
        ("group_instance_id", "string", 3, 6, False),
        ("topics", "TxnOffsetCommitRequestTopic", 0, 6, False),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] | None = None,
    ) -> None:
        self.transactional_id: str = transactional_id
        """The producer's transactional.id."""
        self.group_id: str = group_id
        """Group whose offsets are stored."""
        self.producer_id: int = producer_id
        """Producer id (64 bits, unique in the cluster)."""
        self.producer_epoch: int = producer_epoch
        """Epoch of that producer id; a lower one than the known epoch is fenced off."""
        self.generation_id_or_member_epoch: int = generation_id_or_member_epoch
        """v3+. Generation (classic) or member epoch (KIP-848); -1 = not checked."""
        self.member_id: str = member_id
        """v3+. Member that consumed the records; empty = not checked."""
        self.group_instance_id: str | None = group_instance_id
        """v3+. Static member name (group.instance.id, KIP-345); null for a dynamic member."""
        self.topics: list[TxnOffsetCommitRequestTopic] = [] if topics is None else topics
        """Offsets to store, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TxnOffsetCommitRequest":
        self = cls.__new__(cls)
        if version >= 3:
            self.transactional_id = reader.compact_string()
        else:
            self.transactional_id = reader.string()
        if version >= 3:
            self.group_id = reader.compact_string()
        else:
            self.group_id = reader.string()
        if version >= 3:
            (
                self.producer_id,
                self.producer_epoch,
                self.generation_id_or_member_epoch,
            ) = reader.fixed(_QHI)
        else:
            self.producer_id, self.producer_epoch = reader.fixed(_QH)
            self.generation_id_or_member_epoch = -1
        if version >= 3:
            self.member_id = reader.compact_string()
        else:
            self.member_id = ""
        if version >= 3:
            self.group_instance_id = reader.compact_nullable_string()
        else:
            self.group_instance_id = None
        if version >= 3:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[TxnOffsetCommitRequestTopic] = []
        for _ in range(count):
            topics.append(TxnOffsetCommitRequestTopic.read(reader, version))
        self.topics = topics
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.transactional_id)
        else:
            writer.string(self.transactional_id)
        if version >= 3:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 3:
            writer.append(_QHI.pack(
                self.producer_id,
                self.producer_epoch,
                self.generation_id_or_member_epoch,
            ))
        else:
            if self.generation_id_or_member_epoch != -1:
                raise not_carried("TxnOffsetCommitRequest", "generation_id_or_member_epoch", version)
            writer.append(_QH.pack(self.producer_id, self.producer_epoch))
        if version >= 3:
            writer.compact_string(self.member_id)
        else:
            if self.member_id != "":
                raise not_carried("TxnOffsetCommitRequest", "member_id", version)
        if version >= 3:
            writer.compact_nullable_string(self.group_instance_id)
        else:
            if self.group_instance_id is not None:
                raise not_carried("TxnOffsetCommitRequest", "group_instance_id", version)
        if version >= 3:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for txn_offset_commit_request_topic in self.topics:
            txn_offset_commit_request_topic.write(writer, version)
        if version >= 3:
            writer.append(b"\x00")


class TxnOffsetCommitResponsePartition(Message):
    """One result per offset."""

    __slots__ = ("partition_index", "error_code")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 6, False),
        ("error_code", "error_code", 0, 6, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, INVALID_PRODUCER_EPOCH, …; 0 = stored."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TxnOffsetCommitResponsePartition":
        self = cls.__new__(cls)
        self.partition_index, self.error_code = reader.fixed(_IH)
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.error_code))
        if version >= 3:
            writer.append(b"\x00")


class TxnOffsetCommitResponseTopic(Message):
    """Results grouped by topic."""

    __slots__ = ("name", "topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 5, False),
        ("topic_id", "uuid", 6, 6, False),
        ("partitions", "TxnOffsetCommitResponsePartition", 0, 6, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[TxnOffsetCommitResponsePartition] | None = None,
    ) -> None:
        self.name: str = name
        """v0-5. Topic, by name; up to v5."""
        self.topic_id: bytes = topic_id
        """v6+. Topic, by id; from v6 on."""
        self.partitions: list[TxnOffsetCommitResponsePartition] = [] if partitions is None else partitions
        """One result per offset."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TxnOffsetCommitResponseTopic":
        self = cls.__new__(cls)
        if version >= 6:
            self.name = ""
        elif version >= 3:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 6:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 3:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[TxnOffsetCommitResponsePartition] = []
        for _ in range(count):
            partitions.append(TxnOffsetCommitResponsePartition.read(reader, version))
        self.partitions = partitions
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            pass
        elif version >= 3:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 6:
            writer.uuid(self.topic_id)
        if version >= 3:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for txn_offset_commit_response_partition in self.partitions:
            txn_offset_commit_response_partition.write(writer, version)
        if version >= 3:
            writer.append(b"\x00")


class TxnOffsetCommitResponse(Message):
    """Answer of TxnOffsetCommit."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 28
    VERSIONS = (0, 6)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 6, False),
        ("topics", "TxnOffsetCommitResponseTopic", 0, 6, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.topics: list[TxnOffsetCommitResponseTopic] = [] if topics is None else topics
        """Results grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TxnOffsetCommitResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        if version >= 3:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[TxnOffsetCommitResponseTopic] = []
        for _ in range(count):
            topics.append(TxnOffsetCommitResponseTopic.read(reader, version))
        self.topics = topics
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 3:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for txn_offset_commit_response_topic in self.topics:
            txn_offset_commit_response_topic.write(writer, version)
        if version >= 3:
            writer.append(b"\x00")
