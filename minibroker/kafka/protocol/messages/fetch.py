# fmt: off
# ruff: noqa: E501
"""Fetch: key 1, versions 0 to 18.

Consumers read batches with it and followers replicate; the broker may hold the answer until min_bytes are there.

Versions:
1: Throttle time in the response.
2: Message format 1 (magic 1, timestamps) may be answered.
3: Limit for the whole response; partitions are filled in request order (KIP-74).
4: Isolation level, last stable offset, aborted transactions; magic-2 batches (KIP-98).
5: Log start offset on both sides (KIP-107).
6: KAFKA_STORAGE_ERROR may be answered; older clients get NOT_LEADER_OR_FOLLOWER instead.
7: Incremental fetch sessions (KIP-227).
8: Over quota, the answer goes out first and the pause follows (KIP-219).
9: Leader epoch the client believes in, for fencing (KIP-320).
10: zstd batches may be answered; below, UNSUPPORTED_COMPRESSION_TYPE (KIP-110).
11: Rack of the consumer and a preferred replica to read from (KIP-392).
12: Flexible encoding; last fetched epoch, diverging epoch, current leader, snapshot id (KIP-595).
13: Topics are named by id (KIP-516).
14: OFFSET_MOVED_TO_TIERED_STORAGE may be answered (KIP-405).
15: Replica id moves into the tagged ReplicaState, with the broker epoch (KIP-903).
16: Addresses of new leaders as a tagged field of the response (KIP-951).
17: Directory id of the fetching replica (KIP-853).
18: High watermark the fetching replica knows (KIP-1166).

Generated from protocol_specs/apis/01_fetch.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Buffer, Reader, Writer

_IHI = Struct(">ihi")
_IHQ = Struct(">ihq")
_IHQQ = Struct(">ihqq")
_IHQQQ = Struct(">ihqqq")
_II = Struct(">ii")
_III = Struct(">iii")
_IIIBII = Struct(">iiibii")
_IIII = Struct(">iiii")
_IIIIB = Struct(">iiiib")
_IIIIBII = Struct(">iiiibii")
_IIQIQI = Struct(">iiqiqi")
_IIQQI = Struct(">iiqqi")
_IQ = Struct(">iq")
_IQI = Struct(">iqi")
_IQQI = Struct(">iqqi")
_QI = Struct(">qi")
_QQ = Struct(">qq")


class ReplicaState(Message):
    """Tagged: the follower that fetches (KIP-903)."""

    __slots__ = ("replica_id", "replica_epoch")
    JSON_FIELDS: JsonFields = (
        ("replica_id", "int32", 15, 18, False),
        ("replica_epoch", "int64", 15, 18, False),
    )

    def __init__(
        self,
        *,
        replica_id: int = -1,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id: int = replica_id
        """Id of the broker that replicates; -1 for a consumer."""
        self.replica_epoch: int = replica_epoch
        """Broker epoch of the follower, so that a stale one cannot rejoin the ISR; -1 when absent."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReplicaState":
        self = cls.__new__(cls)
        self.replica_id, self.replica_epoch = reader.fixed(_IQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQ.pack(self.replica_id, self.replica_epoch))
        writer.append(b"\x00")


class FetchPartition(Message):
    """Partitions of the topic, with the offset to read from."""

    __slots__ = ("partition", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "log_start_offset", "partition_max_bytes", "replica_directory_id", "high_watermark")
    JSON_FIELDS: JsonFields = (
        ("partition", "int32", 0, 18, False),
        ("current_leader_epoch", "int32", 9, 18, False),
        ("fetch_offset", "int64", 0, 18, False),
        ("last_fetched_epoch", "int32", 12, 18, False),
        ("log_start_offset", "int64", 5, 18, False),
        ("partition_max_bytes", "int32", 0, 18, False),
        ("replica_directory_id", "uuid", 17, 18, True),
        ("high_watermark", "int64", 18, 18, True),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""
        self.current_leader_epoch: int = current_leader_epoch
        """v9+. Leader epoch the client has in its metadata, for fencing; -1 skips the check (KIP-320)."""
        self.fetch_offset: int = fetch_offset
        """First offset wanted."""
        self.last_fetched_epoch: int = last_fetched_epoch
        """v12+. Epoch of the last batch the reader holds, to detect divergence; -1 when it has none."""
        self.log_start_offset: int = log_start_offset
        """v5+. The follower's own log start offset; -1 from consumers."""
        self.partition_max_bytes: int = partition_max_bytes
        """Soft limit for this partition in bytes; the first batch of the response may exceed it."""
        self.replica_directory_id: bytes = replica_directory_id
        """v17+. Tagged: directory id of the fetching quorum replica; zero otherwise (KIP-853)."""
        self.high_watermark: int = high_watermark
        """v18+. Tagged: high watermark the replica has; -1 = unknown, 2^63-1 = sender does not tell (KIP-1166)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FetchPartition":
        self = cls.__new__(cls)
        if version >= 12:
            (
                self.partition,
                self.current_leader_epoch,
                self.fetch_offset,
                self.last_fetched_epoch,
                self.log_start_offset,
                self.partition_max_bytes,
            ) = reader.fixed(_IIQIQI)
        elif version >= 9:
            (
                self.partition,
                self.current_leader_epoch,
                self.fetch_offset,
                self.log_start_offset,
                self.partition_max_bytes,
            ) = reader.fixed(_IIQQI)
            self.last_fetched_epoch = -1
        elif version >= 5:
            (
                self.partition,
                self.fetch_offset,
                self.log_start_offset,
                self.partition_max_bytes,
            ) = reader.fixed(_IQQI)
            self.current_leader_epoch = -1
            self.last_fetched_epoch = -1
        else:
            self.partition, self.fetch_offset, self.partition_max_bytes = reader.fixed(_IQI)
            self.current_leader_epoch = -1
            self.last_fetched_epoch = -1
            self.log_start_offset = -1
        self.replica_directory_id = ZERO_UUID
        self.high_watermark = 9223372036854775807
        if version >= 12:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0 and version >= 17:
                    self.replica_directory_id = reader.uuid()
                elif tag == 1 and version >= 18:
                    self.high_watermark = reader.int64()
                else:
                    reader.position = end
                reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 12:
            writer.append(_IIQIQI.pack(
                self.partition,
                self.current_leader_epoch,
                self.fetch_offset,
                self.last_fetched_epoch,
                self.log_start_offset,
                self.partition_max_bytes,
            ))
        elif version >= 9:
            if self.last_fetched_epoch != -1:
                raise not_carried("FetchPartition", "last_fetched_epoch", version)
            writer.append(_IIQQI.pack(
                self.partition,
                self.current_leader_epoch,
                self.fetch_offset,
                self.log_start_offset,
                self.partition_max_bytes,
            ))
        elif version >= 5:
            if self.last_fetched_epoch != -1:
                raise not_carried("FetchPartition", "last_fetched_epoch", version)
            writer.append(_IQQI.pack(
                self.partition,
                self.fetch_offset,
                self.log_start_offset,
                self.partition_max_bytes,
            ))
        else:
            if self.last_fetched_epoch != -1:
                raise not_carried("FetchPartition", "last_fetched_epoch", version)
            writer.append(_IQI.pack(
                self.partition,
                self.fetch_offset,
                self.partition_max_bytes,
            ))
        if version >= 12:
            tagged: list[tuple[int, Writer]] = []
            if self.replica_directory_id != ZERO_UUID and version >= 17:
                value = Writer()
                value.uuid(self.replica_directory_id)
                tagged.append((0, value))
            if self.high_watermark != 9223372036854775807 and version >= 18:
                value = Writer()
                value.int64(self.high_watermark)
                tagged.append((1, value))
            if tagged:
                writer.tagged_fields(tagged)
            else:
                writer.append(b"\x00")


class FetchTopic(Message):
    """Partitions to read, or in a session those added or changed since the last request."""

    __slots__ = ("topic", "topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 0, 12, False),
        ("topic_id", "uuid", 13, 18, False),
        ("partitions", "FetchPartition", 0, 18, False),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] | None = None,
    ) -> None:
        self.topic: str = topic
        """v0-12. Topic, by name; up to v12."""
        self.topic_id: bytes = topic_id
        """v13+. Topic, by id; from v13 on."""
        self.partitions: list[FetchPartition] = [] if partitions is None else partitions
        """Partitions of the topic, with the offset to read from."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FetchTopic":
        self = cls.__new__(cls)
        if version >= 13:
            self.topic = ""
        elif version >= 12:
            self.topic = reader.compact_string()
        else:
            self.topic = reader.string()
        if version >= 13:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 12:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[FetchPartition] = []
        for _ in range(count):
            partitions.append(FetchPartition.read(reader, version))
        self.partitions = partitions
        if version >= 12:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 13:
            pass
        elif version >= 12:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 13:
            writer.uuid(self.topic_id)
        if version >= 12:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for fetch_partition in self.partitions:
            fetch_partition.write(writer, version)
        if version >= 12:
            writer.append(b"\x00")


class ForgottenTopic(Message):
    """Partitions to drop from the session; empty outside sessions."""

    __slots__ = ("topic", "topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 7, 12, False),
        ("topic_id", "uuid", 13, 18, False),
        ("partitions", "int32", 7, 18, False),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
    ) -> None:
        self.topic: str = topic
        """v7-12. Topic to drop from, by name; up to v12."""
        self.topic_id: bytes = topic_id
        """v13+. Topic to drop from, by id; from v13 on."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Partition numbers the session need no longer hold."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ForgottenTopic":
        self = cls.__new__(cls)
        if version >= 13:
            self.topic = ""
        elif version >= 12:
            self.topic = reader.compact_string()
        else:
            self.topic = reader.string()
        if version >= 13:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 12:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.partitions = reader.numbers(count, "i")
        if version >= 12:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 13:
            pass
        elif version >= 12:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 13:
            writer.uuid(self.topic_id)
        if version >= 12:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")
        if version >= 12:
            writer.append(b"\x00")


class FetchRequest(Message):
    """Request of Fetch."""

    __slots__ = ("cluster_id", "replica_id", "replica_state", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch", "topics", "forgotten_topics_data", "rack_id")
    API_KEY = 1
    VERSIONS = (0, 18)
    FLEXIBLE_FROM: int | None = 12
    JSON_FIELDS: JsonFields = (
        ("cluster_id", "string", 12, 18, True),
        ("replica_id", "int32", 0, 14, False),
        ("replica_state", "ReplicaState", 15, 18, True),
        ("max_wait_ms", "int32", 0, 18, False),
        ("min_bytes", "int32", 0, 18, False),
        ("max_bytes", "int32", 3, 18, False),
        ("isolation_level", "int8", 4, 18, False),
        ("session_id", "int32", 7, 18, False),
        ("session_epoch", "int32", 7, 18, False),
        ("topics", "FetchTopic", 0, 18, False),
        ("forgotten_topics_data", "ForgottenTopic", 7, 18, False),
        ("rack_id", "string", 11, 18, False),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] | None = None,
        forgotten_topics_data: list[ForgottenTopic] | None = None,
        rack_id: str = "",
    ) -> None:
        self.cluster_id: str | None = cluster_id
        """v12+. Tagged: cluster the sender thinks it talks to; null skips the check. Only quorum fetches set it."""
        self.replica_id: int = replica_id
        """v0-14. Broker id of a follower; -1 for a consumer, -2 for a debugging one. Up to v14."""
        self.replica_state: ReplicaState | None = replica_state
        """v15+. Tagged: the follower that fetches (KIP-903)."""
        self.max_wait_ms: int = max_wait_ms
        """Longest time to hold the request while less than min_bytes is there, in ms."""
        self.min_bytes: int = min_bytes
        """Bytes that end the wait early; 0 or 1 answers as soon as possible."""
        self.max_bytes: int = max_bytes
        """v3+. Soft limit of the whole response in bytes; the first batch found is sent whole all the same (KIP-74)."""
        self.isolation_level: int = isolation_level
        """v4+. 0 = read up to the high watermark, 1 = read committed: stop at the last stable offset, list aborts."""
        self.session_id: int = session_id
        """v7+. Fetch session to continue; 0 asks for a new one or none (KIP-227)."""
        self.session_epoch: int = session_epoch
        """v7+. Counter of requests in the session; 0 = open one, -1 = full fetch without a session (closes the old one)."""
        self.topics: list[FetchTopic] = [] if topics is None else topics
        """Partitions to read, or in a session those added or changed since the last request."""
        self.forgotten_topics_data: list[ForgottenTopic] = [] if forgotten_topics_data is None else forgotten_topics_data
        """v7+. Partitions to drop from the session; empty outside sessions."""
        self.rack_id: str = rack_id
        """v11+. client.rack of the consumer; empty when not set (KIP-392)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FetchRequest":
        self = cls.__new__(cls)
        if version >= 15:
            (
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
                self.isolation_level,
                self.session_id,
                self.session_epoch,
            ) = reader.fixed(_IIIBII)
            self.replica_id = -1
        elif version >= 7:
            (
                self.replica_id,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
                self.isolation_level,
                self.session_id,
                self.session_epoch,
            ) = reader.fixed(_IIIIBII)
        elif version >= 4:
            (
                self.replica_id,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
                self.isolation_level,
            ) = reader.fixed(_IIIIB)
            self.session_id = 0
            self.session_epoch = -1
        elif version >= 3:
            (
                self.replica_id,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
            ) = reader.fixed(_IIII)
            self.isolation_level = 0
            self.session_id = 0
            self.session_epoch = -1
        else:
            self.replica_id, self.max_wait_ms, self.min_bytes = reader.fixed(_III)
            self.max_bytes = 2147483647
            self.isolation_level = 0
            self.session_id = 0
            self.session_epoch = -1
        if version >= 12:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[FetchTopic] = []
        for _ in range(count):
            topics.append(FetchTopic.read(reader, version))
        self.topics = topics
        if version >= 7:
            if version >= 12:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            forgotten_topics_data: list[ForgottenTopic] = []
            for _ in range(count):
                forgotten_topics_data.append(ForgottenTopic.read(reader, version))
            self.forgotten_topics_data = forgotten_topics_data
        else:
            self.forgotten_topics_data = []
        if version >= 12:
            self.rack_id = reader.compact_string()
        elif version >= 11:
            self.rack_id = reader.string()
        else:
            self.rack_id = ""
        self.cluster_id = None
        self.replica_state = None
        if version >= 12:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0:
                    self.cluster_id = reader.compact_nullable_string()
                elif tag == 1 and version >= 15:
                    self.replica_state = ReplicaState.read(reader, version)
                else:
                    reader.position = end
                reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 15:
            if self.replica_id != -1:
                raise not_carried("FetchRequest", "replica_id", version)
            writer.append(_IIIBII.pack(
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
                self.isolation_level,
                self.session_id,
                self.session_epoch,
            ))
        elif version >= 7:
            writer.append(_IIIIBII.pack(
                self.replica_id,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
                self.isolation_level,
                self.session_id,
                self.session_epoch,
            ))
        elif version >= 4:
            writer.append(_IIIIB.pack(
                self.replica_id,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
                self.isolation_level,
            ))
        elif version >= 3:
            writer.append(_IIII.pack(
                self.replica_id,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
            ))
        else:
            writer.append(_III.pack(self.replica_id, self.max_wait_ms, self.min_bytes))
        if version >= 12:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for fetch_topic in self.topics:
            fetch_topic.write(writer, version)
        if version >= 7:
            if version >= 12:
                writer.compact_array_count(len(self.forgotten_topics_data))
            else:
                writer.array_count(len(self.forgotten_topics_data))
            for forgotten_topic in self.forgotten_topics_data:
                forgotten_topic.write(writer, version)
        else:
            if self.forgotten_topics_data:
                raise not_carried("FetchRequest", "forgotten_topics_data", version)
        if version >= 12:
            writer.compact_string(self.rack_id)
        elif version >= 11:
            writer.string(self.rack_id)
        if version >= 12:
            tagged: list[tuple[int, Writer]] = []
            if self.cluster_id is not None:
                value = Writer()
                value.compact_nullable_string(self.cluster_id)
                tagged.append((0, value))
            if self.replica_state is not None and self.replica_state != ReplicaState() and version >= 15:
                value = Writer()
                self.replica_state.write(value, version)
                tagged.append((1, value))
            elif self.replica_state is not None and self.replica_state != ReplicaState():
                raise not_carried("FetchRequest", "replica_state", version)
            if tagged:
                writer.tagged_fields(tagged)
            else:
                writer.append(b"\x00")
        else:
            if self.replica_state is not None and self.replica_state != ReplicaState():
                raise not_carried("FetchRequest", "replica_state", version)


class EpochEndOffset(Message):
    """Tagged: the reader's history left the leader's; it must cut its log back to this epoch's end (KIP-595)."""

    __slots__ = ("epoch", "end_offset")
    JSON_FIELDS: JsonFields = (
        ("epoch", "int32", 12, 18, False),
        ("end_offset", "int64", 12, 18, False),
    )

    def __init__(
        self,
        *,
        epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.epoch: int = epoch
        """Largest epoch of the leader that is not above the reader's last fetched one; -1 = no divergence."""
        self.end_offset: int = end_offset
        """Offset after the last record of that epoch; -1 = no divergence."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "EpochEndOffset":
        self = cls.__new__(cls)
        self.epoch, self.end_offset = reader.fixed(_IQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQ.pack(self.epoch, self.end_offset))
        writer.append(b"\x00")


class LeaderIdAndEpoch(Message):
    """Tagged: the current leader of the partition; sent with leadership errors."""

    __slots__ = ("leader_id", "leader_epoch")
    JSON_FIELDS: JsonFields = (
        ("leader_id", "int32", 12, 18, False),
        ("leader_epoch", "int32", 12, 18, False),
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
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


class SnapshotId(Message):
    """Tagged: the reader is behind the log start and should load this snapshot (quorum partitions only)."""

    __slots__ = ("end_offset", "epoch")
    JSON_FIELDS: JsonFields = (
        ("end_offset", "int64", 12, 18, False),
        ("epoch", "int32", 12, 18, False),
    )

    def __init__(
        self,
        *,
        end_offset: int = -1,
        epoch: int = -1,
    ) -> None:
        self.end_offset: int = end_offset
        """Offset after the last record the snapshot covers; -1 = no snapshot."""
        self.epoch: int = epoch
        """Epoch of the last record the snapshot covers; -1 = no snapshot."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "SnapshotId":
        self = cls.__new__(cls)
        self.end_offset, self.epoch = reader.fixed(_QI)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_QI.pack(self.end_offset, self.epoch))
        writer.append(b"\x00")


class AbortedTransaction(Message):
    """Aborted transactions that overlap the records; null under read uncommitted."""

    __slots__ = ("producer_id", "first_offset")
    JSON_FIELDS: JsonFields = (
        ("producer_id", "int64", 4, 18, False),
        ("first_offset", "int64", 4, 18, False),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
    ) -> None:
        self.producer_id: int = producer_id
        """Producer whose transaction was rolled back."""
        self.first_offset: int = first_offset
        """Offset where that transaction began; skip its records from there to the abort marker."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AbortedTransaction":
        self = cls.__new__(cls)
        self.producer_id, self.first_offset = reader.fixed(_QQ)
        if version >= 12:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_QQ.pack(self.producer_id, self.first_offset))
        if version >= 12:
            writer.append(b"\x00")


class PartitionData(Message):
    """Result of each partition."""

    __slots__ = ("partition_index", "error_code", "high_watermark", "last_stable_offset", "log_start_offset", "diverging_epoch", "current_leader", "snapshot_id", "aborted_transactions", "preferred_read_replica", "records")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 18, False),
        ("error_code", "error_code", 0, 18, False),
        ("high_watermark", "int64", 0, 18, False),
        ("last_stable_offset", "int64", 4, 18, False),
        ("log_start_offset", "int64", 5, 18, False),
        ("diverging_epoch", "EpochEndOffset", 12, 18, True),
        ("current_leader", "LeaderIdAndEpoch", 12, 18, True),
        ("snapshot_id", "SnapshotId", 12, 18, True),
        ("aborted_transactions", "AbortedTransaction", 4, 18, False),
        ("preferred_read_replica", "int32", 11, 18, False),
        ("records", "records", 0, 18, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
        aborted_transactions: list[AbortedTransaction] | None | tuple[()] = (),
        preferred_read_replica: int = -1,
        records: Buffer | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """Result of this read, e.g. OFFSET_OUT_OF_RANGE or FENCED_LEADER_EPOCH; 0 on success."""
        self.high_watermark: int = high_watermark
        """Offset after the last replicated record: consumers see only smaller offsets. -1 on error."""
        self.last_stable_offset: int = last_stable_offset
        """v4+. First offset of the oldest open transaction, or the high watermark; limit of read committed; -1 = none."""
        self.log_start_offset: int = log_start_offset
        """v5+. First offset the log still holds; -1 when unknown."""
        self.diverging_epoch: EpochEndOffset | None = diverging_epoch
        """v12+. Tagged: the reader's history left the leader's; it must cut its log back to this epoch's end (KIP-595)."""
        self.current_leader: LeaderIdAndEpoch | None = current_leader
        """v12+. Tagged: the current leader of the partition; sent with leadership errors."""
        self.snapshot_id: SnapshotId | None = snapshot_id
        """v12+. Tagged: the reader is behind the log start and should load this snapshot (quorum partitions only)."""
        self.aborted_transactions: list[AbortedTransaction] | None = [] if isinstance(aborted_transactions, tuple) else aborted_transactions
        """v4+. Aborted transactions that overlap the records; null under read uncommitted."""
        self.preferred_read_replica: int = preferred_read_replica
        """v11+. Broker the consumer should read from next; -1 = stay with the leader (KIP-392)."""
        self.records: Buffer | None = records
        """Batches straight from the log, the last one possibly cut short; empty when there is nothing."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionData":
        self = cls.__new__(cls)
        if version >= 5:
            (
                self.partition_index,
                self.error_code,
                self.high_watermark,
                self.last_stable_offset,
                self.log_start_offset,
            ) = reader.fixed(_IHQQQ)
        elif version >= 4:
            (
                self.partition_index,
                self.error_code,
                self.high_watermark,
                self.last_stable_offset,
            ) = reader.fixed(_IHQQ)
            self.log_start_offset = -1
        else:
            self.partition_index, self.error_code, self.high_watermark = reader.fixed(_IHQ)
            self.last_stable_offset = -1
            self.log_start_offset = -1
        if version >= 4:
            if version >= 12:
                count = reader.compact_nullable_array_count()
            else:
                count = reader.nullable_array_count()
            aborted_transactions: list[AbortedTransaction] = []
            for _ in range(count):
                aborted_transactions.append(AbortedTransaction.read(reader, version))
            self.aborted_transactions = aborted_transactions if count >= 0 else None
        else:
            self.aborted_transactions = []
        if version >= 11:
            self.preferred_read_replica = reader.int32()
        else:
            self.preferred_read_replica = -1
        if version >= 12:
            self.records = reader.compact_records()
        else:
            self.records = reader.records()
        self.diverging_epoch = None
        self.current_leader = None
        self.snapshot_id = None
        if version >= 12:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0:
                    self.diverging_epoch = EpochEndOffset.read(reader, version)
                elif tag == 1:
                    self.current_leader = LeaderIdAndEpoch.read(reader, version)
                elif tag == 2:
                    self.snapshot_id = SnapshotId.read(reader, version)
                else:
                    reader.position = end
                reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.append(_IHQQQ.pack(
                self.partition_index,
                self.error_code,
                self.high_watermark,
                self.last_stable_offset,
                self.log_start_offset,
            ))
        elif version >= 4:
            writer.append(_IHQQ.pack(
                self.partition_index,
                self.error_code,
                self.high_watermark,
                self.last_stable_offset,
            ))
        else:
            writer.append(_IHQ.pack(self.partition_index, self.error_code, self.high_watermark))
        if version >= 4:
            if version >= 12:
                writer.compact_array_count(-1 if self.aborted_transactions is None else len(self.aborted_transactions))
            else:
                writer.array_count(-1 if self.aborted_transactions is None else len(self.aborted_transactions))
            for aborted_transaction in self.aborted_transactions or []:
                aborted_transaction.write(writer, version)
        if version >= 11:
            writer.int32(self.preferred_read_replica)
        else:
            if self.preferred_read_replica != -1:
                raise not_carried("PartitionData", "preferred_read_replica", version)
        if version >= 12:
            writer.compact_records(self.records)
        else:
            writer.records(self.records)
        if version >= 12:
            tagged: list[tuple[int, Writer]] = []
            if self.diverging_epoch is not None and self.diverging_epoch != EpochEndOffset():
                value = Writer()
                self.diverging_epoch.write(value, version)
                tagged.append((0, value))
            if self.current_leader is not None and self.current_leader != LeaderIdAndEpoch():
                value = Writer()
                self.current_leader.write(value, version)
                tagged.append((1, value))
            if self.snapshot_id is not None and self.snapshot_id != SnapshotId():
                value = Writer()
                self.snapshot_id.write(value, version)
                tagged.append((2, value))
            if tagged:
                writer.tagged_fields(tagged)
            else:
                writer.append(b"\x00")
        else:
            if self.diverging_epoch is not None and self.diverging_epoch != EpochEndOffset():
                raise not_carried("PartitionData", "diverging_epoch", version)
            if self.current_leader is not None and self.current_leader != LeaderIdAndEpoch():
                raise not_carried("PartitionData", "current_leader", version)
            if self.snapshot_id is not None and self.snapshot_id != SnapshotId():
                raise not_carried("PartitionData", "snapshot_id", version)


class FetchableTopicResponse(Message):
    """Batches grouped by topic; in a session only partitions with news appear."""

    __slots__ = ("topic", "topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 0, 12, False),
        ("topic_id", "uuid", 13, 18, False),
        ("partitions", "PartitionData", 0, 18, False),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
    ) -> None:
        self.topic: str = topic
        """v0-12. Topic, by name; up to v12."""
        self.topic_id: bytes = topic_id
        """v13+. Topic, by id; from v13 on."""
        self.partitions: list[PartitionData] = [] if partitions is None else partitions
        """Result of each partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FetchableTopicResponse":
        self = cls.__new__(cls)
        if version >= 13:
            self.topic = ""
        elif version >= 12:
            self.topic = reader.compact_string()
        else:
            self.topic = reader.string()
        if version >= 13:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 12:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[PartitionData] = []
        for _ in range(count):
            partitions.append(PartitionData.read(reader, version))
        self.partitions = partitions
        if version >= 12:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 13:
            pass
        elif version >= 12:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 13:
            writer.uuid(self.topic_id)
        if version >= 12:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for partition_data in self.partitions:
            partition_data.write(writer, version)
        if version >= 12:
            writer.append(b"\x00")


class NodeEndpoint(Message):
    """Tagged: addresses of the leaders named in current_leader, saves a metadata refresh (KIP-951)."""

    __slots__ = ("node_id", "host", "port", "rack")
    JSON_FIELDS: JsonFields = (
        ("node_id", "int32", 16, 18, False),
        ("host", "string", 16, 18, False),
        ("port", "int32", 16, 18, False),
        ("rack", "string", 16, 18, False),
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


class FetchResponse(Message):
    """Answer of Fetch."""

    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints")
    API_KEY = 1
    VERSIONS = (0, 18)
    FLEXIBLE_FROM: int | None = 12
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 1, 18, False),
        ("error_code", "error_code", 7, 18, False),
        ("session_id", "int32", 7, 18, False),
        ("responses", "FetchableTopicResponse", 0, 18, False),
        ("node_endpoints", "NodeEndpoint", 16, 18, True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v1+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """v7+. Session-level error (FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, …); 0 otherwise."""
        self.session_id: int = session_id
        """v7+. Session the broker opened or continues; 0 when there is none."""
        self.responses: list[FetchableTopicResponse] = [] if responses is None else responses
        """Batches grouped by topic; in a session only partitions with news appear."""
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is None else node_endpoints
        """v16+. Tagged: addresses of the leaders named in current_leader, saves a metadata refresh (KIP-951)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FetchResponse":
        self = cls.__new__(cls)
        if version >= 7:
            self.throttle_time_ms, self.error_code, self.session_id = reader.fixed(_IHI)
        elif version >= 1:
            self.throttle_time_ms = reader.int32()
            self.error_code = 0
            self.session_id = 0
        else:
            self.throttle_time_ms = 0
            self.error_code = 0
            self.session_id = 0
        if version >= 12:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        responses: list[FetchableTopicResponse] = []
        for _ in range(count):
            responses.append(FetchableTopicResponse.read(reader, version))
        self.responses = responses
        self.node_endpoints = []
        if version >= 12:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0 and version >= 16:
                    count = reader.compact_array_count()
                    node_endpoints: list[NodeEndpoint] = []
                    for _ in range(count):
                        node_endpoints.append(NodeEndpoint.read(reader, version))
                    self.node_endpoints = node_endpoints
                else:
                    reader.position = end
                reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 7:
            writer.append(_IHI.pack(self.throttle_time_ms, self.error_code, self.session_id))
        elif version >= 1:
            if self.session_id != 0:
                raise not_carried("FetchResponse", "session_id", version)
            writer.int32(self.throttle_time_ms)
        else:
            if self.session_id != 0:
                raise not_carried("FetchResponse", "session_id", version)
        if version >= 12:
            writer.compact_array_count(len(self.responses))
        else:
            writer.array_count(len(self.responses))
        for fetchable_topic_response in self.responses:
            fetchable_topic_response.write(writer, version)
        if version >= 12:
            tagged: list[tuple[int, Writer]] = []
            if self.node_endpoints and version >= 16:
                value = Writer()
                value.compact_array_count(len(self.node_endpoints))
                for node_endpoint in self.node_endpoints:
                    node_endpoint.write(value, version)
                tagged.append((0, value))
            elif self.node_endpoints:
                raise not_carried("FetchResponse", "node_endpoints", version)
            if tagged:
                writer.tagged_fields(tagged)
            else:
                writer.append(b"\x00")
        else:
            if self.node_endpoints:
                raise not_carried("FetchResponse", "node_endpoints", version)
